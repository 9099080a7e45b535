#include "api/program/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <type_traits>

#include "api/version.h"

namespace troupe {

namespace {

/// Nothing unless all of the text is a number.
std::optional<double> ParseNumber(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

/// A check of a number, as a whole one if `T` is integral.
template <typename T>
CLI::Validator Between(const char* what, T least, T most) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        const std::optional<double> number = ParseNumber(text);
        const bool whole = text.find_first_not_of("0123456789-") == std::string::npos;
        if (number.has_value() && *number >= static_cast<double>(least) &&
            *number <= static_cast<double>(most) && (whole || !std::is_integral_v<T>)) {
          return "";
        }
        std::ostringstream wrong;
        wrong << "takes a " << what << ", at least " << least << ", at most " << most << ", not \""
              << text << "\"";
        return wrong.str();
      },
      "");
}

}  // namespace

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : CLI::App(description, name) {
  set_version_flag("--version", name + " " TROUPE_VERSION, "Prints the version");
  set_help_flag("-h,--help", "Prints this help");
  get_formatter()->column_width(34);
}

CLI::App* CommandLine::Command(const std::string& name, const std::string& description) {
  CLI::App* command = add_subcommand(name, description);
  command->set_version_flag("--version", get_name() + " " TROUPE_VERSION, "Prints the version");
  return command;
}

std::optional<int> CommandLine::Read(int argc, char** argv) {
  try {
    parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << help() << std::flush;
    return std::cout ? 0 : 1;
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << std::endl;
    return std::cout ? 0 : 1;
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> others = remaining();
    if (!get_subcommands().empty() || others.empty()) return WrongUsage(error.what());
    const char* what = others.front().front() == '-' ? "option" : "command";
    return WrongUsage(std::string("unknown ") + what + " \"" + others.front() + "\"");
  } catch (const CLI::Error& error) {
    return WrongUsage(error.what());
  }
  return std::nullopt;
}

int CommandLine::WrongUsage(const std::string& message) const {
  std::string name = get_name();
  for (const CLI::App* command : get_subcommands()) name += " " + command->get_name();
  std::string line = message;
  for (char& c : line) c = c == '\n' ? ' ' : c;
  std::cerr << name << ": " << line << "; see " << name << " --help\n";
  return 2;
}

CLI::Validator WholeNumber(int64_t least, int64_t most) {
  return Between("whole number", least, most);
}

CLI::Validator Number(double least, double most) { return Between("number", least, most); }

std::pair<std::string, std::string> SplitUsage(const std::string& usage) {
  const size_t space = std::min(usage.find(' '), usage.size());
  return {usage.substr(0, space), usage.substr(std::min(space + 1, usage.size()))};
}

CLI::Option* AddList(CLI::App* command, const std::string& usage, std::vector<std::string>* values,
                     const std::string& description) {
  const auto [name, value_name] = SplitUsage(usage);
  return command->add_option(name, *values, description)
      ->type_name(value_name)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace troupe

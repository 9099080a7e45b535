// What the command lines of all programs have in common.

#ifndef TROUPE_API_PROGRAM_COMMAND_LINE_H_
#define TROUPE_API_PROGRAM_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A command line on CLI11: `--help` and `--version` for the program and each command, wrong usage
/// is one line on standard error that names `--help`, and exit status 2.
class CommandLine : public CLI::App {
 public:
  /// `name` as the user types it.
  CommandLine(const std::string& name, const std::string& description);

  /// A command of a program that has several.
  CLI::App* Command(const std::string& name, const std::string& description);

  /// Reads the arguments. A value: the program ends with this status, and all has been said.
  std::optional<int> Read(int argc, char** argv);
  /// Says what is wrong with the usage; the exit status.
  int WrongUsage(const std::string& message) const;
};

/// Checks that an option's value is a number between two others, both included.
CLI::Validator WholeNumber(int64_t least, int64_t most);
CLI::Validator Number(double least, double most);

// `usage` is an option's name and what its value is called: "--threads N".

/// The two parts of a usage.
std::pair<std::string, std::string> SplitUsage(const std::string& usage);

/// An option that may be repeated, in order.
CLI::Option* AddList(CLI::App* command, const std::string& usage, std::vector<std::string>* values,
                     const std::string& description);
/// An option with one value; the last one counts. The help shows the default.
template <typename T>
CLI::Option* AddValue(CLI::App* command, const std::string& usage, T* value,
                      const std::string& description) {
  const auto [name, value_name] = SplitUsage(usage);
  return command->add_option(name, *value, description)
      ->type_name(value_name)
      ->take_last()
      ->capture_default_str();
}

}  // namespace troupe

#endif  // TROUPE_API_PROGRAM_COMMAND_LINE_H_

#include "api/cli/device_options.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "api/cli/cli.h"
#include "api/program/command_line.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

constexpr char kCount[] = "TYPE=NUMBER, such as GPU=2";
constexpr char kBytes[] = "TYPE=BYTES, such as GPU=8000000000";
constexpr char kFraction[] = "TYPE=SHARE, such as GPU=0.5";
constexpr char kNumbers[] = "TYPE=NUMBER,..., such as GPU=0,2";

[[noreturn]] void Refuse(const char* option, const char* usual, const std::string& text) {
  throw UsageError{StrCat(option, " takes ", usual, ", not \"", text, "\"")};
}

/// "gpu=text" as {"GPU", "text"}.
std::pair<std::string, std::string> Split(const char* option, const char* usual,
                                          const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) Refuse(option, usual, text);
  return {absl::AsciiStrToUpper(text.substr(0, equals)), text.substr(equals + 1)};
}

/// Whether it is a number of 0 or more.
bool Parse(absl::string_view text, double* number) {
  return absl::SimpleAtod(text, number) && *number >= 0;
}
template <typename Integer>
bool Parse(absl::string_view text, Integer* number) {
  return absl::SimpleAtoi(text, number) && *number >= 0;
}

/// "gpu=2" as {"GPU", 2}.
template <typename Number>
std::pair<std::string, Number> ParsePair(const char* option, const char* usual,
                                         const std::string& text) {
  const auto [type, value] = Split(option, usual, text);
  Number number{};
  if (!Parse(value, &number)) Refuse(option, usual, text);
  return {type, number};
}

/// What there is of a type so far.
DeviceOptions& Find(DeviceOptionsByType& devices, const std::string& type, const char* option,
                    const std::string& text) {
  const auto found = devices.find(type);
  if (found == devices.end()) {
    throw UsageError{StrCat(option, " ", text, ": give --device ", type, "=N as well")};
  }
  return found->second;
}

}  // namespace

DeviceOptionsByType DeviceTexts::Parse() const {
  DeviceOptionsByType devices;
  for (const std::string& text : counts) {
    const auto [type, count] = ParsePair<int>("--device", kCount, text);
    const bool first = devices.try_emplace(type, DeviceOptions{count}).second;
    if (!first) throw UsageError{"--device is given twice for " + type};
  }
  for (const std::string& text : limits) {
    const auto [type, bytes] = ParsePair<int64_t>("--memory-limit", kBytes, text);
    Find(devices, type, "--memory-limit", text).memory_limit = bytes;
  }
  for (const std::string& text : fractions) {
    const auto [type, share] = ParsePair<double>("--memory-fraction", kFraction, text);
    Find(devices, type, "--memory-fraction", text).memory_fraction = share;
  }
  for (const std::string& text : reserved) {
    const std::string type = absl::AsciiStrToUpper(text);
    Find(devices, type, "--reserve-memory", text).allow_growth = false;
  }
  for (const std::string& text : visible) {
    const auto [type, list] = Split("--visible", kNumbers, text);
    std::vector<int>& numbers = Find(devices, type, "--visible", text).visible;
    for (const absl::string_view part : absl::StrSplit(list, ',')) {
      int number = 0;
      if (!cli::Parse(part, &number)) Refuse("--visible", kNumbers, text);
      numbers.push_back(number);
    }
  }
  return devices;
}

std::vector<std::string> DeviceTexts::Arguments() const {
  std::vector<std::string> arguments;
  const auto add = [&](const char* option, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) arguments.insert(arguments.end(), {option, text});
  };
  add("--device", counts);
  add("--memory-limit", limits);
  add("--memory-fraction", fractions);
  add("--reserve-memory", reserved);
  add("--visible", visible);
  return arguments;
}

void AddDevices(CLI::App* command, DeviceTexts* texts) {
  AddList(command, "--device TYPE=N", &texts->counts,
          "Shows so many devices of a type, CPU or one that a library adds; may be repeated");
  AddList(command, "--memory-limit TYPE=BYTES", &texts->limits,
          "Limits the memory of each device of a type; may be repeated");
  AddList(command, "--memory-fraction TYPE=SHARE", &texts->fractions,
          "Limits it to a share, up to 1, of what is free; may be repeated");
  AddList(command, "--reserve-memory TYPE", &texts->reserved,
          "Takes all that the limit allows at once; may be repeated");
  AddList(command, "--visible TYPE=NUMBER,...", &texts->visible,
          "Which of the machine's devices of a type they are, from 0 on; may be repeated");
}

}  // namespace troupe::cli

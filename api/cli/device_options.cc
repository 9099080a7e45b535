#include "api/cli/device_options.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "api/cli/cli.h"
#include "api/program/command_line.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

/// "gpu=2" as {"GPU", 2}.
std::pair<std::string, int64_t> ParsePair(const std::string& option, const std::string& text,
                                          int64_t most) {
  const size_t equals = text.find('=');
  int64_t number = -1;
  if (equals == 0 || equals == std::string::npos ||
      !absl::SimpleAtoi(text.substr(equals + 1), &number) || number < 0 || number > most) {
    throw UsageError{option + " takes TYPE=NUMBER, such as GPU=2, not \"" + text + "\""};
  }
  return {absl::AsciiStrToUpper(text.substr(0, equals)), number};
}

}  // namespace

DeviceOptionsByType DeviceTexts::Parse() const {
  DeviceOptionsByType devices;
  for (const std::string& text : counts) {
    const auto [type, count] = ParsePair("--device", text, std::numeric_limits<int>::max());
    const bool first = devices.try_emplace(type, DeviceOptions{static_cast<int>(count)}).second;
    if (!first) throw UsageError{"--device is given twice for " + type};
  }
  for (const std::string& text : limits) {
    const auto [type, bytes] =
        ParsePair("--memory-limit", text, std::numeric_limits<int64_t>::max());
    const auto found = devices.find(type);
    if (found == devices.end()) {
      throw UsageError{StrCat("--memory-limit ", text, ": give --device ", type, "=N as well")};
    }
    found->second.memory_limit = bytes;
  }
  return devices;
}

std::vector<std::string> DeviceTexts::Arguments() const {
  std::vector<std::string> arguments;
  for (const std::string& text : counts) arguments.insert(arguments.end(), {"--device", text});
  for (const std::string& text : limits) {
    arguments.insert(arguments.end(), {"--memory-limit", text});
  }
  return arguments;
}

void AddDevices(CLI::App* command, DeviceTexts* texts) {
  AddList(command, "--device TYPE=N", &texts->counts,
          "Shows so many devices of a type, CPU or one that a library adds; may be repeated");
  AddList(command, "--memory-limit TYPE=BYTES", &texts->limits,
          "Limits the memory of each device of a type; may be repeated");
}

}  // namespace troupe::cli

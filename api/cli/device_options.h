// What commands are told of devices.

#ifndef TROUPE_API_CLI_DEVICE_OPTIONS_H_
#define TROUPE_API_CLI_DEVICE_OPTIONS_H_

#include <string>
#include <vector>

#include "devices/device_registry.h"

namespace CLI {
class App;
}

namespace troupe::cli {

/// As they are given: "GPU=2", and "GPU=8000000000" bytes.
struct DeviceTexts {
  std::vector<std::string> counts, limits;

  /// Throws UsageError: what is no TYPE=NUMBER, a type twice, a limit of a type without a count.
  DeviceOptionsByType Parse() const;
  /// The options again, for a process that is started.
  std::vector<std::string> Arguments() const;
};

void AddDevices(CLI::App* command, DeviceTexts* texts);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_DEVICE_OPTIONS_H_

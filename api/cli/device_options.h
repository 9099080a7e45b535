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

/// As they are given: "GPU=2", "GPU=8000000000" bytes, "GPU=0.5" of the memory, "GPU" whose memory
/// is taken at once, "GPU=0,2" of the machine's.
struct DeviceTexts {
  std::vector<std::string> counts, limits, fractions, reserved, visible;

  /// Throws UsageError: what is no TYPE=NUMBER, a type twice, anything else of a type without a
  /// count.
  DeviceOptionsByType Parse() const;
  /// The options again, for a process that is started.
  std::vector<std::string> Arguments() const;
};

void AddDevices(CLI::App* command, DeviceTexts* texts);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_DEVICE_OPTIONS_H_

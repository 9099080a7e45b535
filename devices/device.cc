#include "devices/device.h"

#include <utility>

namespace troupe {

Device::Device(DeviceAttributes attributes) : attributes_(std::move(attributes)) {
  // A device's own name comes from DeviceName::ToString, so it parses.
  absl::StatusOr<DeviceName> name = DeviceName::Parse(attributes_.name);
  if (name.ok()) parsed_name_ = *std::move(name);
}

}  // namespace troupe

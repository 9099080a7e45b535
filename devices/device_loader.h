/// Types of devices that are in libraries of their own.
#ifndef TROUPE_DEVICES_DEVICE_LOADER_H_
#define TROUPE_DEVICES_DEVICE_LOADER_H_

#include <string>

#include "absl/status/status.h"

namespace troupe {

/// Has `load` called for a type that is asked for and not registered; it registers the type, or
/// says why it cannot. OK without a registration: it knows nothing of the type. Thread-safe; the
/// last one counts.
void SetDeviceLoader(absl::Status (*load)(const std::string& type));

}  // namespace troupe

#endif  // TROUPE_DEVICES_DEVICE_LOADER_H_

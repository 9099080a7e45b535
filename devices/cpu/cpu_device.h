/// The CPU as a device: host memory, one stream that is always done, a compute pool.
#ifndef TROUPE_DEVICES_CPU_CPU_DEVICE_H_
#define TROUPE_DEVICES_CPU_CPU_DEVICE_H_

#include <memory>

#include "devices/device.h"

namespace troupe {

/// `name` must be complete. The pool is shared by all CPU devices of a process's runtime.
std::unique_ptr<Device> MakeCpuDevice(const DeviceName& name, std::shared_ptr<ComputePool> pool);

}  // namespace troupe

#endif  // TROUPE_DEVICES_CPU_CPU_DEVICE_H_

/// Copies of values between the memories of the host and of devices, as nodes of plans have them.
#ifndef TROUPE_KERNELS_DATA_COPY_KERNELS_H_
#define TROUPE_KERNELS_DATA_COPY_KERNELS_H_

#include <memory>

#include "devices/device.h"
#include "kernels/kernel.h"

namespace troupe {

/// A kernel whose output 0 is input 0 in the host's memory, or in that of the device that it runs
/// on. `peer`: the connected device that has sent the input, wherever that is; nullptr: nobody has.
std::shared_ptr<Kernel> MakeCopyKernel(MemorySpace to, Device* peer);

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_COPY_KERNELS_H_

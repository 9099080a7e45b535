// The simulated accelerator for `troupe worker --library FILE --device SIM=1`.
#include <unistd.h>

#include "api/extension.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace {

absl::Status Register(troupe::Extension& extension) {
  troupe::testing::BorrowKernels();
  extension.DeviceType("SIM", troupe::testing::SimulatedDevices(
                                  {.seed = static_cast<uint64_t>(getpid()), .memory = 512 << 20}));
  return absl::OkStatus();
}

}  // namespace

TROUPE_EXTENSION(Register)

// Timestamp.
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/common/registration.h"
#include "kernels/kernel.h"

namespace troupe {
namespace {

absl::Status Timestamp(KernelContext& ctx) {
  return ctx.SetScalar(0, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
}
REGISTER_KERNEL(Cheap("Timestamp"), MakeKernel<Timestamp>);

}  // namespace
}  // namespace troupe

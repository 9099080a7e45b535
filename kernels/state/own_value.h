/// Values of variables for updates in place, on every type of device.
#ifndef TROUPE_KERNELS_STATE_OWN_VALUE_H_
#define TROUPE_KERNELS_STATE_OWN_VALUE_H_

#include <utility>

#include "devices/device.h"
#include "devices/status_macros.h"
#include "kernels/kernel.h"
#include "kernels/variable.h"

namespace troupe {

/// The variable's value in a buffer that nobody else holds: else it is copied, on a device in the
/// stream's order. ResourceExhausted; FailedPrecondition if there is none.
inline absl::StatusOr<Tensor*> OwnValue(KernelContext& ctx, Variable::Lease& lease) {
  const Tensor& value = lease.value();
  if (value.valid() && value.space() == MemorySpace::kDevice && !value.unique()) {
    TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(value.type(), value.shape()));
    TROUPE_RETURN_IF_ERROR(ctx.step().device->Copy(value, copy, ctx.step().stream));
    lease.set_value(std::move(copy));
  }
  return lease.mutable_value();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_STATE_OWN_VALUE_H_

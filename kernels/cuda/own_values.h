/// Values of variables for updates in place, on cards.
#ifndef TROUPE_KERNELS_CUDA_OWN_VALUES_H_
#define TROUPE_KERNELS_CUDA_OWN_VALUES_H_

#include <utility>

#include "devices/device.h"
#include "kernels/kernel.h"
#include "kernels/variable.h"

namespace troupe::cuda {

/// The variable's value, which there is, in a buffer that nobody else holds: else it is copied, in
/// the stream's order. ResourceExhausted.
inline absl::StatusOr<Tensor*> OwnValue(KernelContext& ctx, Variable::Lease& lease) {
  const Tensor& value = lease.value();
  if (!value.unique()) {
    TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(value.type(), value.shape()));
    TROUPE_RETURN_IF_ERROR(ctx.step().device->Copy(value, copy, ctx.step().stream));
    lease.set_value(std::move(copy));
  }
  return lease.mutable_value();
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_OWN_VALUES_H_

/// Half and bfloat16 for kernels that compute in float.
#ifndef TROUPE_KERNELS_COMMON_WIDEN_H_
#define TROUPE_KERNELS_COMMON_WIDEN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

/// A tensor of half, bfloat16 or float as float: a float tensor itself, another one converted.
absl::StatusOr<Tensor> Widened(KernelContext& ctx, const Tensor& tensor);

/// Rounds the float tensor `wide` to `to`, which is of half or bfloat16 and has as many elements.
void NarrowTo(KernelContext& ctx, const Tensor& wide, Tensor* to);

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_WIDEN_H_

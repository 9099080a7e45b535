/// Operands of element-wise kernels of GPUs.
#ifndef TROUPE_KERNELS_CUDA_OPERANDS_H_
#define TROUPE_KERNELS_CUDA_OPERANDS_H_

#include <initializer_list>

#include "absl/status/statusor.h"
#include "devices/shape.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

/// How operands of these shapes are read to fill an output, to which they can be broadcast.
/// Unimplemented: more dimensions differ than kernels know.
absl::StatusOr<Broadcast> BroadcastOperands(const Shape& out,
                                            std::initializer_list<const Shape*> operands);

/// Makes output 0, of `type`, what inputs 0 and 1 are broadcast to, and says what a launch needs.
absl::StatusOr<BinaryCall> BroadcastCall(KernelContext& ctx, ElementType type);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_OPERANDS_H_

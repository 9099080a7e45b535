/// Reductions within kernels of GPUs.
#ifndef TROUPE_KERNELS_CUDA_REDUCE_TENSOR_H_
#define TROUPE_KERNELS_CUDA_REDUCE_TENSOR_H_

#include <cstdint>
#include <vector>

#include "kernels/cuda/reduce.h"
#include "kernels/kernel.h"

namespace troupe::cuda {

/// Enqueues the reduction of a tensor of these dimensions into an output that has been allocated.
/// Sums of floating-point and complex numbers are divided by `divisor`.
absl::Status EnqueueReduce(KernelContext& ctx, ReduceOp op, const Tensor& input,
                           std::vector<ReduceDim> dims, int64_t divisor, Tensor* output);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_REDUCE_TENSOR_H_

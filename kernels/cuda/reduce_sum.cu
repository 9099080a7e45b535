// Sums, of which means, losses and gradients of biases are made.
#include "kernels/cuda/reduce_ops.cuh"

namespace troupe::cuda {

cudaError_t LaunchSum(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  if (call.type == Number::kInt64) {  // Wraps around.
    return RunArray<uint64_t, SumOf<uint64_t>>(call, plan, stream);
  }
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunArray<T, SumOf<T>>(call, plan, stream);
  });
}

cudaError_t LaunchSumOfSquares(const ReduceCall& call, const ReducePlan& plan,
                               cudaStream_t stream) {
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunArray<T, SumOfSquares<T>>(call, plan, stream);
  });
}

}  // namespace troupe::cuda

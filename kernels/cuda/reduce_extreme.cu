// Max and Min.
#include "kernels/cuda/reduce_ops.cuh"

namespace troupe::cuda {
namespace {

template <bool kMax>
cudaError_t Run(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  if (call.type == Number::kInt64) {
    return RunArray<int64_t, ExtremeOf<int64_t, kMax>>(call, plan, stream);
  }
  return VisitFloating(call.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return RunArray<T, ExtremeOf<T, kMax>>(call, plan, stream);
  });
}

}  // namespace

cudaError_t LaunchMax(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  return Run<true>(call, plan, stream);
}
cudaError_t LaunchMin(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  return Run<false>(call, plan, stream);
}

}  // namespace troupe::cuda

/// What reductions join elements by, and a file's worth of kernels for each.
#ifndef TROUPE_KERNELS_CUDA_REDUCE_OPS_CUH_
#define TROUPE_KERNELS_CUDA_REDUCE_OPS_CUH_

#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/reduce.h"

namespace troupe::cuda {

template <typename T>
struct SumOf {
  using Acc = WideType<T>;
  __device__ static Acc Identity() { return Acc(0); }
  __device__ static Acc Of(T x) { return static_cast<Acc>(x); }
  __device__ static Acc Join(Acc a, Acc b) { return a + b; }
  __device__ static Acc Finish(Acc acc, int64_t divisor) {
    if constexpr (!std::is_integral_v<Acc>) {
      if (divisor != 1) return acc / static_cast<Acc>(divisor);
    }
    return acc;
  }
};
template <typename T>
struct SumOfSquares : SumOf<T> {
  using Acc = WideType<T>;
  __device__ static Acc Of(T x) { return static_cast<Acc>(x) * static_cast<Acc>(x); }
};
template <typename T>
struct ProductOf {
  using Acc = WideType<T>;
  __device__ static Acc Identity() { return Acc(1); }
  __device__ static Acc Of(T x) { return static_cast<Acc>(x); }
  __device__ static Acc Join(Acc a, Acc b) { return a * b; }
  __device__ static Acc Finish(Acc acc, int64_t) { return acc; }
};

/// The largest (else the smallest) of all; a number that is none stays.
template <typename T, bool kMax>
struct ExtremeOf {
  using Acc = WideType<T>;
  __device__ static Acc Identity() {
    if constexpr (std::is_floating_point_v<Acc>) {
      return kMax ? -kInfinity<Acc> : kInfinity<Acc>;
    } else {
      return kMax ? kLowest<Acc> : kHighest<Acc>;
    }
  }
  __device__ static Acc Of(T x) { return static_cast<Acc>(x); }
  __device__ static Acc Join(Acc a, Acc b) { return (kMax ? b > a : b < a) || b != b ? b : a; }
  __device__ static Acc Finish(Acc acc, int64_t) { return acc; }
};

/// For several files: the kernels for a type are compiled in one of them.
cudaError_t LaunchSum(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream);
cudaError_t LaunchSumOfSquares(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream);
cudaError_t LaunchNorm(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream);
cudaError_t LaunchProd(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream);
cudaError_t LaunchMax(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream);
cudaError_t LaunchMin(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream);

template <typename T, typename Fn>
cudaError_t RunArray(const ReduceCall& call, const ReducePlan& plan, cudaStream_t stream) {
  const ArrayReducer<T, Fn> reducer{static_cast<const T*>(call.in), static_cast<T*>(call.out),
                                    call.divisor};
  return RunReduce(reducer, plan, call.scratch, stream);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_REDUCE_OPS_CUH_

/// Functions of floating-point numbers, computed in a type that is wide enough.
#ifndef TROUPE_KERNELS_CUDA_FLOATING_CUH_
#define TROUPE_KERNELS_CUDA_FLOATING_CUH_

#include "kernels/cuda/map.cuh"
#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {

/// `Fn` of values of type T, in T's wide type.
template <typename Fn, typename T>
struct Widened {
  Fn fn;
  template <typename... Ts>
  __device__ T operator()(Ts... x) const {
    return static_cast<T>(fn(static_cast<WideType<T>>(x)...));
  }
};

/// y = Fn(x), of any floating-point type.
template <typename Fn>
cudaError_t MapFloating(Number type, const void* x, void* y, int64_t n, cudaStream_t stream) {
  return VisitFloating(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Widened<Fn, T>(), FlatWalk(), n, stream, static_cast<T*>(y),
                   static_cast<const T*>(x));
  });
}

template <typename W>
__device__ W PositivePart(W x) {
  return x < 0 ? W(0) : x;  // NaN stays NaN.
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FLOATING_CUH_

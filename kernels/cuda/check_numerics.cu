#include "kernels/cuda/check_numerics.h"

#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Find(const T* x, int64_t n, bool packed, unsigned* found) {
  constexpr int kSize = kPackSize<T>;
  FlatWalk walk;
  walk.packed = packed;
  const int64_t packs = (n + kSize - 1) / kSize, step = int64_t{gridDim.x} * kThreads;
  unsigned own = 0;
  for (int64_t p = int64_t{blockIdx.x} * kThreads + threadIdx.x; p < packs; p += step) {
    const int64_t i = p * kSize;
    const int count = n - i < kSize ? static_cast<int>(n - i) : kSize;
    const auto pack = Load<kSize>(x, walk, 0, i, count);
    for (int k = 0; k < kSize; ++k) {
      const auto value = static_cast<WideType<T>>(pack.values[k]);
      if (value != value) {
        own |= kHasNan;
      } else if (value - value != 0) {
        own |= value < 0 ? kHasMinusInfinity : kHasPlusInfinity;
      }
    }
  }
  if (own != 0) atomicOr(found, own);
}

/// When all have looked, so that the report says all.
__global__ void Report(const unsigned* found, LateCheck check, int64_t note) {
  if (*found != 0) ReportLate(check, *found, note);
}

}  // namespace

cudaError_t LaunchCheckNumerics(Number type, const void* x, int64_t n, unsigned* found,
                                const LateCheck& check, int64_t note, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  cudaError_t error = cudaMemsetAsync(found, 0, sizeof(*found), stream);
  if (error != cudaSuccess) return error;
  error = VisitFloating(type, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kSize = kPackSize<T>;
    const T* const from = static_cast<const T*>(x);
    return Launch(&Find<T>, Blocks((n + kSize - 1) / kSize), kThreads, stream, from, n,
                  CanPack<kSize>(from, 1), found);
  });
  return error != cudaSuccess ? error : Launch(&Report, 1, 1, stream, found, check, note);
}

}  // namespace troupe::cuda

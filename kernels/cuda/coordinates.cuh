/// From the number of an element to its coordinates.
#ifndef TROUPE_KERNELS_CUDA_COORDINATES_CUH_
#define TROUPE_KERNELS_CUDA_COORDINATES_CUH_

#include "kernels/cuda/division.cuh"

namespace troupe::cuda {

/// Divides numbers of 0 to `limit`, which the host knows.
class Division {
 public:
  Division() = default;
  Division(int64_t divisor, int64_t limit) : divisor_(divisor), small_(IsSmall(limit)) {}

  __device__ int64_t Divide(int64_t n, int64_t* rest) const {
    return small_ ? divisor_.Divide<true>(n, rest) : divisor_.Divide<false>(n, rest);
  }

 private:
  Divisor divisor_;
  bool small_ = true;
};

/// A tensor's sizes, the innermost last.
template <int kRank>
class Coordinates {
 public:
  template <typename... Sizes>
  explicit Coordinates(Sizes... sizes)
      : sizes_{Divisor(sizes)...}, small_(IsSmall((int64_t{1} * ... * sizes))) {
    static_assert(sizeof...(Sizes) == kRank);
  }

  __device__ void Split(int64_t i, int64_t (&at)[kRank]) const {
    if (small_) {
      SplitAs<true>(i, at);
    } else {
      SplitAs<false>(i, at);
    }
  }

 private:
  template <bool kSmall>
  __device__ void SplitAs(int64_t i, int64_t (&at)[kRank]) const {
#pragma unroll
    for (int d = kRank - 1; d > 0; --d) i = sizes_[d].template Divide<kSmall>(i, &at[d]);
    at[0] = i;
  }

  Divisor sizes_[kRank];
  bool small_;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_COORDINATES_CUH_

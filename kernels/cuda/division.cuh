/// Division of indices by sizes that the host knows.
#ifndef TROUPE_KERNELS_CUDA_DIVISION_CUH_
#define TROUPE_KERNELS_CUDA_DIVISION_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::cuda {

/// Divides numbers below 2^31 by a multiplication (Granlund and Montgomery, "Division by Invariant
/// Integers using Multiplication", 1994, figure 4.1), larger ones as they are.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(int64_t divisor) : divisor_(divisor) {
    if (divisor < 1 || divisor > INT32_MAX) return;
    const auto d = static_cast<uint64_t>(divisor);
    while ((uint64_t{1} << shift_) < d) ++shift_;
    magic_ = static_cast<uint32_t>((((uint64_t{1} << shift_) - d) << 32) / d + 1);
  }

  /// n / divisor; the rest goes to `rest`. kSmall: n is below 2^31.
  template <bool kSmall>
  __device__ int64_t Divide(int64_t n, int64_t* rest) const {
    int64_t quotient;
    if constexpr (kSmall) {
      const auto x = static_cast<uint32_t>(n);
      quotient = divisor_ > INT32_MAX ? 0 : (__umulhi(x, magic_) + x) >> shift_;
    } else {
      quotient = n / divisor_;
    }
    *rest = n - quotient * divisor_;
    return quotient;
  }

 private:
  int64_t divisor_ = 1;
  uint32_t magic_ = 1, shift_ = 0;
};

inline bool IsSmall(int64_t n) { return n <= INT32_MAX; }

/// How many bytes at a time can be moved: the largest power of two, 16 at most, that divides all
/// that is added.
class Unit {
 public:
  Unit& Add(const void* address) {
    bits_ |= reinterpret_cast<uintptr_t>(address);
    return *this;
  }
  Unit& Add(int64_t bytes) {
    bits_ |= static_cast<uint64_t>(bytes);
    return *this;
  }
  int64_t bytes() const { return static_cast<int64_t>(bits_ & (~bits_ + 1)); }

 private:
  uint64_t bits_ = 16;
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_DIVISION_CUH_

/// Powers of float and double, for code that is compiled for several instruction sets.
#ifndef TROUPE_KERNELS_SIMD_POWER_H_
#define TROUPE_KERNELS_SIMD_POWER_H_

#include "kernels/simd/packet_ops.h"
#include "kernels/simd/scalar_ops.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

template <typename T>
bool IsOrdinary(T x) {
  const T size = std::abs(x);
  return size > T(0) && size <= std::numeric_limits<T>::max();
}

// The C library where the base is 0 or infinite: Eigen loses the sign of odd powers of -0 and -inf.
template <typename T>
uint32_t PowAA(const void* a, const void* b, void* out, int64_t n) {
  using P = Packet<T>;
  constexpr int kSize = kPacketSize<T>;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  for (int64_t i = 0; i < n; i += kSize) {
    const int m = n - i < kSize ? static_cast<int>(n - i) : kSize;
    T base[kSize] = {}, exponent[kSize] = {}, power[kSize];
    bool special = false;
    for (int k = 0; k < m; ++k) {
      base[k] = x[i + k];
      exponent[k] = y[i + k];
      special |= !IsOrdinary(base[k]);
    }
    Eigen::internal::pstoreu(power,
                             Eigen::internal::generic_pow(Eigen::internal::ploadu<P>(base),
                                                          Eigen::internal::ploadu<P>(exponent)));
    if (special) {
      for (int k = 0; k < m; ++k) {
        if (!IsOrdinary(base[k])) power[k] = std::pow(base[k], exponent[k]);
      }
    }
    for (int k = 0; k < m; ++k) z[i + k] = power[k];
  }
  return 0;
}

// With one operand fixed: it is spread over a block, so that the packet code is compiled once.
template <typename T>
uint32_t PowSA(const void* a, const void* b, void* out, int64_t n) {
  constexpr int64_t kBlock = 256;
  T base[kBlock];
  const T value = *static_cast<const T*>(a);
  const int64_t size = n < kBlock ? n : kBlock;
  for (int64_t i = 0; i < size; ++i) base[i] = value;
  for (int64_t i = 0; i < n; i += kBlock) {
    PowAA<T>(base, static_cast<const T*>(b) + i, static_cast<T*>(out) + i,
             n - i < kBlock ? n - i : kBlock);
  }
  return 0;
}

template <typename T>
uint32_t PowAS(const void* a, const void* b, void* out, int64_t n) {
  const T value = *static_cast<const T*>(b);
  if (value == T(2)) {
    UnaryLoop<SquareOp, T>(a, out, n);
    return 0;
  }
  constexpr int64_t kBlock = 256;
  T exponent[kBlock];
  const int64_t size = n < kBlock ? n : kBlock;
  for (int64_t i = 0; i < size; ++i) exponent[i] = value;
  for (int64_t i = 0; i < n; i += kBlock) {
    PowAA<T>(static_cast<const T*>(a) + i, exponent, static_cast<T*>(out) + i,
             n - i < kBlock ? n - i : kBlock);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::simd::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_POWER_H_

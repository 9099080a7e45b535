/// The conversion of one element, for loops that are compiled once.
#ifndef TROUPE_KERNELS_MATH_CAST_LOOP_H_
#define TROUPE_KERNELS_MATH_CAST_LOOP_H_

#include <complex>
#include <cstdint>
#include <type_traits>

#include "devices/element_type.h"

namespace troupe::internal {

template <typename T>
inline constexpr bool kIsComplexType =
    std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;
template <typename T>
inline constexpr bool kIsHalfType = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <typename From, typename To>
__attribute__((no_sanitize("float-cast-overflow"))) To CastElement(From x) {
  if constexpr (kIsComplexType<From>) {
    if constexpr (kIsComplexType<To>) {
      using R = typename To::value_type;
      return To(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    } else {
      return CastElement<typename From::value_type, To>(x.real());
    }
  } else if constexpr (kIsComplexType<To>) {
    return To(CastElement<From, typename To::value_type>(x));
  } else if constexpr (kIsHalfType<From>) {
    return CastElement<float, To>(static_cast<float>(x));
  } else if constexpr (kIsHalfType<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Numbers that do not fit: what x86-64 gives, which no rule says, by way of the next wider
    // signed type.
    if constexpr (sizeof(To) < 4) return static_cast<To>(static_cast<int32_t>(x));
    if constexpr (std::is_same_v<To, uint32_t>) return static_cast<To>(static_cast<int64_t>(x));
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void CastLoop(const void* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in);
  To* y = static_cast<To*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = CastElement<From, To>(x[i]);
}

}  // namespace troupe::internal

#endif  // TROUPE_KERNELS_MATH_CAST_LOOP_H_

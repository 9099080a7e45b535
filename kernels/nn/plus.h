/// Sums of numbers of any type.
#ifndef TROUPE_KERNELS_NN_PLUS_H_
#define TROUPE_KERNELS_NN_PLUS_H_

#include <type_traits>

namespace troupe {

/// a + b; integers wrap, 16-bit floating types are added as floats.
template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    T sum;
    static_cast<void>(__builtin_add_overflow(a, b, &sum));
    return sum;
  } else if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    return T(static_cast<float>(a) + static_cast<float>(b));
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_PLUS_H_

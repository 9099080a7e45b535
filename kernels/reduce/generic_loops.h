/// Reduction loops that are compiled once, for element types that are seldom reduced.
#ifndef TROUPE_KERNELS_REDUCE_GENERIC_LOOPS_H_
#define TROUPE_KERNELS_REDUCE_GENERIC_LOOPS_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/reduce/reduce_loops.h"

namespace troupe::internal {

struct SumOf {
  template <typename A>
  static A Identity() {
    return A(0);
  }
  template <typename A>
  static A Join(A a, A b) {
    if constexpr (std::is_integral_v<A>) {  // Wraps around.
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct ProdOf {
  template <typename A>
  static A Identity() {
    return A(1);
  }
  template <typename A>
  static A Join(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct MaxOf {
  template <typename A>
  static A Identity() {
    return std::numeric_limits<A>::lowest();
  }
  template <typename A>
  static A Join(A a, A b) {
    return a > b ? a : b;
  }
};
struct MinOf {
  template <typename A>
  static A Identity() {
    return std::numeric_limits<A>::max();
  }
  template <typename A>
  static A Join(A a, A b) {
    return a < b ? a : b;
  }
};
struct AllOf {
  template <typename A>
  static A Identity() {
    return true;
  }
  template <typename A>
  static A Join(A a, A b) {
    return a & b;
  }
};
struct AnyOf {
  template <typename A>
  static A Identity() {
    return false;
  }
  template <typename A>
  static A Join(A a, A b) {
    return a | b;
  }
};

template <typename R, typename T, typename A>
void GenericRows(const void* in, int64_t rows, int64_t n, void* acc) {
  const T* x = static_cast<const T*>(in);
  for (int64_t r = 0; r < rows; ++r, x += n) {
    A result = R::template Identity<A>();
    for (int64_t i = 0; i < n; ++i) result = R::Join(result, static_cast<A>(x[i]));
    static_cast<A*>(acc)[r] = result;
  }
}

template <typename R, typename T, typename A>
void GenericCols(const void* in, int64_t rows, int64_t stride, int64_t cols, void* acc_out) {
  const T* x = static_cast<const T*>(in);
  A* acc = static_cast<A*>(acc_out);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) acc[c] = R::Join(acc[c], static_cast<A>(x[r * stride + c]));
  }
}

template <typename T, typename A, bool kMean>
void Finish(const void* acc, void* out, int64_t n, int64_t count) {
  const A* x = static_cast<const A*>(acc);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (!kMean) {
      y[i] = static_cast<T>(x[i]);
    } else if constexpr (std::is_integral_v<A>) {
      y[i] = count == 0 ? T(0) : static_cast<T>(x[i] / static_cast<A>(count));
    } else if constexpr (std::is_floating_point_v<A>) {
      y[i] = static_cast<T>(x[i] / static_cast<A>(count));
    } else {
      // As in TensorFlow: the mean of nothing is 0, and the count is a complex number, too, by
      // which an infinity becomes one with a NaN.
      if (count == 0) {
        y[i] = T(0);
      } else {
        y[i] = count == 1 ? x[i] : x[i] / A(static_cast<typename A::value_type>(count));
      }
    }
  }
}

template <typename R, typename T, typename A = T>
ReduceLoops Loops(bool mean) {
  ReduceLoops loops;
  loops.rows = GenericRows<R, T, A>;
  loops.cols = GenericCols<R, T, A>;
  loops.join = GenericCols<R, A, A>;
  if (mean) {
    loops.finish = Finish<T, A, true>;
  } else if (!std::is_same_v<T, A>) {
    loops.finish = Finish<T, A, false>;
  }
  loops.acc_type = kElementType<A>;
  return loops;
}

}  // namespace troupe::internal

#endif  // TROUPE_KERNELS_REDUCE_GENERIC_LOOPS_H_

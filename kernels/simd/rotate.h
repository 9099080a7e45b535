/// Rotations of the rows of a matrix, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_ROTATE_H_
#define TROUPE_KERNELS_SIMD_ROTATE_H_

#include <cstdint>

namespace troupe {

/// For k = 0 to `count` - 1 in turn, rows k and k + 1 become cosines[k] * row k + sines[k] * row
/// k + 1 and cosines[k] * row k + 1 - sines[k] * row k. Rows of `columns` elements lie one after
/// the other. Thread-safe.
template <typename R>
using RotateRowsFn = void (*)(const R* cosines, const R* sines, int64_t count, int64_t columns,
                              R* rows);

/// The best functions that this processor can run. R is float or double.
template <typename R>
RotateRowsFn<R> RotateRows();

#define TROUPE_DECLARE_ROTATE(ISA)                                                           \
  namespace ISA {                                                                            \
  void RotateAll(const float* cosines, const float* sines, int64_t count, int64_t columns,   \
                 float* rows);                                                               \
  void RotateAll(const double* cosines, const double* sines, int64_t count, int64_t columns, \
                 double* rows);                                                              \
  }
TROUPE_DECLARE_ROTATE(v2)
TROUPE_DECLARE_ROTATE(v3)
TROUPE_DECLARE_ROTATE(v4)
#undef TROUPE_DECLARE_ROTATE

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_ROTATE_H_

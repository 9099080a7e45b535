#include "kernels/simd/rotate.h"

#include "kernels/simd/vector_bytes.h"

namespace troupe::TROUPE_ISA {
namespace {

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef double DoubleVector __attribute__((vector_size(kVectorBytes)));

// kN vectors of columns, from the first row to the last: what a row has become after its first
// rotation waits in registers for its second.
template <typename V, int kN, typename R>
inline void RotateColumns(const R* cosines, const R* sines, int64_t count, int64_t columns,
                          R* row) {
  constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(R));
  V upper[kN];
  for (int i = 0; i < kN; ++i) __builtin_memcpy(&upper[i], row + i * kLanes, sizeof(V));
  for (int64_t k = 0; k < count; ++k, row += columns) {
    const R c = cosines[k], s = sines[k];
#pragma GCC unroll 4
    for (int i = 0; i < kN; ++i) {
      V lower;
      __builtin_memcpy(&lower, row + columns + i * kLanes, sizeof(V));
      const V done = upper[i] * c + lower * s;
      upper[i] = lower * c - upper[i] * s;
      __builtin_memcpy(row + i * kLanes, &done, sizeof(V));
    }
  }
  for (int i = 0; i < kN; ++i) __builtin_memcpy(row + i * kLanes, &upper[i], sizeof(V));
}

template <typename V, typename R>
inline void Rotate(const R* cosines, const R* sines, int64_t count, int64_t columns, R* rows) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(R));
  int64_t c = 0;
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
    RotateColumns<V, 4>(cosines, sines, count, columns, rows + c);
  }
  for (; c + kLanes <= columns; c += kLanes) {
    RotateColumns<V, 1>(cosines, sines, count, columns, rows + c);
  }
  for (; c < columns; ++c) RotateColumns<R, 1>(cosines, sines, count, columns, rows + c);
}

}  // namespace

void RotateAll(const float* cosines, const float* sines, int64_t count, int64_t columns,
               float* rows) {
  Rotate<FloatVector>(cosines, sines, count, columns, rows);
}
void RotateAll(const double* cosines, const double* sines, int64_t count, int64_t columns,
               double* rows) {
  Rotate<DoubleVector>(cosines, sines, count, columns, rows);
}

}  // namespace troupe::TROUPE_ISA

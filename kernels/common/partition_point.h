/// Search in sorted elements.
#ifndef TROUPE_KERNELS_COMMON_PARTITION_POINT_H_
#define TROUPE_KERNELS_COMMON_PARTITION_POINT_H_

#include <cstdint>

namespace troupe {

/// How many of the n elements `is_before` holds for, which come first. As std::partition_point, of
/// elements in any order too, but without branches: processors foresee only every other one.
template <typename T, typename F>
int64_t PartitionPoint(const T* elements, int64_t n, F is_before) {
  const T* at = elements;
  while (n > 0) {
    const int64_t half = n / 2;
    const int64_t if_before = -static_cast<int64_t>(is_before(at[half]));  // All bits or none.
    at += (half + 1) & if_before;
    n = half - ((2 * half + 1 - n) & if_before);
  }
  return at - elements;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_PARTITION_POINT_H_

/// The fastest of several ways to compute the same.
#ifndef TROUPE_KERNELS_CUDA_FASTEST_H_
#define TROUPE_KERNELS_CUDA_FASTEST_H_

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"

namespace troupe::cuda {

/// Which of `count` ways, one at least, takes the least time, the first of equal ones; `measure(i)`
/// gives the time of way i as absl::StatusOr<float>. Ways that fail are left out; if all of them
/// do, the error of the last.
template <typename Measure>
absl::StatusOr<size_t> Fastest(size_t count, Measure measure) {
  std::optional<size_t> best;
  float least = 0;
  absl::Status error;
  for (size_t i = 0; i < count; ++i) {
    const absl::StatusOr<float> time = measure(i);
    if (!time.ok()) {
      error = time.status();
    } else if (!best || *time < least) {
      best = i;
      least = *time;
    }
  }
  if (!best) return error;
  return *best;
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FASTEST_H_

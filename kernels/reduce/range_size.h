/// How many elements Range gives.
#ifndef TROUPE_KERNELS_REDUCE_RANGE_SIZE_H_
#define TROUPE_KERNELS_REDUCE_RANGE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// The number of terms from `start` to before `limit` by `delta`, scalars or vectors of one element
/// of half, bfloat16, float, double, int32 or int64, on the host. InvalidArgument if `delta` is 0
/// or leads away from `limit`, and for other shapes.
absl::StatusOr<int64_t> RangeSize(const Tensor& start, const Tensor& limit, const Tensor& delta);

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_RANGE_SIZE_H_

/// What the searches in sorted numbers want of their inputs, on all types of device.
#ifndef TROUPE_KERNELS_ARRAY_SORTED_SEARCH_H_
#define TROUPE_KERNELS_ARRAY_SORTED_SEARCH_H_

#include <algorithm>
#include <limits>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/kernel.h"

namespace troupe {

/// Of LowerBound and UpperBound.
inline absl::Status CheckBound(const Tensor& sorted, const Tensor& values, ElementType out_type) {
  if (sorted.rank() != 2 || values.rank() != 2 || sorted.dim(0) != values.dim(0)) {
    return InvalidArgument("sorted_inputs and values must be matrices with the same number of ",
                           "rows, got shapes ", sorted.shape().ToString(), " and ",
                           values.shape().ToString());
  }
  if (out_type == ElementType::kInt32 && sorted.dim(1) > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("rows of ", sorted.dim(1), " numbers need the out_type int64");
  }
  return absl::OkStatus();
}

/// The attribute of Bucketize.
inline absl::StatusOr<std::vector<float>> ReadBoundaries(KernelConstruction& construction) {
  auto boundaries = construction.Attr<std::vector<float>>("boundaries");
  if (std::is_sorted(boundaries.begin(), boundaries.end())) return boundaries;
  return InvalidArgument("boundaries must not fall");
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_SORTED_SEARCH_H_

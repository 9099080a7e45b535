/// The shape that a strided slice of a partly known shape has.
#ifndef TROUPE_GRAPH_OPS_STRIDED_SLICE_SHAPE_H_
#define TROUPE_GRAPH_OPS_STRIDED_SLICE_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/shape.h"

namespace troupe {

/// The inputs and attributes of a StridedSlice. Bit i of a mask belongs to position i of the
/// vectors, which have one length. Unknown bounds are absent.
struct StridedSliceSpec {
  std::optional<std::vector<int64_t>> begin, end;
  std::vector<int64_t> strides;
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
};

/// InvalidArgument for two ellipses, more positions than dimensions, a stride 0, a dropped
/// dimension whose index is outside or whose stride is negative.
absl::StatusOr<PartialShape> StridedSliceOutputShape(const StridedSliceSpec& spec,
                                                     const PartialShape& input);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_STRIDED_SLICE_SHAPE_H_

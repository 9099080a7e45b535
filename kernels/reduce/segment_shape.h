/// Shapes and errors of sums by segments.
#ifndef TROUPE_KERNELS_REDUCE_SEGMENT_SHAPE_H_
#define TROUPE_KERNELS_REDUCE_SEGMENT_SHAPE_H_

#include <cstdint>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"

namespace troupe {

/// The output's shape: [segments] and what of the data's shape comes after the ids'.
/// InvalidArgument if the data's does not start with that, or `segments` is negative.
inline absl::StatusOr<Shape> UnsortedSegmentShape(const Shape& data, const Shape& ids,
                                                  int64_t segments) {
  if (segments < 0) return InvalidArgument("num_segments must not be negative, got ", segments);
  bool prefix = ids.rank() <= data.rank();
  for (int d = 0; prefix && d < ids.rank(); ++d) prefix = ids.dim(d) == data.dim(d);
  if (!prefix) {
    return InvalidArgument("the data's shape ", data.ToString(),
                           " does not start with that of the segment ids, ", ids.ToString());
  }
  absl::InlinedVector<int64_t, 8> dims = {segments};
  for (int d = ids.rank(); d < data.rank(); ++d) dims.push_back(data.dim(d));
  return Shape::Create(dims);
}

/// InvalidArgument unless there is a number for each row.
inline absl::Status CheckSegmentShapes(const Shape& data, const Shape& ids) {
  if (ids.rank() == 1 && data.rank() >= 1 && data.dim(0) == ids.dim(0)) return absl::OkStatus();
  return InvalidArgument(
      "segment_ids must be a vector with a number for each row of data, got shapes ",
      ids.ToString(), " and ", data.ToString());
}

/// `rows` rows like those of `data`, which has at least one dimension.
inline absl::StatusOr<Shape> ShapeOfRows(const Shape& data, int64_t rows) {
  absl::InlinedVector<int64_t, 8> dims(data.dims().begin(), data.dims().end());
  dims[0] = rows;
  return Shape::Create(dims);
}

/// InvalidArgument unless the indices and the segments of rows that are picked are pairs.
inline absl::Status CheckPairShapes(const Shape& indices, const Shape& ids) {
  if (indices.rank() == 1 && ids.rank() == 1 && indices.dim(0) == ids.dim(0)) {
    return absl::OkStatus();
  }
  return InvalidArgument("indices and segment_ids must be vectors of one size, got shapes ",
                         indices.ToString(), " and ", ids.ToString());
}

/// For a number of segments that is no more than the last id.
inline absl::Status TooFewSegments(int64_t segments, int64_t last) {
  return InvalidArgument("num_segments is ", segments, " but the last of segment_ids is ", last);
}

/// For an id that is negative, less than the one before it, or the largest int64.
inline absl::Status SegmentOrderError(int64_t row, int64_t id, int64_t before) {
  if (id == std::numeric_limits<int64_t>::max()) {
    return InvalidArgument("segment_ids[", row, "] = ", id, " is too large");
  }
  return InvalidArgument("segment_ids[", row, "] = ", id,
                         id < 0 ? " is negative" : StrCat(" comes after ", before),
                         ": segment ids must not be negative and must not fall");
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_SEGMENT_SHAPE_H_

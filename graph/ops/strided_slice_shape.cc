#include "graph/ops/strided_slice_shape.h"

#include <algorithm>

#include "devices/status_macros.h"

namespace troupe {
namespace {

bool Bit(int64_t mask, int i) { return (mask >> i) & 1; }

/// What one position of the specification says about one dimension of the input.
struct DimSlice {
  int64_t begin = 0, end = 0, stride = 1;
  bool no_begin = true, no_end = true;  ///< From the first element; up to the last.
  bool drop = false;
};

/// Clamps `bound` into what a slice of `size` elements by `stride` can start or end with.
int64_t Clamp(int64_t bound, int64_t size, int64_t stride) {
  const int64_t forward = bound < 0 ? bound + size : bound;
  return stride > 0 ? std::clamp<int64_t>(forward, 0, size)
                    : std::clamp<int64_t>(forward, -1, size - 1);
}

int64_t Steps(int64_t length, int64_t stride) {
  if (length == 0 || (length < 0) != (stride < 0)) return 0;
  return length / stride + (length % stride != 0 ? 1 : 0);
}

/// The size of a dimension after slicing, -1 if unknown.
absl::StatusOr<int64_t> SlicedSize(const DimSlice& slice, bool bounds_known, int64_t size,
                                   int dim) {
  if (slice.stride == 0) return InvalidArgument("The stride of dimension ", dim, " is 0");
  if (size == -1) return slice.drop ? 1 : -1;
  if (slice.drop) {
    if (slice.stride < 0) {
      return InvalidArgument("Dimension ", dim, " is dropped; its stride must be positive, not ",
                             slice.stride);
    }
    const int64_t at = slice.begin < 0 ? slice.begin + size : slice.begin;
    if (bounds_known && (at < 0 || at >= size)) {
      return InvalidArgument("The index ", slice.begin, " is outside of dimension ", dim,
                             " of size ", size);
    }
    return 1;
  }
  if (!bounds_known) {
    if (!slice.no_begin || !slice.no_end) return -1;
    return Steps(slice.stride < 0 ? -size : size, slice.stride);
  }
  const bool forward = slice.stride > 0;
  const int64_t begin =
      slice.no_begin ? (forward ? 0 : size - 1) : Clamp(slice.begin, size, slice.stride);
  const int64_t end = slice.no_end ? (forward ? size : -1) : Clamp(slice.end, size, slice.stride);
  return Steps(end - begin, slice.stride);
}

}  // namespace

absl::StatusOr<PartialShape> StridedSliceOutputShape(const StridedSliceSpec& spec,
                                                     const PartialShape& input) {
  // The ellipsis may come after the last position, hence one bit more than positions.
  const int positions = static_cast<int>(spec.strides.size());
  if (positions >= 32) {
    return InvalidArgument("A slice has at most 31 positions, not ", positions);
  }
  const int64_t ellipses = spec.ellipsis_mask;
  if ((ellipses & (ellipses - 1)) != 0) {
    return InvalidArgument("A slice can have only one ellipsis");
  }
  int ellipsis = positions, new_axes_after = 0;
  for (int i = 0; i < positions; ++i) {
    if (Bit(ellipses, i)) {
      ellipsis = i;
    } else if (ellipsis < i && Bit(spec.new_axis_mask, i)) {
      ++new_axes_after;
    }
  }
  const int all_positions = ellipsis == positions ? positions + 1 : positions;
  const bool bounds_known = spec.begin.has_value() && spec.end.has_value();

  std::vector<int64_t> sizes;
  int dim = 0;
  for (int i = 0; i < all_positions; ++i) {
    if (i == ellipsis) {
      const int next =
          std::min(input.rank() - (all_positions - i) + 1 + new_axes_after, input.rank());
      for (; dim < next; ++dim) sizes.push_back(input.dim(dim));
      continue;
    }
    if (Bit(spec.new_axis_mask, i)) {
      sizes.push_back(1);
      continue;
    }
    if (dim == input.rank()) {
      return InvalidArgument("The slice has a position for dimension ", dim,
                             ", but the input has the shape ", input.ToString());
    }
    DimSlice slice;
    if (spec.begin) slice.begin = (*spec.begin)[i];
    if (spec.end) slice.end = (*spec.end)[i];
    slice.stride = spec.strides[i];
    slice.no_begin = Bit(spec.begin_mask, i);
    slice.no_end = Bit(spec.end_mask, i);
    slice.drop = Bit(spec.shrink_axis_mask, i);
    TROUPE_ASSIGN_OR_RETURN(const int64_t size,
                            SlicedSize(slice, bounds_known, input.dim(dim), dim));
    if (!slice.drop) sizes.push_back(size);
    ++dim;
  }
  return PartialShape(sizes);
}

}  // namespace troupe

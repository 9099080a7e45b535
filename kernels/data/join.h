/// Putting the tensors of a list or an array together to one.
#ifndef TROUPE_KERNELS_DATA_JOIN_H_
#define TROUPE_KERNELS_DATA_JOIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"

namespace troupe {

/// A run of elements of a tensor that is put together.
struct Piece {
  const void* from;  ///< nullptr: zeros.
  int64_t count;     ///< Elements.
};

/// Writes the pieces one after another into a newly allocated tensor, which they must fill; on
/// several threads if there is much.
void WritePieces(KernelContext& ctx, absl::Span<const Piece> pieces, Tensor* out);

/// Row `i` of dimension 0, without that dimension, sharing memory.
Tensor RowOf(const Tensor& tensor, const Shape& row_shape, int64_t i);
/// The shape of `rows` of shape `row`. InvalidArgument if it has too many elements.
absl::StatusOr<Shape> ShapeOfRows(int64_t rows, const Shape& row);
/// A shape without its first dimension (the rank must be at least 1).
Shape WithoutFirst(const Shape& shape);
PartialShape WithoutFirst(const PartialShape& shape);

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_JOIN_H_

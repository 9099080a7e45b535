/// Partly known shapes of batches of matrices, for shape functions of linear algebra. Errors are
/// InvalidArgument.
#ifndef TROUPE_GRAPH_OPS_MATRIX_SHAPES_H_
#define TROUPE_GRAPH_OPS_MATRIX_SHAPES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/shape_inference.h"

namespace troupe {

/// `shape` as a batch of square matrices.
absl::StatusOr<PartialShape> SquareMatrices(const PartialShape& shape);

/// The smaller of two sizes, -1 if that is unknown.
int64_t SmallerDim(int64_t a, int64_t b);

/// The length of the diagonals of matrices of a known rank.
int64_t DiagonalLength(const PartialShape& matrices);

/// Of MatMul and BatchMatMulV2 and their kin.
absl::Status MatMulShape(InferenceContext* c);
absl::Status BatchMatMulV2Shape(InferenceContext* c);

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_MATRIX_SHAPES_H_

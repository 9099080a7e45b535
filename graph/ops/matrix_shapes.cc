#include "graph/ops/matrix_shapes.h"

#include <algorithm>

#include "devices/status_macros.h"

namespace troupe {

using C = InferenceContext;

absl::StatusOr<PartialShape> SquareMatrices(const PartialShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrices, C::WithRankAtLeast(shape, 2));
  if (matrices.unknown_rank()) return matrices;
  TROUPE_ASSIGN_OR_RETURN(const int64_t n,
                          C::MergeDim(C::DimOf(matrices, -2), C::DimOf(matrices, -1)));
  return C::ReplaceDim(C::ReplaceDim(matrices, -2, n), -1, n);
}

int64_t SmallerDim(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == -1 || b == -1 ? -1 : std::min(a, b);
}

int64_t DiagonalLength(const PartialShape& matrices) {
  return SmallerDim(C::DimOf(matrices, -2), C::DimOf(matrices, -1));
}

}  // namespace troupe

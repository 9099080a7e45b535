// Sets along the last dimension of tensors.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/ops/sparse_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// A sparse result of rank `rank`, -1 if unknown.
absl::Status SetResult(InferenceContext* c, int64_t rank) {
  SetSparseOutput(c, {-1, rank});
  return absl::OkStatus();
}

absl::Status DenseToDenseShape(InferenceContext* c) {
  PartialShape a = c->input(0), b = c->input(1);
  if (!a.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(a, C::WithRankAtLeast(a, 2));
    TROUPE_ASSIGN_OR_RETURN(b, C::WithRank(b, a.rank()));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape a_sets, C::Subshape(a, 0, -1));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape b_sets, C::Subshape(b, 0, -1));
    TROUPE_RETURN_IF_ERROR(C::Merge(a_sets, b_sets).status());
  } else if (!b.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(b, C::WithRankAtLeast(b, 2));
  }
  return SetResult(c, b.rank());
}

absl::Status DenseToSparseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const SparseSizes b, SparseInputSizes(c, 1));
  PartialShape a = c->input(0);
  if (a.unknown_rank()) return SetResult(c, b.rank);
  TROUPE_ASSIGN_OR_RETURN(a, C::WithRankAtLeast(a, 2));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(a.rank(), b.rank).status());
  return SetResult(c, a.rank());
}

absl::Status SparseToSparseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const SparseSizes a, SparseInputSizes(c, 0));
  TROUPE_ASSIGN_OR_RETURN(const SparseSizes b, SparseInputSizes(c, 3));
  TROUPE_ASSIGN_OR_RETURN(const int64_t rank, C::MergeDim(a.rank, b.rank));
  if (rank == 0 || rank == 1) {
    return InvalidArgument("sets must have a rank of 2 at least, got ", rank);
  }
  return SetResult(c, rank);
}

constexpr char kSetTypes[] = "T: {int8, int16, int32, int64, uint8, uint16, string}";

REGISTER_OP("DenseToDenseSetOperation")
    .Signature("set1: T, set2: T -> result_indices: int64, result_values: T, result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr(kSetTypes)
    .SetShapeFn(DenseToDenseShape)
    .Doc(
        "Combines sets: each row along the last dimension is one, repeated values count once. "
        "`set_operation` is 'a-b', 'b-a', 'intersection' or 'union'. Both tensors agree in all "
        "dimensions but the last one, and have at least two. The result is sparse, with the values "
        "of each set in ascending order. `validate_indices` is not used.");

REGISTER_OP("DenseToSparseSetOperation")
    .Signature(
        "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64 -> result_indices: int64, "
        "result_values: T, result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr(kSetTypes)
    .SetShapeFn(DenseToSparseShape)
    .Doc(
        "As `DenseToDenseSetOperation`, with the second tensor sparse. `validate_indices`: check "
        "that its indices are in row-major order.");

REGISTER_OP("SparseToSparseSetOperation")
    .Signature(
        "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, set2_values: "
        "T, set2_shape: int64 -> result_indices: int64, result_values: T, result_shape: int64")
    .Attr("set_operation: string")
    .Attr("validate_indices: bool = true")
    .Attr(kSetTypes)
    .SetShapeFn(SparseToSparseShape)
    .Doc(
        "As `DenseToDenseSetOperation`, with both tensors sparse. `validate_indices`: check that "
        "indices are in row-major order.");

REGISTER_OP("SetSize")
    .Signature("set_indices: int64, set_values: T, set_shape: int64 -> size: int32")
    .Attr("validate_indices: bool = true")
    .Attr(kSetTypes)
    .SetShapeFn(UnknownShape)
    .Doc(
        "How many different values each row along the last dimension of a sparse tensor has: a "
        "dense tensor of its shape without that dimension. `validate_indices`: check that indices "
        "are in row-major order.");

}  // namespace
}  // namespace troupe

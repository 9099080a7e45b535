// Sparse tensors rearranged, joined, split and filled up.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/ops/sparse_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SparseReorderShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values, C::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  c->set_output(0, indices);
  c->set_output(1, values);
  return absl::OkStatus();
}

absl::Status SparseReshapeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(0), 2));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::WithRank(c->input(2), 1));
  c->set_output(0, PartialShape({indices.dim(0), shape.dim(0)}));
  c->set_output(1, shape);
  return absl::OkStatus();
}

absl::Status SparseConcatShape(InferenceContext* c) {
  const int n = c->num_inputs() / 3;
  SparseSizes sizes{0, -1};
  int64_t shape_size = -1;
  for (int i = 0; i < n; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(i), 2));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape values, C::WithRank(c->input(n + i), 1));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::WithRank(c->input(2 * n + i), 1));
    TROUPE_ASSIGN_OR_RETURN(const int64_t count, C::MergeDim(indices.dim(0), values.dim(0)));
    TROUPE_ASSIGN_OR_RETURN(sizes.count, AddDims(sizes.count, count));
    TROUPE_ASSIGN_OR_RETURN(sizes.rank, C::MergeDim(sizes.rank, indices.dim(1)));
    TROUPE_ASSIGN_OR_RETURN(shape_size, C::MergeDim(shape_size, shape.dim(0)));
    TROUPE_RETURN_IF_ERROR(C::MergeDim(sizes.rank, shape_size).status());
  }
  SetSparseOutput(c, sizes);
  c->set_output(2, C::VectorOf(shape_size));
  return absl::OkStatus();
}

absl::Status SparseSplitShape(InferenceContext* c) {
  const PartialShape& shape = c->input(3);
  const int n = c->num_outputs() / 3;
  for (int i = 0; i < n; ++i) {
    c->set_output(i, PartialShape({-1, C::NumElements(shape)}));
    c->set_output(n + i, C::VectorOf(-1));
    c->set_output(2 * n + i, shape);
  }
  return absl::OkStatus();
}

absl::Status SparseSliceShape(InferenceContext* c) {
  const PartialShape& shape = c->input(2);
  SetSparseOutput(c, {-1, C::NumElements(shape)});
  c->set_output(2, shape);
  return absl::OkStatus();
}

absl::Status SparseSliceGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(1), 2));
  return SetShape(c, C::VectorOf(indices.dim(0)));
}

absl::Status SparseFillEmptyRowsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const SparseSizes sizes, SparseInputSizes(c, 0));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(3), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->InputAsShape(2));
  c->set_output(0, PartialShape({-1, C::NumElements(c->input(2))}));
  c->set_output(1, C::VectorOf(-1));
  c->set_output(2, C::VectorOf(shape.unknown_rank() || shape.rank() == 0 ? -1 : shape.dim(0)));
  c->set_output(3, C::VectorOf(sizes.count));
  return absl::OkStatus();
}

absl::Status SparseFillEmptyRowsGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape map, C::WithRank(c->input(0), 1));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  c->set_output(0, map);
  c->set_output(1, C::Scalar());
  return absl::OkStatus();
}

REGISTER_OP("SparseReorder")
    .Signature(
        "input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64, "
        "output_values: T")
    .Attr("T: type")
    .SetShapeFn(SparseReorderShape)
    .Doc(
        "Brings the elements of a sparse tensor into row-major order: what most ops on sparse "
        "tensors expect. `input_indices` [n, rank], `input_values` [n], `input_shape` [rank]; the "
        "outputs have the same shapes. Equal indices keep their order.");

REGISTER_OP("SparseReshape")
    .Signature(
        "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, "
        "output_shape: int64")
    .SetShapeFn(SparseReshapeShape)
    .Doc(
        "The indices that the elements of a sparse tensor have in another shape with as many "
        "elements. `input_indices` [n, rank], `input_shape` [rank]; `new_shape` [m], one size of "
        "which may be -1, to be computed. `output_indices` [n, m], `output_shape` [m].");

REGISTER_OP("SparseConcat")
    .Signature(
        "indices: N * int64, values: N * T, shapes: N * int64 -> output_indices: int64, "
        "output_values: T, output_shape: int64")
    .Attr("concat_dim: int")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .SetShapeFn(SparseConcatShape)
    .Doc(
        "Joins sparse tensors along dimension `concat_dim`, which counts from the back if it is "
        "negative. Their shapes agree in all other dimensions. The result is in row-major order.");

REGISTER_OP("SparseSplit")
    .Signature(
        "split_dim: int64, indices: int64, values: T, shape: int64 -> output_indices: num_split * "
        "int64, output_values: num_split * T, output_shape: num_split * int64")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .SetShapeFn(SparseSplitShape)
    .Doc(
        "Splits a sparse tensor into `num_split` along the scalar dimension `split_dim`. If its "
        "size is no multiple of `num_split`, the first ones are larger by one.");

REGISTER_OP("SparseSlice")
    .Signature(
        "indices: int64, values: T, shape: int64, start: int64, size: int64 -> output_indices: "
        "int64, output_values: T, output_shape: int64")
    .Attr("T: type")
    .SetShapeFn(SparseSliceShape)
    .Doc(
        "The part of a sparse tensor that begins at `start` [rank] and has at most the sizes "
        "`size` [rank]: what lies outside of the tensor is left out.");

REGISTER_OP("SparseSliceGrad")
    .Signature(
        "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64 -> "
        "val_grad: T")
    .Attr("T: numbertype")
    .SetShapeFn(SparseSliceGradShape)
    .Doc(
        "The gradient of `SparseSlice` for its `values`, given that for its `output_values`, "
        "`backprop_val_grad`; 0 for elements that it leaves out. `input_indices` and `input_start` "
        "are what it was given, `output_indices` what it gave, all in row-major order.");

REGISTER_OP("SparseFillEmptyRows")
    .Signature(
        "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, "
        "output_values: T, empty_row_indicator: bool, reverse_index_map: int64")
    .Attr("T: type")
    .SetShapeFn(SparseFillEmptyRowsShape)
    .Doc(
        "Puts the scalar `default_value` at the first place of every row, along the first "
        "dimension, that has no element. Elements come out by rows. `empty_row_indicator` "
        "[dense_shape[0]] tells which rows these are, `reverse_index_map` [n] where each element "
        "has gone.");

REGISTER_OP("SparseFillEmptyRowsGrad")
    .Signature("reverse_index_map: int64, grad_values: T -> d_values: T, d_default_value: T")
    .Attr("T: type")
    .SetShapeFn(SparseFillEmptyRowsGradShape)
    .Doc(
        "The gradients of `SparseFillEmptyRows` for its `values` and its `default_value`, given "
        "that for its `output_values`, `grad_values`, and its `reverse_index_map`.");

}  // namespace
}  // namespace troupe

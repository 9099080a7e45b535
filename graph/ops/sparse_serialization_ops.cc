// Sparse tensors as one value each: bytes, or a number under which they are kept.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/ops/sparse_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status CheckSparseInput(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 2).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  return C::WithRank(c->input(2), 1).status();
}

absl::Status SerializeSparseShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSparseInput(c));
  return SetShape(c, C::VectorOf(3));
}

absl::Status SerializeManySparseShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSparseInput(c));
  return SetShape(c, PartialShape({-1, 3}));
}

absl::Status DeserializeSparseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_RETURN_IF_ERROR(WithValue(C::DimOf(input, -1), 3).status());
  SetSparseOutput(c, {});
  return absl::OkStatus();
}

absl::Status DeserializeManySparseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 2));
  TROUPE_RETURN_IF_ERROR(WithValue(input.dim(1), 3).status());
  SetSparseOutput(c, {});
  return absl::OkStatus();
}

absl::Status AddSparseShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSparseInput(c));
  return ScalarShape(c);
}

absl::Status AddManySparseShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckSparseInput(c));
  return SetShape(c, C::VectorOf(-1));
}

absl::Status TakeManySparseShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 1).status());
  SetSparseOutput(c, {});
  return absl::OkStatus();
}

REGISTER_OP("SerializeSparse")
    .Signature(
        "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> serialized_sparse: "
        "out_type")
    .Attr("T: type")
    .Attr("out_type: {string, variant} = string")
    .SetShapeFn(SerializeSparseShape)
    .Doc(
        "A sparse tensor as a vector of three elements, which stand for its indices, values and "
        "shape: messages `TensorProto`, or variants.");

REGISTER_OP("SerializeManySparse")
    .Signature(
        "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> serialized_sparse: "
        "out_type")
    .Attr("T: type")
    .Attr("out_type: {string, variant} = string")
    .SetShapeFn(SerializeManySparseShape)
    .Doc(
        "Each row, along the first dimension, of a sparse tensor of rank 2 at least as three "
        "elements, as `SerializeSparse` gives them: [sparse_shape[0], 3].");

REGISTER_OP("DeserializeSparse")
    .Signature(
        "serialized_sparse: Tserialized -> sparse_indices: int64, sparse_values: dtype, "
        "sparse_shape: int64")
    .Attr("dtype: type")
    .Attr("Tserialized: {string, variant} = string")
    .SetShapeFn(DeserializeSparseShape)
    .Doc(
        "The inverse of `SerializeSparse`. `serialized_sparse` [..., 3] holds sparse tensors of "
        "one "
        "rank with values of `dtype`; its dimensions but the last one come before theirs in the "
        "result. Each of those is as large as the largest of them.");

REGISTER_OP("DeserializeManySparse")
    .Signature(
        "serialized_sparse: string -> sparse_indices: int64, sparse_values: dtype, sparse_shape: "
        "int64")
    .Attr("dtype: type")
    .SetShapeFn(DeserializeManySparseShape)
    .Doc(
        "The inverse of `SerializeManySparse`: `serialized_sparse` [n, 3] holds sparse tensors of "
        "one rank with values of `dtype`, which become the rows of one.");

REGISTER_OP("AddSparseToTensorsMap")
    .Signature(
        "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handle: int64")
    .Attr("T: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(AddSparseShape)
    .Doc(
        "Keeps a sparse tensor and gives its number, a scalar. The map is named by `shared_name` "
        "in "
        "`container`, or like the node.");

REGISTER_OP("AddManySparseToTensorsMap")
    .Signature(
        "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handles: int64")
    .Attr("T: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(AddManySparseShape)
    .Doc(
        "Keeps each row, along the first dimension, of a sparse tensor of rank 2 at least, and "
        "gives "
        "their numbers. The map is named by `shared_name` in `container`, or like the node.");

REGISTER_OP("TakeManySparseFromTensorsMap")
    .Signature(
        "sparse_handles: int64 -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64")
    .Attr("dtype: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(TakeManySparseShape)
    .Doc(
        "Takes the sparse tensors with the numbers `sparse_handles`, a vector, out of a map; they "
        "become the rows of one. The map is that of an `AddSparseToTensorsMap` or an "
        "`AddManySparseToTensorsMap` with the same `container` and name.");

}  // namespace
}  // namespace troupe

// Crosses of features: every combination of the values that some columns have in a row.
#include "graph/op_registry.h"
#include "graph/ops/sparse_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status SparseCrossShape(InferenceContext* c) {
  SetSparseOutput(c, {-1, 2});
  return absl::OkStatus();
}

REGISTER_OP("SparseCross")
    .Signature(
        "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types -> "
        "output_indices: int64, output_values: out_type, output_shape: int64")
    .Attr("N: int >= 0")
    .Attr("hashed_output: bool")
    .Attr("num_buckets: int >= 0")
    .Attr("hash_key: int")
    .Attr("sparse_types: list({int64, string}) >= 0")
    .Attr("dense_types: list({int64, string}) >= 0")
    .Attr("out_type: {int64, string}")
    .Attr("internal_type: {int64, string}")
    .SetShapeFn(SparseCrossShape)
    .Doc(
        "Combines columns of features: `N` sparse matrices, then the dense matrices "
        "`dense_inputs`, all with as many rows. Each row of the result has every choice of one "
        "value from each column, the last column changing fastest. `hashed_output`: a number for "
        "each, made of `hash_key` and the fingerprints of the values, modulo `num_buckets` unless "
        "that is 0; otherwise the values' text with '_X_' between them. `out_type` is int64 for "
        "the former, string for the latter; `internal_type` makes no difference.");

REGISTER_OP("SparseCrossV2")
    .Signature(
        "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, "
        "sep: string -> output_indices: int64, output_values: string, output_shape: int64")
    .Attr("N: int >= 0")
    .Attr("sparse_types: list({int64, string}) >= 0")
    .Attr("dense_types: list({int64, string}) >= 0")
    .SetShapeFn(SparseCrossShape)
    .Doc(
        "As `SparseCross` without `hashed_output`: the values' text with the scalar `sep` between "
        "them.");

REGISTER_OP("SparseCrossHashed")
    .Signature(
        "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, "
        "num_buckets: int64, strong_hash: bool, salt: int64 -> output_indices: int64, "
        "output_values: int64, output_shape: int64")
    .Attr("N: int >= 0")
    .Attr("sparse_types: list({int64, string}) >= 0")
    .Attr("dense_types: list({int64, string}) >= 0")
    .SetShapeFn(SparseCrossShape)
    .Doc(
        "As `SparseCross` with `hashed_output`. `num_buckets` and `strong_hash` are scalars; 0 "
        "buckets: all numbers. `strong_hash`: values are hashed by SipHash under the two numbers "
        "of `salt`, otherwise by their fingerprints.");

}  // namespace
}  // namespace troupe

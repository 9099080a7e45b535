// Tensors given by the places and values of some elements.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status SparseToDenseShape(InferenceContext* c) { return SetShape(c, c->InputAsShape(1)); }

}  // namespace

REGISTER_OP("SparseToDense")
    .Signature(
        "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> "
        "dense: T")
    .Attr("validate_indices: bool = true")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .SetShapeFn(SparseToDenseShape)
    .Doc(
        "Gives a tensor of shape `output_shape` with `sparse_values`, a vector or a scalar for "
        "all, at `sparse_indices` [n, rank] and `default_value` elsewhere. A vector of indices, or "
        "a scalar, is for a vector. Indices must be in order, each once, if `validate_indices`.");

}  // namespace troupe

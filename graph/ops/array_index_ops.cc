// Gathering, scattering and searching.
#include <algorithm>
#include <cstdlib>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/scatter_shape.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status DynamicStitchShape(InferenceContext* c) {
  const int parts = c->num_inputs() / 2;
  bool all_known = true;
  int64_t largest = -1;
  PartialShape rest;
  for (int i = 0; i < parts; ++i) {
    const Tensor& indices = c->input_tensor(i);
    if (!indices.valid()) all_known = false;
    const PartialShape& indices_shape = c->input(i);
    const PartialShape& data_shape = c->input(i + parts);
    if (indices_shape.unknown_rank()) continue;
    PartialShape merged;
    TROUPE_RETURN_IF_ERROR(MergePrefix(data_shape, indices_shape, &merged));
    TROUPE_ASSIGN_OR_RETURN(const PartialShape data_rest,
                            C::Subshape(data_shape, indices_shape.rank()));
    TROUPE_ASSIGN_OR_RETURN(rest, C::Merge(rest, data_rest));
    if (indices.valid()) {
      for (const int64_t index : IntegerValues(indices)) largest = std::max(largest, index);
    }
  }
  return SetShape(c, C::VectorOf(all_known ? largest + 1 : -1).Concatenate(rest));
}

absl::Status GatherShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape params, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(params, 1));
  return SetShape(c, c->input(1).Concatenate(row));
}

absl::Status GatherV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape params, C::WithRankAtLeast(c->input(0), 1));
  const PartialShape& indices = c->input(1);
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  TROUPE_ASSIGN_OR_RETURN(int32_t batch_dims, c->attrs().Get<int32_t>("batch_dims"));
  const Tensor& axis_value = c->input_tensor(2);
  const bool ranks_known = !params.unknown_rank() && !indices.unknown_rank();
  if (std::abs(int64_t{batch_dims}) > Shape::kMaxRank) {
    return InvalidArgument("batch_dims is ", batch_dims);
  }
  if (!axis_value.valid()) {
    const int rank = params.rank() + indices.rank() - 1 - batch_dims;
    if (ranks_known && rank < 0) {
      return InvalidArgument("batch_dims is ", batch_dims, " for `params` of shape ",
                             params.ToString(), " and `indices` of shape ", indices.ToString());
    }
    return SetShape(c, ranks_known ? C::UnknownOfRank(rank) : PartialShape());
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t axis, ScalarValue(axis_value));
  if (std::abs(axis) > Shape::kMaxRank) return InvalidArgument("There is no axis ", axis);
  TROUPE_RETURN_IF_ERROR(
      C::WithRankAtLeast(params, static_cast<int>(axis < 0 ? -axis : axis + 1)).status());
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(indices, std::abs(batch_dims)).status());
  if (batch_dims < 0 && !indices.unknown_rank()) batch_dims += indices.rank();
  TROUPE_RETURN_IF_ERROR(C::WithRankAtLeast(params, batch_dims + 1).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape outer, C::Subshape(params, 0, axis));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape inner_indices, C::Subshape(indices, batch_dims));
  PartialShape output = outer.Concatenate(inner_indices);
  if (axis != -1) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape inner, C::Subshape(params, axis + 1));
    output = output.Concatenate(inner);
  }
  return SetShape(c, output);
}

absl::Status InTopKShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape predictions, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape targets, C::WithRank(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, C::MergeDim(predictions.dim(0), targets.dim(0)));
  return SetShape(c, C::VectorOf(batch));
}

absl::Status ListDiffShape(InferenceContext* c) {
  for (int i = 0; i < 2; ++i) {
    TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 1).status());
    c->set_output(i, C::VectorOf(-1));
  }
  return absl::OkStatus();
}

absl::Status ScatterNdShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape updates, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape output, c->InputAsShape(2));
  TROUPE_RETURN_IF_ERROR(CheckScatterNdShapes(output, indices, updates));
  return SetShape(c, output);
}

absl::Status TopKShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 1));
  int64_t k = -1;
  if (c->num_inputs() == 1) {
    TROUPE_ASSIGN_OR_RETURN(k, c->attrs().Get<int64_t>("k"));
  } else if (const Tensor& value = c->input_tensor(1); value.valid()) {
    TROUPE_ASSIGN_OR_RETURN(k, ScalarValue(value));
    if (k < 0) return InvalidArgument("k must not be negative but is ", k);
  }
  const int64_t row = C::DimOf(input, -1);
  if (row != -1 && k > row) {
    return InvalidArgument("k is ", k, " but the last dimension of the input has size ", row);
  }
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, C::ReplaceDim(input, -1, k));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("DynamicStitch")
    .Signature("indices: N * int32, data: N * T -> merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .SetShapeFn(DynamicStitchShape)
    .Doc(
        "Merges slices: merged[indices[m][i, ...], ...] = data[m][i, ..., ...]. The last of "
        "several for one index counts.");

REGISTER_OP("Gather")
    .Signature("params: Tparams, indices: Tindices -> output: Tparams")
    .Attr("validate_indices: bool = true")
    .Attr("Tparams: type")
    .Attr("Tindices: {int32, int64}")
    .SetShapeFn(GatherShape)
    .Doc(
        "Takes the rows of `params` that `indices` names. Gives indices.shape + "
        "params.shape[1:].");

REGISTER_OP("GatherV2")
    .Signature("params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams")
    .Attr("batch_dims: int = 0")
    .Attr("Tparams: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("Taxis: {int32, int64}")
    .SetShapeFn(GatherV2Shape)
    .Doc(
        "Takes the slices of `params` along `axis` that `indices` names, after `batch_dims` "
        "common dimensions. Gives params.shape[:axis] + indices.shape[batch_dims:] + "
        "params.shape[axis+1:].");

REGISTER_OP("InTopK")
    .Signature("predictions: float, targets: T -> precision: bool")
    .Attr("k: int")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(InTopKShape)
    .Doc(
        "Tells for each row of `predictions` [batch, classes] whether the class `targets` "
        "[batch] is among the `k` largest.");

REGISTER_OP("InTopKV2")
    .Signature("predictions: float, targets: T, k: T -> precision: bool")
    .Attr("T: {int32, int64} = DT_INT32")
    .SetShapeFn(InTopKShape)
    .Doc(
        "Tells for each row of `predictions` [batch, classes] whether the class `targets` "
        "[batch] is among the `k` largest.");

REGISTER_OP("ListDiff")
    .Signature("x: T, y: T -> out: T, idx: out_idx")
    .Attr("T: type")
    .Attr("out_idx: {int32, int64} = DT_INT32")
    .SetShapeFn(ListDiffShape)
    .Doc(
        "Gives the elements of vector `x` that are not in vector `y`, in order, and their "
        "positions in `x`.");

REGISTER_OP("ParallelDynamicStitch")
    .Signature("indices: N * int32, data: N * T -> merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .SetShapeFn(DynamicStitchShape)
    .Doc(
        "Merges slices: merged[indices[m][i, ...], ...] = data[m][i, ..., ...]. Of several for one "
        "index any may count.");

REGISTER_OP("ScatterNd")
    .Signature("indices: Tindices, updates: T, shape: Tindices -> output: T")
    .Attr("T: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(ScatterNdShape)
    .Doc(
        "Adds slices of `updates` into zeros of shape `shape` at the coordinates in the last "
        "dimension of `indices`.");

REGISTER_OP("TopK")
    .Signature("input: T -> values: T, indices: int32")
    .Attr("k: int >= 0")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Deprecated(7, "Use TopKV2 instead")
    .SetShapeFn(TopKShape)
    .Doc(
        "Gives the `k` largest elements of each last-dimension row of `input`, in falling order "
        "if `sorted`, and their positions.");

REGISTER_OP("TopKV2")
    .Signature("input: T, k: Tk -> values: T, indices: index_type")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Attr("Tk: {int16, int32, int64} = DT_INT32")
    .Attr("index_type: {int16, int32, int64} = DT_INT32")
    .SetShapeFn(TopKShape)
    .Doc(
        "Gives the `k` largest elements of each last-dimension row of `input`, in falling order "
        "if `sorted`, and their positions.");

}  // namespace troupe

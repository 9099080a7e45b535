// Scattered updates of variables and slices taken from them.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/scatter_shape.h"
#include "graph/ops/shape_functions.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The shape of the variable that is input 0, a reference or (where there is no output) a handle.
PartialShape VariableShapeOf(InferenceContext* c) {
  return c->num_outputs() == 0 ? HandleShape(c, 0) : c->input(0);
}

/// The shape of the variable behind the handle that is input 0; its type must be the attribute
/// `dtype`.
absl::StatusOr<PartialShape> CheckedHandleShape(InferenceContext* c) {
  const HandleShapes& shapes = c->input_handle(0);
  if (shapes.empty()) return PartialShape();
  ElementType type;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("dtype", &type));
  if (shapes[0].first != type) {
    return InvalidArgument("The variable is of type ", ElementTypeName(shapes[0].first),
                           " but is used as one of ", ElementTypeName(type));
  }
  return shapes[0].second;
}

absl::Status ScatterRowsShape(InferenceContext* c) {
  PartialShape variable = VariableShapeOf(c);
  if (c->num_outputs() == 0) {
    TROUPE_ASSIGN_OR_RETURN(variable, CheckedHandleShape(c));
  } else {
    c->set_output(0, variable);
  }
  const PartialShape &indices = c->input(1), &updates = c->input(2);
  // A scalar update is for all.
  if (variable.unknown_rank() || indices.unknown_rank() || updates.rank() == 0) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(variable, 1));
  const PartialShape wanted = indices.Concatenate(row);
  if (!C::Merge(updates, wanted).ok()) {
    return InvalidArgument("The updates must have the shape of the indices, then that of a row of ",
                           "the variable, ", wanted.ToString(), ", or be a scalar; their shape is ",
                           updates.ToString());
  }
  return absl::OkStatus();
}

absl::Status ScatterNdVariableShape(InferenceContext* c) {
  const PartialShape variable = VariableShapeOf(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape updates, C::WithRankAtLeast(c->input(2), 1));
  TROUPE_RETURN_IF_ERROR(CheckScatterNdShapes(variable, indices, updates));
  if (c->num_outputs() > 0) c->set_output(0, variable);
  return absl::OkStatus();
}

absl::Status ResourceGatherShape(InferenceContext* c) {
  int64_t batch_dims;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("batch_dims", &batch_dims));
  if (batch_dims < 0 || batch_dims >= Shape::kMaxRank) {
    return InvalidArgument("batch_dims is ", batch_dims,
                           ": it must not be negative, nor larger than a rank can be");
  }
  const int dims = static_cast<int>(batch_dims);
  TROUPE_ASSIGN_OR_RETURN(PartialShape params, CheckedHandleShape(c));
  TROUPE_ASSIGN_OR_RETURN(params, C::WithRankAtLeast(params, dims + 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRankAtLeast(c->input(1), dims));
  if (params.unknown_rank() || indices.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(params, 0, dims));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape picked, C::Subshape(indices, dims));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape row, C::Subshape(params, dims + 1));
  c->set_output(0, batch.Concatenate(picked).Concatenate(row));
  return absl::OkStatus();
}

absl::Status ResourceGatherNdShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape params, CheckedHandleShape(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape output, GatherNdOutputShape(params, c->input(1)));
  c->set_output(0, output);
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("ResourceGather")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Output("output: dtype")
    .Attr("batch_dims: int = 0")
    .Attr("validate_indices: bool = true")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ResourceGatherShape)
    .Doc(
        "Takes the rows of the variable `resource` that `indices` names, after `batch_dims` "
        "common dimensions. Gives indices.shape + variable.shape[batch_dims + 1:].");

REGISTER_OP("ResourceGatherNd")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ResourceGatherNdShape)
    .Doc(
        "Takes the slices of the variable `resource` at the coordinates in the last dimension of "
        "`indices`. Gives indices.shape[:-1] + variable.shape[indices.shape[-1]:].");

REGISTER_OP("ResourceScatterAdd")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Adds `updates` to the rows of the variable `resource` that `indices` names. `updates` "
        "has a row for each index, or is a scalar for all.");

REGISTER_OP("ResourceScatterDiv")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Divides the rows of the variable `resource` that `indices` names by `updates`. "
        "`updates` has a row for each index, or is a scalar for all.");

REGISTER_OP("ResourceScatterMax")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Replaces the rows of the variable `resource` that `indices` names by `updates` where "
        "that is larger. `updates` has a row for each index, or is a scalar for all.");

REGISTER_OP("ResourceScatterMin")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Replaces the rows of the variable `resource` that `indices` names by `updates` where "
        "that is smaller. `updates` has a row for each index, or is a scalar for all.");

REGISTER_OP("ResourceScatterMul")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Multiplies the rows of the variable `resource` that `indices` names by `updates`. "
        "`updates` has a row for each index, or is a scalar for all.");

REGISTER_OP("ResourceScatterNdAdd")
    .Input("ref: resource")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = true")
    .Attr("bad_indices_policy: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScatterNdVariableShape)
    .Doc(
        "Adds the slices of `updates` to those of the variable `ref` at the coordinates in the "
        "last dimension of `indices`.");

REGISTER_OP("ResourceScatterNdSub")
    .Input("ref: resource")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = true")
    .Attr("bad_indices_policy: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScatterNdVariableShape)
    .Doc(
        "Subtracts the slices of `updates` from those of the variable `ref` at the coordinates "
        "in the last dimension of `indices`.");

REGISTER_OP("ResourceScatterNdUpdate")
    .Input("ref: resource")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = true")
    .Attr("bad_indices_policy: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScatterNdVariableShape)
    .Doc(
        "Replaces those of the variable `ref` at the coordinates in the last dimension of "
        "`indices` by the slices of `updates`. The last of several for one place counts.");

REGISTER_OP("ResourceScatterSub")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Subtracts `updates` from the rows of the variable `resource` that `indices` names. "
        "`updates` has a row for each index, or is a scalar for all.");

REGISTER_OP("ResourceScatterUpdate")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Input("updates: dtype")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Replaces the rows of the variable `resource` that `indices` names by `updates`. The "
        "last of several for one row counts. `updates` has a row for each index, or is a scalar "
        "for all.");

REGISTER_OP("ScatterAdd")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Adds `updates` to the rows of the variable `ref` that `indices` names. `updates` has a "
        "row for each index, or is a scalar for all. Gives the variable.");

REGISTER_OP("ScatterDiv")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Divides the rows of the variable `ref` that `indices` names by `updates`. `updates` has "
        "a row for each index, or is a scalar for all. Gives the variable.");

REGISTER_OP("ScatterMax")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: {half, bfloat16, float, double, int32, int64}")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Replaces the rows of the variable `ref` that `indices` names by `updates` where that is "
        "larger. `updates` has a row for each index, or is a scalar for all. Gives the variable.");

REGISTER_OP("ScatterMin")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: {half, bfloat16, float, double, int32, int64}")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Replaces the rows of the variable `ref` that `indices` names by `updates` where that is "
        "smaller. `updates` has a row for each index, or is a scalar for all. Gives the "
        "variable.");

REGISTER_OP("ScatterMul")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Multiplies the rows of the variable `ref` that `indices` names by `updates`. `updates` "
        "has a row for each index, or is a scalar for all. Gives the variable.");

REGISTER_OP("ScatterNdAdd")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(ScatterNdVariableShape)
    .Doc(
        "Adds the slices of `updates` to those of the variable `ref` at the coordinates in the "
        "last dimension of `indices`. Gives the variable.");

REGISTER_OP("ScatterNdSub")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(ScatterNdVariableShape)
    .Doc(
        "Subtracts the slices of `updates` from those of the variable `ref` at the coordinates "
        "in the last dimension of `indices`. Gives the variable.");

REGISTER_OP("ScatterNdUpdate")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = true")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(ScatterNdVariableShape)
    .Doc(
        "Replaces those of the variable `ref` at the coordinates in the last dimension of "
        "`indices` by the slices of `updates`. The last of several for one place counts. Gives "
        "the variable.");

REGISTER_OP("ScatterSub")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = false")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Subtracts `updates` from the rows of the variable `ref` that `indices` names. `updates` "
        "has a row for each index, or is a scalar for all. Gives the variable.");

REGISTER_OP("ScatterUpdate")
    .Input("ref: Ref(T)")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("use_locking: bool = true")
    .SetShapeFn(ScatterRowsShape)
    .Doc(
        "Replaces the rows of the variable `ref` that `indices` names by `updates`. The last of "
        "several for one row counts. `updates` has a row for each index, or is a scalar for all. "
        "Gives the variable.");

}  // namespace troupe

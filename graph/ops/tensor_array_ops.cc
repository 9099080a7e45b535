// Tensor arrays: arrays of tensors that are written and read element by element, mostly by loops.
// Version 2 has strings as handles, which are looked up; version 3 has resources. Version 1 is in
// tensor_array_reference_ops.cc.
#include <initializer_list>
#include <string>
#include <utility>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/op_versions.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// InvalidArgument unless input 0 may be a handle (by its static shape a vector of 2, as TensorFlow
/// has it), and `scalars` are scalars.
absl::Status CheckInputs(InferenceContext* c, std::initializer_list<int> scalars) {
  TROUPE_RETURN_IF_ERROR(C::VectorOf(2).MergeWith(c->input(0)).status());
  for (int i : scalars) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  return absl::OkStatus();
}

/// What is known of the elements of the array that input 0 is a handle to.
PartialShape ElementShape(InferenceContext* c) {
  const HandleShapes& handle = c->input_handle(0);
  return handle.empty() ? PartialShape() : handle[0].second;
}

absl::Status TensorArrayShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 0).status());
  c->set_output(0, C::VectorOf(2));
  if (c->num_outputs() < 2) return absl::OkStatus();
  c->set_output(1, C::Scalar());
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, c->attrs().Get<PartialShape>("element_shape"));
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, c->attrs().Get<ElementType>("dtype"));
  // A partly known shape may be that of some elements only.
  if (!shape.fully_known() && !c->attrs().GetOr<bool>("identical_element_shapes", false)) {
    shape = PartialShape();
  }
  c->set_output_handle(0, {{type, std::move(shape)}});
  return absl::OkStatus();
}

absl::Status TensorArrayGradShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {1}));
  HandleShapes handle = c->input_handle(0);
  if (c->num_inputs() > 2) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape sizes, C::WithRank(c->input(2), 1));
    const PartialShape prepend = sizes.dim(0) > Shape::kMaxRank
                                     ? PartialShape()
                                     : C::UnknownOfRank(static_cast<int>(sizes.dim(0)));
    for (auto& [type, shape] : handle) shape = prepend.Concatenate(shape);
  }
  c->set_output(0, C::VectorOf(2));
  c->set_output_handle(0, std::move(handle));
  if (c->num_outputs() > 1) c->set_output(1, C::Scalar());
  return absl::OkStatus();
}

absl::Status TensorArrayWriteShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {1, 3}));
  TROUPE_RETURN_IF_ERROR(ElementShape(c).MergeWith(c->input(2)).status());
  return SetShape(c, C::Scalar());
}

absl::Status TensorArrayReadShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {1, 2}));
  return SetShape(c, ElementShape(c));
}

absl::Status TensorArrayGatherShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {2}));
  TROUPE_ASSIGN_OR_RETURN(PartialShape indices, C::WithRank(c->input(1), 1));
  PartialShape element = ElementShape(c);
  if (element.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(element, c->attrs().Get<PartialShape>("element_shape"));
  }
  return SetShape(c, indices.Concatenate(element));
}

absl::Status TensorArrayScatterShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {3}));
  TROUPE_ASSIGN_OR_RETURN(PartialShape indices, C::WithRank(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(PartialShape value, C::WithRankAtLeast(c->input(2), 1));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(indices.dim(0), C::DimOf(value, 0)).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, C::Subshape(value, 1));
  TROUPE_RETURN_IF_ERROR(ElementShape(c).MergeWith(element).status());
  return SetShape(c, C::Scalar());
}

absl::Status TensorArrayConcatShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {1}));
  c->set_output(0, PartialShape());
  c->set_output(1, C::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status TensorArraySplitShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {3}));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape value, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(ElementShape(c).MergeWith(C::ReplaceDim(value, 0, -1)).status());
  return SetShape(c, C::Scalar());
}

absl::Status TensorArraySizeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckInputs(c, {1}));
  return SetShape(c, C::Scalar());
}

absl::Status TensorArrayCloseShape(InferenceContext* c) { return CheckInputs(c, {}); }

/// The ops that have the same inputs, but for the handle, and outputs in both versions.
void Register(bool resources) {
  auto define = [resources](OpVersions names, const char* signature) {
    OpDefBuilder op(names.Name(resources));
    op.Signature(StrCat(resources ? "handle: resource" : "handle: string", signature));
    if (resources) {
      op.SetIsStateful();
    } else if (names.first !=
               std::string_view(
                   "TensorArrayConcatV2")) {  // TensorFlow has not deprecated this one.
      op.Deprecated(26, StrCat("Use ", names.second));
    }
    return op;
  };
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      define({"TensorArrayCloseV2", "TensorArrayCloseV3"}, "")
          .SetShapeFn(TensorArrayCloseShape)
          .Doc("Lets go of the tensors of an array; using it afterwards is an error."),
      define({"TensorArrayConcatV2", "TensorArrayConcatV3"},
             ", flow_in: float -> value: dtype, lengths: int64")
          .Attr("dtype: type")
          .Attr("element_shape_except0: shape = { unknown_rank: true }")
          .SetShapeFn(TensorArrayConcatShape)
          .Doc("Concatenates the elements of an array along their first dimension; `lengths`: "
               "their sizes in it."),
      define({"TensorArrayGatherV2", "TensorArrayGatherV3"},
             ", indices: int32, flow_in: float -> value: dtype")
          .Attr("dtype: type")
          .Attr("element_shape: shape = { unknown_rank: true }")
          .SetShapeFn(TensorArrayGatherShape)
          .Doc("Stacks the elements of an array at the vector `indices`."),
      define({"TensorArrayReadV2", "TensorArrayReadV3"},
             ", index: int32, flow_in: float -> value: dtype")
          .Attr("dtype: type")
          .SetShapeFn(TensorArrayReadShape)
          .Doc("Gives the element of an array at the scalar `index`."),
      define({"TensorArrayScatterV2", "TensorArrayScatterV3"},
             ", indices: int32, value: T, flow_in: float -> flow_out: float")
          .Attr("T: type")
          .SetShapeFn(TensorArrayScatterShape)
          .Doc("Writes the rows of `value` to the elements of an array at the vector `indices`."),
      define({"TensorArraySizeV2", "TensorArraySizeV3"}, ", flow_in: float -> size: int32")
          .SetShapeFn(TensorArraySizeShape)
          .Doc("Gives the number of elements of an array."),
      define({"TensorArraySplitV2", "TensorArraySplitV3"},
             ", value: T, lengths: int64, flow_in: float -> flow_out: float")
          .Attr("T: type")
          .SetShapeFn(TensorArraySplitShape)
          .Doc("Writes slices of `value` along its first dimension, of the sizes in the vector "
               "`lengths`, to the elements of an array."),
      define({"TensorArrayWriteV2", "TensorArrayWriteV3"},
             ", index: int32, value: T, flow_in: float -> flow_out: float")
          .Attr("T: type")
          .SetShapeFn(TensorArrayWriteShape)
          .Doc("Writes `value` to the element of an array at the scalar `index`."),
  };
}

[[maybe_unused]] const bool kRegistered = (Register(false), Register(true), true);

}  // namespace

REGISTER_OP("TensorArrayGradV2")
    .Signature("handle: string, flow_in: float -> grad_handle: string")
    .Attr("source: string")
    .SetIsStateful()
    .Deprecated(26, "Use TensorArrayGradV3")
    .SetShapeFn(TensorArrayGradShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, one for each `source`: "
        "made by the first call, kept by the array. Writes to one index are added up.");

REGISTER_OP("TensorArrayGradV3")
    .Signature("handle: resource, flow_in: float -> grad_handle: resource, flow_out: float")
    .Attr("source: string")
    .SetIsStateful()
    .SetShapeFn(TensorArrayGradShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, one for each `source`: "
        "made by the first call, kept by the array. Writes to one index are added up.");

REGISTER_OP("TensorArrayGradWithShape")
    .Signature(
        "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, "
        "flow_out: float")
    .Attr("source: string")
    .SetIsStateful()
    .SetShapeFn(TensorArrayGradShape)
    .Doc(
        "Gives the array for the gradients of the elements of an array, as TensorArrayGradV3 does; "
        "they have the dimensions `shape_to_prepend` before those of the elements.");

REGISTER_OP("TensorArrayV2")
    .Signature("size: int32 -> handle: string")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("tensor_array_name: string = ''")
    .SetIsStateful()
    .Deprecated(26, "Use TensorArrayV3")
    .SetShapeFn(TensorArrayShape)
    .Doc(
        "Makes an array of `size` tensors of type `dtype`, which lives as long as the step. Each "
        "is written once and, with `clear_after_read`, read once.");

REGISTER_OP("TensorArrayV3")
    .Signature("size: int32 -> handle: resource, flow: float")
    .Attr("dtype: type")
    .Attr("element_shape: shape = { unknown_rank: true }")
    .Attr("dynamic_size: bool = false")
    .Attr("clear_after_read: bool = true")
    .Attr("identical_element_shapes: bool = false")
    .Attr("tensor_array_name: string = ''")
    .SetIsStateful()
    .SetShapeFn(TensorArrayShape)
    .Doc(
        "Makes an array of `size` tensors of type `dtype`, which lives as long as its handle. Each "
        "is written once and, with `clear_after_read`, read once. `flow` orders the ops on the "
        "array: each takes the flow of those before it.");

}  // namespace troupe

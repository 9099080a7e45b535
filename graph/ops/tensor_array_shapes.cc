#include "graph/ops/tensor_array_shapes.h"

#include <utility>

#include "devices/status_macros.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// InvalidArgument unless input 0 may be a handle: by its static shape a vector of 2, as
/// TensorFlow has it.
absl::Status CheckHandle(InferenceContext* c) {
  return InferenceContext::VectorOf(2).MergeWith(c->input(0)).status();
}

absl::Status CheckScalar(InferenceContext* c, int i) {
  return InferenceContext::WithRank(c->input(i), 0).status();
}

/// What is known of the elements of the array that input 0 is a handle to.
PartialShape ElementShape(InferenceContext* c) {
  const HandleShapes& handle = c->input_handle(0);
  return handle.empty() ? PartialShape() : handle[0].second;
}

}  // namespace

absl::Status TensorArrayShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 0));
  c->set_output(0, InferenceContext::VectorOf(2));
  if (c->num_outputs() < 2) return absl::OkStatus();
  c->set_output(1, InferenceContext::Scalar());
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
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 1));
  HandleShapes handle = c->input_handle(0);
  if (c->num_inputs() > 2) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape sizes, InferenceContext::WithRank(c->input(2), 1));
    const PartialShape prepend =
        sizes.dim(0) > Shape::kMaxRank
            ? PartialShape()
            : InferenceContext::UnknownOfRank(static_cast<int>(sizes.dim(0)));
    for (auto& [type, shape] : handle) shape = prepend.Concatenate(shape);
  }
  c->set_output(0, InferenceContext::VectorOf(2));
  c->set_output_handle(0, std::move(handle));
  if (c->num_outputs() > 1) c->set_output(1, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status TensorArrayWriteShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 1));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 3));
  TROUPE_RETURN_IF_ERROR(ElementShape(c).MergeWith(c->input(2)).status());
  c->set_output(0, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status TensorArrayReadShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 1));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 2));
  c->set_output(0, ElementShape(c));
  return absl::OkStatus();
}

absl::Status TensorArrayGatherShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape indices, InferenceContext::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 2));
  PartialShape element = ElementShape(c);
  if (element.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(element, c->attrs().Get<PartialShape>("element_shape"));
  }
  c->set_output(0, indices.Concatenate(element));
  return absl::OkStatus();
}

absl::Status TensorArrayScatterShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_ASSIGN_OR_RETURN(PartialShape indices, InferenceContext::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 3));
  TROUPE_ASSIGN_OR_RETURN(PartialShape value, InferenceContext::WithRankAtLeast(c->input(2), 1));
  if (!value.unknown_rank()) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::MergeDim(indices.dim(0), value.dim(0)).status());
  }
  TROUPE_ASSIGN_OR_RETURN(PartialShape element, InferenceContext::Subshape(value, 1));
  TROUPE_RETURN_IF_ERROR(ElementShape(c).MergeWith(element).status());
  c->set_output(0, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status TensorArrayConcatShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 1));
  c->set_output(0, PartialShape());
  c->set_output(1, InferenceContext::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status TensorArraySplitShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(2), 1).status());
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 3));
  TROUPE_ASSIGN_OR_RETURN(PartialShape value, InferenceContext::WithRankAtLeast(c->input(1), 1));
  if (!value.unknown_rank()) value = InferenceContext::ReplaceDim(value, 0, -1);
  TROUPE_RETURN_IF_ERROR(ElementShape(c).MergeWith(value).status());
  c->set_output(0, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status TensorArraySizeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckHandle(c));
  TROUPE_RETURN_IF_ERROR(CheckScalar(c, 1));
  c->set_output(0, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status TensorArrayCloseShape(InferenceContext* c) { return CheckHandle(c); }

}  // namespace troupe

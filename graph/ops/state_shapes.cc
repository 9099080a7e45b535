// Shapes of variables and of the ops that change them.
#include "devices/status_macros.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

using C = InferenceContext;

namespace {

/// The shape of a variable behind the handle that is input 0; its type must be the attribute
/// `dtype`.
absl::StatusOr<PartialShape> CheckedVariable(InferenceContext* c) {
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

}  // namespace

absl::Status AssignShape(InferenceContext* c) {
  bool validate;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("validate_shape", &validate));
  if (validate) return MergeInputsShape(c);
  c->set_output(0, c->input(1));
  return absl::OkStatus();
}

absl::Status AssignVariableShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape variable, CheckedVariable(c));
  return C::Merge(variable, c->input(1)).status();
}

absl::Status CountUpToShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 0).status());
  return ScalarShape(c);
}

absl::Status ReadVariableShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape variable, CheckedVariable(c));
  c->set_output(0, variable);
  return absl::OkStatus();
}

absl::Status VarHandleShape(InferenceContext* c) {
  ElementType type;
  PartialShape shape;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("dtype", &type));
  TROUPE_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  c->set_output(0, C::Scalar());
  c->set_output_handle(0, {{type, shape}});
  return absl::OkStatus();
}

absl::Status VariableV1Shape(InferenceContext* c) {
  PartialShape shape;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("shape", &shape));
  // Old graphs wrote the shape of a scalar where nothing was known.
  c->set_output(0, shape.rank() <= 0 ? PartialShape() : shape);
  return absl::OkStatus();
}

absl::Status VariableShapeShape(InferenceContext* c) {
  const HandleShapes& shapes = c->input_handle(0);
  c->set_output(0, C::VectorOf(shapes.empty() ? -1 : shapes[0].second.rank()));
  return absl::OkStatus();
}

}  // namespace troupe

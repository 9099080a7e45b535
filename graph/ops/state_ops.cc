// Variables.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status AssignShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool validate, c->attrs().Get<bool>("validate_shape"));
  if (validate) return MergeInputsShape(c);
  return SetShape(c, c->input(1));
}

absl::Status AssignVariableShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape variable, CheckedHandleShape(c));
  return C::Merge(variable, c->input(1)).status();
}

absl::Status CountUpToShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 0).status());
  return ScalarShape(c);
}

absl::Status ResourceCountUpToShape(InferenceContext* c) {
  const HandleShapes& shapes = c->input_handle(0);
  if (!shapes.empty()) TROUPE_RETURN_IF_ERROR(C::WithRank(shapes[0].second, 0).status());
  return ScalarShape(c);
}

absl::Status ReadVariableShape(InferenceContext* c) { return SetShape(c, CheckedHandleShape(c)); }

absl::Status VarHandleShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, c->attrs().Get<ElementType>("dtype"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->attrs().Get<PartialShape>("shape"));
  c->set_output(0, C::Scalar());
  c->set_output_handle(0, {{type, shape}});
  return absl::OkStatus();
}

absl::Status VariableV1Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->attrs().Get<PartialShape>("shape"));
  // Old graphs wrote the shape of a scalar where nothing was known.
  return SetShape(c, shape.rank() <= 0 ? PartialShape() : shape);
}

absl::Status VariableShapeShape(InferenceContext* c) {
  const HandleShapes& shapes = c->input_handle(0);
  return SetShape(c, C::VectorOf(shapes.empty() ? -1 : shapes[0].second.rank()));
}

/// Variables by reference.
OpDefBuilder Variable(const char* name, ShapeFn shape_fn) {
  OpDefBuilder op(name);
  op.Signature("-> ref: Ref(dtype)")
      .Attr("shape: shape")
      .Attr("dtype: type")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .SetIsStateful()
      .SetShapeFn(shape_fn)
      .Doc(
          "A variable of type `dtype` and shape `shape`, kept between runs: gives a reference to "
          "it.");
  return op;
}

/// `begin`: what the op does with `value`, up to the variable's name.
OpDefBuilder Update(const char* name, const char* begin) {
  OpDefBuilder op(name);
  op.Signature("ref: Ref(T), value: T -> output_ref: Ref(T)")
      .Attr("T: numbertype")
      .Attr("use_locking: bool = false")
      .SetShapeFn(MergeInputsShape)
      .Doc(StrCat(begin, " the variable `ref`. Gives the variable."));
  return op;
}

OpDefBuilder ResourceUpdate(const char* name, const char* begin) {
  OpDefBuilder op(name);
  op.Signature("resource: resource, value: dtype")
      .Attr("dtype: type")
      .SetIsStateful()
      .SetShapeFn(AssignVariableShape)
      .Doc(StrCat(begin, " the variable `resource`."));
  return op;
}

constexpr char kAdds[] = "Adds `value`, of the same shape, to";
constexpr char kSubtracts[] = "Subtracts `value`, of the same shape, from";

[[maybe_unused]] const internal::OpRegistrar kFamilies[] = {
    Variable("Variable", VariableV1Shape),
    Variable("VariableV2", ShapeAttrShape),
    Update("AssignAdd", kAdds),
    Update("AssignSub", kSubtracts),
    ResourceUpdate("AssignAddVariableOp", kAdds),
    ResourceUpdate("AssignSubVariableOp", kSubtracts),
};

}  // namespace

REGISTER_OP("Assign")
    .Signature("ref: Ref(T), value: T -> output_ref: Ref(T)")
    .Attr("T: type")
    .Attr("validate_shape: bool = true")
    .Attr("use_locking: bool = true")
    .SetAllowsUninitializedInput()
    .SetShapeFn(AssignShape)
    .Doc(
        "Sets the variable `ref` to `value`, of the same shape if `validate_shape`. Gives the "
        "variable.");

REGISTER_OP("AssignVariableOp")
    .Signature("resource: resource, value: dtype")
    .Attr("dtype: type")
    .Attr("validate_shape: bool = false")
    .SetIsStateful()
    .SetShapeFn(AssignVariableShape)
    .Doc("Sets the variable `resource` to `value`, of the same shape if `validate_shape`.");

REGISTER_OP("CountUpTo")
    .Signature("ref: Ref(T) -> output: T")
    .Attr("limit: int")
    .Attr("T: {int32, int64}")
    .SetShapeFn(CountUpToShape)
    .Doc(
        "Adds 1 to the scalar variable `ref` and gives its former value; fails with "
        "OUT_OF_RANGE once it has reached `limit`.");

REGISTER_OP("DestroyResourceOp")
    .Signature("resource: resource")
    .Attr("ignore_lookup_error: bool = true")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(
        "Removes the resource behind the handle `resource`; that there is none is an error "
        "unless `ignore_lookup_error`.");

REGISTER_OP("IsVariableInitialized")
    .Signature("ref: Ref(dtype) -> is_initialized: bool")
    .Attr("dtype: type")
    .SetAllowsUninitializedInput()
    .SetShapeFn(ScalarShape)
    .Doc("Tells whether the variable `ref` has a value.");

REGISTER_OP("ReadVariableOp")
    .Signature("resource: resource -> value: dtype")
    .Attr("dtype: type")
    .SetIsStateful()
    .SetShapeFn(ReadVariableShape)
    .Doc("Gives the value of the variable `resource`, as it is when the op runs.");

REGISTER_OP("ResourceCountUpTo")
    .Signature("resource: resource -> output: T")
    .Attr("limit: int")
    .Attr("T: {int32, int64}")
    .SetIsStateful()
    .SetShapeFn(ResourceCountUpToShape)
    .Doc(
        "Adds 1 to the scalar variable `resource` and gives its former value; fails with "
        "OUT_OF_RANGE once it has reached `limit`.");

REGISTER_OP("VarHandleOp")
    .Signature("-> resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("debug_name: string = ''")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("allowed_devices: list(string) = []")
    .SetIsStateful()
    .SetShapeFn(VarHandleShape)
    .Doc(
        "Gives a handle to the variable called `shared_name` (or like the node) in `container`, "
        "of type `dtype` and a shape that fits `shape`.");

REGISTER_OP("VarIsInitializedOp")
    .Signature("resource: resource -> is_initialized: bool")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("Tells whether the variable `resource` has a value.");

REGISTER_OP("VariableShape")
    .Signature("input: resource -> output: out_type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetIsStateful()
    .SetShapeFn(VariableShapeShape)
    .Doc("Gives the sizes of the dimensions of the variable `input`, a vector.");

}  // namespace troupe

// Element-wise functions of two or more tensors, comparisons and selection.
#include <limits>
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status EqualShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool strict, c->attrs().Get<bool>("incompatible_shape_error"));
  return SetShape(c, BroadcastShapes(c->input(0), c->input(1), !strict));
}

absl::Status SelectShape(InferenceContext* c) {
  const PartialShape& condition = c->input(0);
  TROUPE_ASSIGN_OR_RETURN(PartialShape data, C::Merge(c->input(1), c->input(2)));
  if (!condition.unknown_rank() && !data.unknown_rank() && condition.rank() != 0) {
    if (condition.rank() == 1 && data.rank() != 0) {
      TROUPE_RETURN_IF_ERROR(C::MergeDim(condition.dim(0), data.dim(0)).status());
    } else {
      TROUPE_ASSIGN_OR_RETURN(data, C::Merge(data, condition));
    }
  }
  return SetShape(c, data);
}

absl::Status SelectV2Shape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, BroadcastShapes(c->input(1), c->input(2), false));
  TROUPE_ASSIGN_OR_RETURN(shape, BroadcastShapes(c->input(0), shape, false));
  return SetShape(c, shape);
}

constexpr char kNumbers[] =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";
constexpr char kReal[] =
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}";

OpDefBuilder Binary(const char* name, const char* type, const char* doc,
                    const char* signature = "x: T, y: T -> z: T") {
  OpDefBuilder op(name);
  op.Signature(signature).Attr(type).SetShapeFn(BroadcastBinaryShape).Doc(doc);
  return op;
}

OpDefBuilder Comparison(const char* name, const char* doc) {
  return Binary(name, "T: realnumbertype", doc, "x: T, y: T -> z: bool");
}

[[maybe_unused]] const internal::OpRegistrar kFamilies[] = {
    Binary("Add",
           "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
           "complex128, string}",
           "Adds `x` and `y`, which are broadcast against each other; strings are joined."),
    Binary("Div", kNumbers,
           "Divides `x` by `y`, which are broadcast against each other; integers are rounded "
           "toward zero."),
    Binary("DivNoNan", "T: {half, float, bfloat16, double, complex64, complex128}",
           "Divides `x` by `y`, which are broadcast against each other; 0 where `y` is 0."),
    Binary("FloorDiv", kNumbers,
           "Divides `x` by `y`, which are broadcast against each other, and rounds down."),
    Binary("FloorMod",
           "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, "
           "double}",
           "Remainder of the division of `x` by `y` rounded down: it has the sign of `y`. The "
           "inputs are broadcast against each other."),
    Comparison("Greater", "Tells where x > y. The inputs are broadcast against each other."),
    Comparison("GreaterEqual", "Tells where x >= y. The inputs are broadcast against each other."),
    Comparison("Less", "Tells where x < y. The inputs are broadcast against each other."),
    Comparison("LessEqual", "Tells where x <= y. The inputs are broadcast against each other."),
    Binary("Maximum", kReal,
           "Gives the larger of `x` and `y`, NaN if either is. The inputs are broadcast against "
           "each other."),
    Binary("Minimum", kReal,
           "Gives the smaller of `x` and `y`, NaN if either is. The inputs are broadcast against "
           "each other."),
    Binary("Mod", "T: {int32, int64, half, half, bfloat16, float, double}",
           "Remainder of the division of `x` by `y` rounded toward zero: it has the sign of `x`. "
           "The inputs are broadcast against each other."),
    Binary(
        "Mul", kNumbers,
        "Multiplies `x` by `y`, element by element. The inputs are broadcast against each other.")
        .SetIsCommutative(),
    Binary("Pow",
           "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
           "Raises `x` to the power `y`, element by element. The inputs are broadcast against each "
           "other."),
    Binary("RealDiv", kNumbers, "Divides `x` by `y`, which are broadcast against each other."),
    Binary("SquaredDifference",
           "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
           "Computes (x - y)^2; |x - y|^2 for complex numbers. The inputs are broadcast against "
           "each other.")
        .SetIsCommutative(),
    Binary("Sub",
           "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, "
           "complex64, complex128, uint32, uint64}",
           "Subtracts `y` from `x`. The inputs are broadcast against each other."),
    Binary("TruncateDiv", kNumbers,
           "Divides `x` by `y`, which are broadcast against each other, and rounds toward zero."),
    Binary("TruncateMod", "T: {int32, int64, bfloat16, half, float, double}",
           "Remainder of the division of `x` by `y` rounded toward zero: it has the sign of `x`. "
           "The inputs are broadcast against each other."),
};

}  // namespace

REGISTER_OP("AddN")
    .Signature("inputs: N * T -> sum: T")
    .Attr("N: int >= 1")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
        "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}")
    .SetIsCommutative()
    .SetIsAggregate()
    .SetShapeFn(MergeInputsShape)
    .Doc("Adds all `inputs`, which have one shape; so has `sum`.");

REGISTER_OP("AddV2")
    .Signature("x: T, y: T -> z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, "
        "int64, complex64, complex128}")
    .SetIsCommutative()
    .SetIsAggregate()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Adds `x` and `y`, which are broadcast against each other.");

REGISTER_OP("ClipByValue")
    .Signature("t: T, clip_value_min: T, clip_value_max: T -> output: T")
    .Attr("T: numbertype")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Limits each element of `t` to [clip_value_min, clip_value_max]. The bounds are scalars "
        "or have the shape of `t`; so has `output`.");

REGISTER_OP("Equal")
    .Signature("x: T, y: T -> z: bool")
    .Attr("T: type")
    .Attr("incompatible_shape_error: bool = true")
    .SetIsCommutative()
    .SetShapeFn(EqualShape)
    .Doc(
        "Tells where `x` equals `y`, which are broadcast against each other. Shapes that cannot "
        "be broadcast give the scalar false if `incompatible_shape_error` is false.");

REGISTER_OP("LogicalAnd")
    .Signature("x: bool, y: bool -> z: bool")
    .SetIsCommutative()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where both `x` and `y` are true. The inputs are broadcast against each other.");

REGISTER_OP("LogicalOr")
    .Signature("x: bool, y: bool -> z: bool")
    .SetIsCommutative()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where `x` or `y` is true. The inputs are broadcast against each other.");

REGISTER_OP("NotEqual")
    .Signature("x: T, y: T -> z: bool")
    .Attr("T: type")
    .Attr("incompatible_shape_error: bool = true")
    .SetIsCommutative()
    .SetShapeFn(EqualShape)
    .Doc(
        "Tells where `x` differs from `y`, which are broadcast against each other. Shapes that "
        "cannot be broadcast give the scalar true if `incompatible_shape_error` is false.");

REGISTER_OP("Select")
    .Signature("condition: bool, t: T, e: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(SelectShape)
    .Doc(
        "Takes elements of `t` where `condition` is true, of `e` elsewhere. `t` and `e` have "
        "one shape; `condition` has it too, or is a scalar, or a vector that chooses whole "
        "rows.");

REGISTER_OP("SelectV2")
    .Signature("condition: bool, t: T, e: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(SelectV2Shape)
    .Doc(
        "Takes elements of `t` where `condition` is true, of `e` elsewhere. All three are "
        "broadcast against each other.");

}  // namespace troupe

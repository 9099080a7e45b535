// Element-wise functions of two or more tensors, comparisons and selection.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("Add")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
        "complex128, string}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Adds `x` and `y`, which are broadcast against each other; strings are joined.");

REGISTER_OP("AddN")
    .Input("inputs: N * T")
    .Output("sum: T")
    .Attr("N: int >= 1")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
        "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}")
    .SetIsCommutative()
    .SetIsAggregate()
    .SetShapeFn(MergeInputsShape)
    .Doc("Adds all `inputs`, which have one shape; so has `sum`.");

REGISTER_OP("AddV2")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, "
        "int64, complex64, complex128}")
    .SetIsCommutative()
    .SetIsAggregate()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Adds `x` and `y`, which are broadcast against each other.");

REGISTER_OP("ClipByValue")
    .Input("t: T")
    .Input("clip_value_min: T")
    .Input("clip_value_max: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Limits each element of `t` to [clip_value_min, clip_value_max]. The bounds are scalars "
        "or have the shape of `t`; so has `output`.");

REGISTER_OP("Div")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
        "int64, complex64, complex128}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Divides `x` by `y`, which are broadcast against each other; integers are rounded "
        "toward zero.");

REGISTER_OP("DivNoNan")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {half, float, bfloat16, double, complex64, complex128}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Divides `x` by `y`, which are broadcast against each other; 0 where `y` is 0.");

REGISTER_OP("Equal")
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: type")
    .Attr("incompatible_shape_error: bool = true")
    .SetIsCommutative()
    .SetShapeFn(EqualShape)
    .Doc(
        "Tells where `x` equals `y`, which are broadcast against each other. Shapes that cannot "
        "be broadcast give the scalar false if `incompatible_shape_error` is false.");

REGISTER_OP("FloorDiv")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
        "int64, complex64, complex128}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Divides `x` by `y`, which are broadcast against each other, and rounds down.");

REGISTER_OP("FloorMod")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, "
        "double}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Remainder of the division of `x` by `y` rounded down: it has the sign of `y`. The "
        "inputs are broadcast against each other.");

REGISTER_OP("Greater")
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where x > y. The inputs are broadcast against each other.");

REGISTER_OP("GreaterEqual")
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where x >= y. The inputs are broadcast against each other.");

REGISTER_OP("Less")
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where x < y. The inputs are broadcast against each other.");

REGISTER_OP("LessEqual")
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where x <= y. The inputs are broadcast against each other.");

REGISTER_OP("LogicalAnd")
    .Input("x: bool")
    .Input("y: bool")
    .Output("z: bool")
    .SetIsCommutative()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where both `x` and `y` are true. The inputs are broadcast against each other.");

REGISTER_OP("LogicalOr")
    .Input("x: bool")
    .Input("y: bool")
    .Output("z: bool")
    .SetIsCommutative()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Tells where `x` or `y` is true. The inputs are broadcast against each other.");

REGISTER_OP("Maximum")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
        "uint64}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Gives the larger of `x` and `y`, NaN if either is. The inputs are broadcast against "
        "each other.");

REGISTER_OP("Minimum")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
        "uint64}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Gives the smaller of `x` and `y`, NaN if either is. The inputs are broadcast against "
        "each other.");

REGISTER_OP("Mod")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {int32, int64, half, half, bfloat16, float, double}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Remainder of the division of `x` by `y` rounded toward zero: it has the sign of `x`. "
        "The inputs are broadcast against each other.");

REGISTER_OP("Mul")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
        "int64, complex64, complex128}")
    .SetIsCommutative()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Multiplies `x` by `y`, element by element. The inputs are broadcast against each "
        "other.");

REGISTER_OP("NotEqual")
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: type")
    .Attr("incompatible_shape_error: bool = true")
    .SetIsCommutative()
    .SetShapeFn(EqualShape)
    .Doc(
        "Tells where `x` differs from `y`, which are broadcast against each other. Shapes that "
        "cannot be broadcast give the scalar true if `incompatible_shape_error` is false.");

REGISTER_OP("Pow")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Raises `x` to the power `y`, element by element. The inputs are broadcast against each "
        "other.");

REGISTER_OP("RealDiv")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
        "int64, complex64, complex128}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Divides `x` by `y`, which are broadcast against each other.");

REGISTER_OP("Select")
    .Input("condition: bool")
    .Input("t: T")
    .Input("e: T")
    .Output("output: T")
    .Attr("T: type")
    .SetShapeFn(SelectShape)
    .Doc(
        "Takes elements of `t` where `condition` is true, of `e` elsewhere. `t` and `e` have "
        "one shape; `condition` has it too, or is a scalar, or a vector that chooses whole "
        "rows.");

REGISTER_OP("SelectV2")
    .Input("condition: bool")
    .Input("t: T")
    .Input("e: T")
    .Output("output: T")
    .Attr("T: type")
    .SetShapeFn(SelectV2Shape)
    .Doc(
        "Takes elements of `t` where `condition` is true, of `e` elsewhere. All three are "
        "broadcast against each other.");

REGISTER_OP("SquaredDifference")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
    .SetIsCommutative()
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Computes (x - y)^2; |x - y|^2 for complex numbers. The inputs are broadcast against "
        "each other.");

REGISTER_OP("Sub")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, "
        "complex64, complex128, uint32, uint64}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Subtracts `y` from `x`. The inputs are broadcast against each other.");

REGISTER_OP("TruncateDiv")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
        "int64, complex64, complex128}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc("Divides `x` by `y`, which are broadcast against each other, and rounds toward zero.");

REGISTER_OP("TruncateMod")
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {int32, int64, bfloat16, half, float, double}")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Remainder of the division of `x` by `y` rounded toward zero: it has the sign of `x`. "
        "The inputs are broadcast against each other.");

}  // namespace troupe

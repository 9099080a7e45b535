// Element-wise functions of one tensor.
#include "graph/op_registry.h"
#include "graph/ops/shape_functions.h"
#include "graph/shape_inference.h"

namespace troupe {

REGISTER_OP("Abs")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the absolute value of each element. `y` has the shape of `x`.");

REGISTER_OP("Cast")
    .Input("x: SrcT")
    .Output("y: DstT")
    .Attr("SrcT: type")
    .Attr("DstT: type")
    .Attr("Truncate: bool = false")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Converts each element of `x` to the type `DstT`; fractions are cut off, or rounded to "
        "the nearest when the target is a narrower floating type (cut off too if `Truncate`). "
        "`y` has the shape of `x`.");

REGISTER_OP("Ceil")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Rounds each element up to an integer. `y` has the shape of `x`.");

REGISTER_OP("CheckNumerics")
    .Input("tensor: T")
    .Output("output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("message: string")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Passes `tensor` through if all its elements are finite; fails with `message` if one is "
        "infinite or not a number.");

REGISTER_OP("Conj")
    .Input("input: T")
    .Output("output: T")
    .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the complex conjugate of each element. `output` has the shape of `input`.");

REGISTER_OP("Cos")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the cosine of each element, in radians. `y` has the shape of `x`.");

REGISTER_OP("Erf")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the Gauss error function of each element. `y` has the shape of `x`.");

REGISTER_OP("Exp")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes e to the power of each element. `y` has the shape of `x`.");

REGISTER_OP("Expm1")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes exp(x) - 1 for each element, exact also near zero. `y` has the shape of `x`.");

REGISTER_OP("Floor")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Rounds each element down to an integer. `y` has the shape of `x`.");

REGISTER_OP("Inv")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes 1 / x for each element. `y` has the shape of `x`.");

REGISTER_OP("InvGrad")
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gradient of `Inv`: -dy * y * y, where y = 1 / x. All shapes are equal.");

REGISTER_OP("IsFinite")
    .Input("x: T")
    .Output("y: bool")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Tells which elements are neither infinite nor NaN. `y` has the shape of `x`.");

REGISTER_OP("IsInf")
    .Input("x: T")
    .Output("y: bool")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Tells which elements are infinite. `y` has the shape of `x`.");

REGISTER_OP("IsNan")
    .Input("x: T")
    .Output("y: bool")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc("Tells which elements are not a number. `y` has the shape of `x`.");

REGISTER_OP("Log")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the natural logarithm of each element. `y` has the shape of `x`.");

REGISTER_OP("Log1p")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes log(1 + x) for each element, exact also near zero. `y` has the shape of `x`.");

REGISTER_OP("LogicalNot")
    .Input("x: bool")
    .Output("y: bool")
    .SetShapeFn(UnchangedShape)
    .Doc("Negates each truth value. `y` has the shape of `x`.");

REGISTER_OP("Neg")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes -x for each element. `y` has the shape of `x`.");

REGISTER_OP("OnesLike")
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
        "uint64, complex64, complex128, bool}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gives a tensor of ones with the shape and type of `x`.");

REGISTER_OP("Reciprocal")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes 1 / x for each element. `y` has the shape of `x`.");

REGISTER_OP("ReciprocalGrad")
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gradient of `Reciprocal`: -dy * y * y, where y = 1 / x. All shapes are equal.");

REGISTER_OP("Rint")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Rounds each element to the nearest integer, halves to the even one. `y` has the shape "
        "of `x`.");

REGISTER_OP("Round")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Rounds each element to the nearest integer, halves to the even one; integers stay as "
        "they are. `y` has the shape of `x`.");

REGISTER_OP("Rsqrt")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes 1 / sqrt(x) for each element. `y` has the shape of `x`.");

REGISTER_OP("RsqrtGrad")
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gradient of `Rsqrt`: dy * -0.5 * y^3, where y = 1 / sqrt(x). All shapes are equal.");

REGISTER_OP("Sigmoid")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes 1 / (1 + exp(-x)) for each element. `y` has the shape of `x`.");

REGISTER_OP("SigmoidGrad")
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gradient of `Sigmoid`: dy * y * (1 - y), where y = sigmoid(x). All shapes are equal.");

REGISTER_OP("Sign")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives -1, 0 or 1 by the sign of each element; x / |x| for complex numbers. `y` has the "
        "shape of `x`.");

REGISTER_OP("Sin")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the sine of each element, in radians. `y` has the shape of `x`.");

REGISTER_OP("Sqrt")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the square root of each element. `y` has the shape of `x`.");

REGISTER_OP("SqrtGrad")
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gradient of `Sqrt`: dy * 0.5 / y, where y = sqrt(x). All shapes are equal.");

REGISTER_OP("Square")
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
        "uint64, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes x * x for each element. `y` has the shape of `x`.");

REGISTER_OP("Tan")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the tangent of each element, in radians. `y` has the shape of `x`.");

REGISTER_OP("Tanh")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the hyperbolic tangent of each element. `y` has the shape of `x`.");

REGISTER_OP("TanhGrad")
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gradient of `Tanh`: dy * (1 - y * y), where y = tanh(x). All shapes are equal.");

REGISTER_OP("ZerosLike")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc("Gives a tensor of zeros (empty strings) with the shape and type of `x`.");

}  // namespace troupe

// Element-wise functions of one tensor.
#include <string>
#include <utility>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

constexpr char kFloating[] = "T: {bfloat16, half, float, double}";
constexpr char kFloatingOrComplex[] = "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr char kSignedOrComplex[] =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";

OpDefBuilder Define(const char* name, const char* signature, const char* type, std::string doc) {
  OpDefBuilder op(name);
  op.Signature(signature).Attr(type).SetShapeFn(UnchangedShape).Doc(std::move(doc));
  return op;
}

OpDefBuilder Unary(const char* name, const char* type, const char* doc) {
  return Define(name, "x: T -> y: T", type, StrCat(doc, " `y` has the shape of `x`."));
}

OpDefBuilder Predicate(const char* name, const char* doc) {
  return Define(name, "x: T -> y: bool", kFloating, StrCat(doc, " `y` has the shape of `x`."));
}

/// A gradient by the value `y` of the function.
OpDefBuilder Gradient(const char* name, const char* doc) {
  return Define(name, "y: T, dy: T -> z: T", kFloatingOrComplex,
                StrCat(doc, " All shapes are equal."));
}

[[maybe_unused]] const internal::OpRegistrar kFamilies[] = {
    Unary("Abs", "T: {bfloat16, half, float, double, int8, int16, int32, int64}",
          "Computes the absolute value of each element."),
    Unary("Ceil", kFloating, "Rounds each element up to an integer."),
    Unary("Cos", kFloatingOrComplex, "Computes the cosine of each element, in radians."),
    Unary("Erf", kFloating, "Computes the Gauss error function of each element."),
    Unary("Exp", kFloatingOrComplex, "Computes e to the power of each element."),
    Unary("Expm1", kFloatingOrComplex,
          "Computes exp(x) - 1 for each element, exact also near zero."),
    Unary("Floor", kFloating, "Rounds each element down to an integer."),
    Unary("Inv", kSignedOrComplex, "Computes 1 / x for each element."),
    Unary("Log", kFloatingOrComplex, "Computes the natural logarithm of each element."),
    Unary("Log1p", kFloatingOrComplex,
          "Computes log(1 + x) for each element, exact also near zero."),
    Unary("Neg", kSignedOrComplex, "Computes -x for each element."),
    Unary("Reciprocal", kSignedOrComplex, "Computes 1 / x for each element."),
    Unary("Rint", kFloating, "Rounds each element to the nearest integer, halves to the even one."),
    Unary("Round", kSignedOrComplex,
          "Rounds each element to the nearest integer, halves to the even one; integers stay as "
          "they are."),
    Unary("Rsqrt", kFloatingOrComplex, "Computes 1 / sqrt(x) for each element."),
    Unary("Sigmoid", kFloatingOrComplex, "Computes 1 / (1 + exp(-x)) for each element."),
    Unary("Sign", kSignedOrComplex,
          "Gives -1, 0 or 1 by the sign of each element; x / |x| for complex numbers."),
    Unary("Sin", kFloatingOrComplex, "Computes the sine of each element, in radians."),
    Unary("Sqrt", kFloatingOrComplex, "Computes the square root of each element."),
    Unary("Square",
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
          "uint64, complex64, complex128}",
          "Computes x * x for each element."),
    Unary("Tan", kFloatingOrComplex, "Computes the tangent of each element, in radians."),
    Unary("Tanh", kFloatingOrComplex, "Computes the hyperbolic tangent of each element."),

    Predicate("IsFinite", "Tells which elements are neither infinite nor NaN."),
    Predicate("IsInf", "Tells which elements are infinite."),
    Predicate("IsNan", "Tells which elements are not a number."),

    Gradient("InvGrad", "Gradient of `Inv`: -dy * y * y, where y = 1 / x."),
    Gradient("ReciprocalGrad", "Gradient of `Reciprocal`: -dy * y * y, where y = 1 / x."),
    Gradient("RsqrtGrad", "Gradient of `Rsqrt`: dy * -0.5 * y^3, where y = 1 / sqrt(x)."),
    Gradient("SigmoidGrad", "Gradient of `Sigmoid`: dy * y * (1 - y), where y = sigmoid(x)."),
    Gradient("SqrtGrad", "Gradient of `Sqrt`: dy * 0.5 / y, where y = sqrt(x)."),
    Gradient("TanhGrad", "Gradient of `Tanh`: dy * (1 - y * y), where y = tanh(x)."),
};

}  // namespace

REGISTER_OP("Cast")
    .Signature("x: SrcT -> y: DstT")
    .Attr("SrcT: type")
    .Attr("DstT: type")
    .Attr("Truncate: bool = false")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Converts each element of `x` to the type `DstT`; fractions are cut off, or rounded to "
        "the nearest when the target is a narrower floating type (cut off too if `Truncate`). "
        "`y` has the shape of `x`.");

REGISTER_OP("CheckNumerics")
    .Signature("tensor: T -> output: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("message: string")
    .SetIsStateful()
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Passes `tensor` through if all its elements are finite; fails with `message` if one is "
        "infinite or not a number.");

REGISTER_OP("Conj")
    .Signature("input: T -> output: T")
    .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
    .SetShapeFn(UnchangedShape)
    .Doc("Computes the complex conjugate of each element. `output` has the shape of `input`.");

REGISTER_OP("LogicalNot")
    .Signature("x: bool -> y: bool")
    .SetShapeFn(UnchangedShape)
    .Doc("Negates each truth value. `y` has the shape of `x`.");

REGISTER_OP("OnesLike")
    .Signature("x: T -> y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
        "uint64, complex64, complex128, bool}")
    .SetShapeFn(UnchangedShape)
    .Doc("Gives a tensor of ones with the shape and type of `x`.");

REGISTER_OP("ZerosLike")
    .Signature("x: T -> y: T")
    .Attr("T: type")
    .SetShapeFn(UnchangedShape)
    .Doc("Gives a tensor of zeros (empty strings) with the shape and type of `x`.");

}  // namespace troupe

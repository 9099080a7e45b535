// Element-wise ops: inverse and hyperbolic functions, special functions of mathematics, bits of
// integers, parts of complex numbers.
#include <string>
#include <utility>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

constexpr char kFloating[] = "T: {bfloat16, half, float, double}";
constexpr char kFloatOrDouble[] = "T: {float, double}";
constexpr char kFloatingOrComplex[] = "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr char kFloatingOrComplexHalfFirst[] =
    "T: {half, bfloat16, float, double, complex64, complex128}";
constexpr char kIntegers[] = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

OpDefBuilder Unary(const char* name, const char* type, const char* doc,
                   const char* signature = "x: T -> y: T") {
  OpDefBuilder op(name);
  op.Signature(signature).Attr(type).SetShapeFn(UnchangedShape);
  op.Doc(StrCat(doc, " `y` has the shape of `x`."));
  return op;
}

/// `signature` names two operands, which are broadcast.
OpDefBuilder Binary(const char* name, const char* type, const char* doc,
                    const char* signature = "x: T, y: T -> z: T") {
  OpDefBuilder op(name);
  op.Signature(signature).Attr(type).SetShapeFn(BroadcastBinaryShape);
  op.Doc(StrCat(doc, " The inputs are broadcast against each other."));
  return op;
}

/// A real number of a complex one.
OpDefBuilder RealOf(const char* name, const char* signature, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("T: {complex64, complex128} = DT_COMPLEX64")
      .Attr("Tout: {float, double} = DT_FLOAT")
      .SetShapeFn(UnchangedShape)
      .Doc(StrCat(doc, " `Tout` is double for complex128. The shape is that of the input."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kFamilies[] = {
    Unary("Acos", kFloatingOrComplex,
          "Computes the angle, in radians, of which `x` is the cosine."),
    Unary("Acosh", kFloatingOrComplex,
          "Computes the inverse hyperbolic cosine of each element; NaN below 1."),
    Unary("Asin", kFloatingOrComplex, "Computes the angle, in radians, of which `x` is the sine."),
    Unary("Asinh", kFloatingOrComplex, "Computes the inverse hyperbolic sine of each element."),
    Unary("Atan", kFloatingOrComplex,
          "Computes the angle, in radians, of which `x` is the tangent."),
    Unary("Atanh", kFloatingOrComplex,
          "Computes the inverse hyperbolic tangent of each element; NaN outside of [-1, 1]."),
    Unary("Cosh", kFloatingOrComplex, "Computes the hyperbolic cosine of each element."),
    Unary("Sinh", kFloatingOrComplex, "Computes the hyperbolic sine of each element."),

    Unary("Dawsn", kFloating,
          "Computes Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x."),
    Unary("Digamma", kFloating,
          "Computes the derivative of `Lgamma` at each element; NaN at 0, -1, -2, ..."),
    Unary("Erfc", kFloating, "Computes 1 - erf(x) for each element, exact also for large `x`."),
    Unary("Erfinv", kFloating, "Computes the number whose `Erf` is `x`; NaN outside of [-1, 1]."),
    Unary(
        "Expint", kFloating,
        "Computes the exponential integral Ei(x), that of exp(t) / t from minus infinity to x; NaN "
        "below 0."),
    Unary("FresnelCos", kFloating,
          "Computes Fresnel's integral of cos(pi t^2 / 2) from 0 to x for each element."),
    Unary("FresnelSin", kFloating,
          "Computes Fresnel's integral of sin(pi t^2 / 2) from 0 to x for each element."),
    Unary("Lgamma", kFloating,
          "Computes log(|gamma(x)|) for each element; infinity at 0, -1, -2, ..."),
    Unary("Ndtri", kFloating,
          "Computes the number that a standard normal variable is below with the probability `x`."),
    Unary("Spence", kFloating,
          "Computes Spence's integral of log(t) / (1 - t) from 1 to x; NaN below 0."),

    Unary("Invert", kIntegers, "Inverts all bits of each element."),
    Unary("PopulationCount", kIntegers, "Counts the bits of each element that are 1.",
          "x: T -> y: uint8"),

    Binary("Atan2", kFloating, "Computes the angle, in radians, of the point (x, y), in [-pi, pi].",
           "y: T, x: T -> z: T"),
    Binary("BitwiseAnd", kIntegers, "Keeps the bits that are 1 in both `x` and `y`.")
        .SetIsCommutative(),
    Binary("BitwiseOr", kIntegers, "Joins the bits that are 1 in `x` or `y`.").SetIsCommutative(),
    Binary("BitwiseXor", kIntegers, "Keeps the bits in which `x` and `y` differ.")
        .SetIsCommutative(),
    Binary("Igamma", kFloating, "Computes the lower regularized incomplete gamma function P(a, x).",
           "a: T, x: T -> z: T"),
    Binary("IgammaGradA", kFloatOrDouble,
           "Computes the derivative of `Igamma` for its first input.", "a: T, x: T -> z: T"),
    Binary("Igammac", kFloating,
           "Computes the upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x).",
           "a: T, x: T -> z: T"),
    Binary("LeftShift", kIntegers,
           "Shifts the bits of `x` to the left by `y` places, at least 0 and at most those of the "
           "type less 1."),
    Binary("MulNoNan", kFloatingOrComplex,
           "Multiplies `x` by `y`; 0 where `y` is 0, even if `x` is infinite or NaN."),
    Binary("NextAfter", "T: {double, float} = DT_FLOAT",
           "Gives the next number after `x1` that the type has, toward `x2`.",
           "x1: T, x2: T -> output: T"),
    Binary("Polygamma", kFloatOrDouble,
           "Computes the derivative of order `a` of `Digamma` at `x`; NaN where `a` is negative or "
           "no whole number.",
           "a: T, x: T -> z: T"),
    Binary("RightShift", kIntegers,
           "Shifts the bits of `x` to the right by `y` places, at least 0 and at most those of the "
           "type less 1. The sign of signed types stays."),
    Binary("Xdivy", kFloatingOrComplexHalfFirst, "Divides `x` by `y`; 0 where `x` is 0."),
    Binary("Xlog1py", kFloatingOrComplexHalfFirst, "Computes x * log(1 + y); 0 where `x` is 0."),
    Binary("Xlogy", kFloatingOrComplexHalfFirst, "Computes x * log(y); 0 where `x` is 0."),
    Binary("Zeta", kFloatOrDouble,
           "Computes Hurwitz' zeta function, the sum of (q + n)^-x over n = 0, 1, ...",
           "x: T, q: T -> z: T"),

    RealOf("Angle", "input: T -> output: Tout",
           "Computes the angle, in radians, of each complex number, in [-pi, pi]."),
    RealOf("ComplexAbs", "x: T -> y: Tout", "Computes the absolute value of each complex number."),
    RealOf("Imag", "input: T -> output: Tout", "Gives the imaginary part of each complex number."),
    RealOf("Real", "input: T -> output: Tout", "Gives the real part of each complex number."),
};

/// Output 0: all inputs merged, but scalars fit any shape.
absl::Status MergeButScalars(InferenceContext* c) {
  PartialShape merged;
  int scalars = 0;
  bool all_known = true;
  for (int i = 0; i < c->num_inputs(); ++i) {
    const PartialShape& shape = c->input(i);
    if (shape.unknown_rank()) {
      all_known = false;
    } else if (shape.rank() == 0) {
      ++scalars;
    } else {
      TROUPE_ASSIGN_OR_RETURN(merged, C::Merge(merged, shape));
    }
  }
  return SetShape(c, all_known && scalars == c->num_inputs() ? C::Scalar() : merged);
}

}  // namespace

REGISTER_OP("ApproximateEqual")
    .Signature("x: T, y: T -> z: bool")
    .Attr("T: numbertype")
    .Attr("tolerance: float = 0.00001")
    .SetIsCommutative()
    .SetShapeFn(MergeInputsShape)
    .Doc("Tells where |x - y| is below `tolerance`. All shapes are equal.");

REGISTER_OP("Betainc")
    .Signature("a: T, b: T, x: T -> z: T")
    .Attr(kFloatOrDouble)
    .SetShapeFn(MergeButScalars)
    .Doc(
        "Computes the regularized incomplete beta function I_x(a, b). Inputs are scalars or of one "
        "shape, which is that of `z`.");

REGISTER_OP("Complex")
    .Signature("real: T, imag: T -> out: Tout")
    .Attr("T: {float, double} = DT_FLOAT")
    .Attr("Tout: {complex64, complex128} = DT_COMPLEX64")
    .SetShapeFn(BroadcastBinaryShape)
    .Doc(
        "Makes complex numbers of their real and imaginary parts, which are broadcast against each "
        "other. `Tout` is complex128 for double.");

}  // namespace troupe

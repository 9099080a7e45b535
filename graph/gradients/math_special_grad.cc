// Gradients of inverse, hyperbolic and special functions, and of the parts of complex numbers.
#include <numbers>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output One(GradientContext& g, Output like) { return g.ScalarOfType(like.type(), 1); }
Output Square(GradientContext& g, Output x) { return g.Op("Square", {x}); }
Output Exp(GradientContext& g, Output x) { return g.Op("Exp", {x}); }

// --- inverse and hyperbolic functions ------------------------------------------------------------

/// dy / sqrt(1 - x^2).
Output BySine(GradientContext& g) {
  const Output x = g.Conj(g.input(0));
  const Output cosine = g.Op("Sqrt", {Sub(g, One(g, x), Square(g, x))});
  return Mul(g, g.grad(), g.Op("Reciprocal", {cosine}));
}
void AsinGrad(GradientContext& g) { g.set(0, BySine(g)); }
REGISTER_GRADIENT("Asin", AsinGrad);
void AcosGrad(GradientContext& g) { g.set(0, Neg(g, BySine(g))); }
REGISTER_GRADIENT("Acos", AcosGrad);

void AtanGrad(GradientContext& g) {
  const Output x = g.Conj(g.input(0));
  g.set(0, Mul(g, g.grad(), g.Op("Reciprocal", {Add(g, One(g, x), Square(g, x))})));
}
REGISTER_GRADIENT("Atan", AtanGrad);

void AtanhGrad(GradientContext& g) {
  const Output x = g.Conj(g.input(0));
  g.set(0, Mul(g, g.grad(), g.Op("Reciprocal", {Sub(g, One(g, x), Square(g, x))})));
}
REGISTER_GRADIENT("Atanh", AtanhGrad);

void AcoshGrad(GradientContext& g) {
  g.set(0, Div(g, g.grad(), g.Op("Sinh", {g.Conj(g.output(0))})));
}
REGISTER_GRADIENT("Acosh", AcoshGrad);

void AsinhGrad(GradientContext& g) {
  g.set(0, Div(g, g.grad(), g.Op("Cosh", {g.Conj(g.output(0))})));
}
REGISTER_GRADIENT("Asinh", AsinhGrad);

void CoshGrad(GradientContext& g) {
  g.set(0, Mul(g, g.grad(), g.Op("Sinh", {g.Conj(g.input(0))})));
}
REGISTER_GRADIENT("Cosh", CoshGrad);

void SinhGrad(GradientContext& g) {
  g.set(0, Mul(g, g.grad(), g.Op("Cosh", {g.Conj(g.input(0))})));
}
REGISTER_GRADIENT("Sinh", SinhGrad);

void Atan2Grad(GradientContext& g) {
  const Output y = g.input(0), x = g.input(1);
  const Output scaled = Div(g, g.grad(), Add(g, Square(g, x), Square(g, y)));
  SetBinary(
      g, [&] { return Mul(g, x, scaled); }, [&] { return Mul(g, Neg(g, y), scaled); });
}
REGISTER_GRADIENT("Atan2", Atan2Grad);

// --- special functions ---------------------------------------------------------------------------

void DawsnGrad(GradientContext& g) {
  const Output product = Mul(g, g.input(0), g.output(0));
  g.set(0, Mul(g, g.grad(), Sub(g, One(g, product), Scale(g, product, 2))));
}
REGISTER_GRADIENT("Dawsn", DawsnGrad);

void DigammaGrad(GradientContext& g) {
  const Output x = g.input(0);
  g.set(0, Mul(g, g.grad(), g.Op("Polygamma", {One(g, x), x})));
}
REGISTER_GRADIENT("Digamma", DigammaGrad);

void ErfcGrad(GradientContext& g) {
  const Output bell = Exp(g, Neg(g, Square(g, g.input(0))));
  g.set(0, Mul(g, Scale(g, g.grad(), -2 * std::numbers::inv_sqrtpi), bell));
}
REGISTER_GRADIENT("Erfc", ErfcGrad);

void ErfinvGrad(GradientContext& g) {
  const Output slope = Scale(g, Exp(g, Square(g, g.output(0))), 0.5 / std::numbers::inv_sqrtpi);
  g.set(0, Mul(g, g.grad(), slope));
}
REGISTER_GRADIENT("Erfinv", ErfinvGrad);

void NdtriGrad(GradientContext& g) {
  const Output slope = Scale(g, Exp(g, Scale(g, Square(g, g.output(0)), 0.5)),
                             std::numbers::sqrt2 / std::numbers::inv_sqrtpi);
  g.set(0, Mul(g, g.grad(), slope));
}
REGISTER_GRADIENT("Ndtri", NdtriGrad);

void ExpintGrad(GradientContext& g) {
  g.set(0, Mul(g, g.grad(), Div(g, Exp(g, g.input(0)), g.input(0))));
}
REGISTER_GRADIENT("Expint", ExpintGrad);

void FresnelGrad(GradientContext& g, std::string_view wave) {
  const Output angle = Scale(g, Square(g, g.input(0)), std::numbers::pi / 2);
  g.set(0, Mul(g, g.grad(), g.Op(wave, {angle})));
}
void FresnelCosGrad(GradientContext& g) { FresnelGrad(g, "Cos"); }
void FresnelSinGrad(GradientContext& g) { FresnelGrad(g, "Sin"); }
REGISTER_GRADIENT("FresnelCos", FresnelCosGrad);
REGISTER_GRADIENT("FresnelSin", FresnelSinGrad);

void LgammaGrad(GradientContext& g) { g.set(0, Mul(g, g.grad(), g.Op("Digamma", {g.input(0)}))); }
REGISTER_GRADIENT("Lgamma", LgammaGrad);

void SpenceGrad(GradientContext& g) {
  const Output x = g.input(0), one = One(g, x);
  // log(x) / (1 - x), the limit of which at 1 is -1.
  const Output quotient = Div(g, g.Op("Log", {x}), Sub(g, one, x));
  const Output slope = Select(g, g.Op("Equal", {x, one}), g.ScalarOfType(x.type(), -1), quotient);
  g.set(0, Mul(g, g.grad(), slope));
}
REGISTER_GRADIENT("Spence", SpenceGrad);

/// Of P(a, x), or if `upper` of 1 - P(a, x).
void IncompleteGammaGrad(GradientContext& g, bool upper) {
  const Output a = g.input(0), x = g.input(1);
  const Output grad = upper ? Neg(g, g.grad()) : g.grad();
  SetBinary(
      g,
      [&] {
        return Mul(g, grad, g.Op("IgammaGradA", {a, x}));
      },
      [&] {
        const Output log_power = Mul(g, Sub(g, a, One(g, a)), g.Op("Log", {x}));
        const Output log = Sub(g, Sub(g, log_power, x), g.Op("Lgamma", {a}));
        return Mul(g, grad, Exp(g, log));
      });
}
void IgammaGrad(GradientContext& g) { IncompleteGammaGrad(g, /*upper=*/false); }
void IgammacGrad(GradientContext& g) { IncompleteGammaGrad(g, /*upper=*/true); }
REGISTER_GRADIENT("Igamma", IgammaGrad);
REGISTER_GRADIENT("Igammac", IgammacGrad);

// Like TensorFlow's, the following have gradients for their last input only.

void BetaincGrad(GradientContext& g) {
  if (!g.wanted(2)) return;
  const Output a = g.input(0), b = g.input(1), x = g.input(2);
  const auto lgamma = [&](Output y) { return g.Op("Lgamma", {y}); };
  const auto less_one = [&](Output y) { return Sub(g, y, One(g, y)); };
  const Output log_beta = Sub(g, Add(g, lgamma(a), lgamma(b)), lgamma(Add(g, a, b)));
  const Output log_powers =
      Add(g, g.Op("Xlog1py", {less_one(b), Neg(g, x)}), g.Op("Xlogy", {less_one(a), x}));
  Unbroadcast unbroadcast(g, x, g.output(0));
  g.set(2, unbroadcast.Reduce(0, Mul(g, g.grad(), Exp(g, Sub(g, log_powers, log_beta)))));
}
REGISTER_GRADIENT("Betainc", BetaincGrad);

void PolygammaGrad(GradientContext& g) {
  if (!g.wanted(1)) return;
  const Output n = g.input(0), x = g.input(1);
  Unbroadcast unbroadcast(g, n, x);
  const Output next = g.Op("Polygamma", {Add(g, n, One(g, n)), x});
  g.set(1, unbroadcast.Reduce(1, Mul(g, g.grad(), next)));
}
REGISTER_GRADIENT("Polygamma", PolygammaGrad);

void ZetaGrad(GradientContext& g) {
  if (!g.wanted(1)) return;
  const Output x = g.input(0), q = g.input(1);
  Unbroadcast unbroadcast(g, x, q);
  const Output next = Mul(g, Neg(g, x), g.Op("Zeta", {Add(g, x, One(g, x)), q}));
  g.set(1, unbroadcast.Reduce(1, Mul(g, g.grad(), next)));
}
REGISTER_GRADIENT("Zeta", ZetaGrad);

// --- products that are 0 where an operand is -----------------------------------------------------

// Like TensorFlow's, these do not conjugate complex numbers.

void MulNoNanGrad(GradientContext& g) {
  SetBinary(
      g,
      [&] {
        return g.Op("MulNoNan", {g.grad(), g.input(1)});
      },
      [&] {
        return g.Op("MulNoNan", {g.input(0), g.grad()});
      });
}
REGISTER_GRADIENT("MulNoNan", MulNoNanGrad);

/// 1 where input 0 is not 0, else 0.
Output NotZero(GradientContext& g) {
  const Output x = g.input(0);
  return Cast(g, g.Op("NotEqual", {x, g.ScalarOfType(x.type(), 0)}), x.type());
}

void XlogyGrad(GradientContext& g) {
  const Output x = g.input(0), y = g.input(1);
  SetBinary(
      g,
      [&] {
        return Mul(g, g.grad(), g.Op("Xlogy", {NotZero(g), y}));
      },
      [&] {
        return Mul(g, g.grad(), g.Op("Xdivy", {x, y}));
      });
}
REGISTER_GRADIENT("Xlogy", XlogyGrad);

void Xlog1pyGrad(GradientContext& g) {
  const Output x = g.input(0), y = g.input(1);
  SetBinary(
      g,
      [&] {
        return Mul(g, g.grad(), g.Op("Xlog1py", {NotZero(g), y}));
      },
      [&] {
        return Mul(g, g.grad(), g.Op("Xdivy", {x, Add(g, y, One(g, y))}));
      });
}
REGISTER_GRADIENT("Xlog1py", Xlog1pyGrad);

void XdivyGrad(GradientContext& g) {
  const Output x = g.input(0), y = g.input(1);
  SetBinary(
      g,
      [&] {
        return Mul(g, g.grad(), g.Op("Xdivy", {NotZero(g), y}));
      },
      [&] {
        return Mul(g, g.grad(), g.Op("Xdivy", {Neg(g, x), Square(g, y)}));
      });
}
REGISTER_GRADIENT("Xdivy", XdivyGrad);

/// The step to the next number counts for nothing.
void NextAfterGrad(GradientContext& g) {
  SetBinary(
      g, [&] { return g.grad(); }, [&] { return g.ZerosLike(g.grad()); });
}
REGISTER_GRADIENT("NextAfter", NextAfterGrad);

// --- complex numbers -----------------------------------------------------------------------------

Output MakeComplex(GradientContext& g, Output real, Output imag, ElementType type) {
  return g.Op("Complex", {real, imag}, [&](NodeSpec& spec) { spec.Attr("Tout", type); });
}
Output PartOf(GradientContext& g, std::string_view op, Output x, ElementType type) {
  return g.Op(op, {x}, [&](NodeSpec& spec) { spec.Attr("Tout", type); });
}
Output RealZero(GradientContext& g) { return g.ScalarOfType(g.grad().type(), 0); }

void RealGrad(GradientContext& g) {
  g.set(0, MakeComplex(g, g.grad(), RealZero(g), g.input(0).type()));
}
REGISTER_GRADIENT("Real", RealGrad);

void ImagGrad(GradientContext& g) {
  g.set(0, MakeComplex(g, RealZero(g), g.grad(), g.input(0).type()));
}
REGISTER_GRADIENT("Imag", ImagGrad);

void ComplexGrad(GradientContext& g) {
  const ElementType part = g.input(0).type();
  SetBinary(
      g, [&] { return PartOf(g, "Real", g.grad(), part); },
      [&] { return PartOf(g, "Imag", g.grad(), part); });
}
REGISTER_GRADIENT("Complex", ComplexGrad);

void ComplexAbsGrad(GradientContext& g) {
  const Output x = g.input(0);
  const Output grad = MakeComplex(g, g.grad(), RealZero(g), x.type());
  const Output size = MakeComplex(g, g.output(0), RealZero(g), x.type());
  g.set(0, g.Op("DivNoNan", {Mul(g, grad, x), size}));
}
REGISTER_GRADIENT("ComplexAbs", ComplexAbsGrad);

/// -dy / (im + i re).
void AngleGrad(GradientContext& g) {
  const Output x = g.input(0);
  const ElementType part = g.grad().type();
  const Output turned =
      MakeComplex(g, PartOf(g, "Imag", x, part), PartOf(g, "Real", x, part), x.type());
  const Output grad = MakeComplex(g, g.grad(), RealZero(g), x.type());
  g.set(0, Mul(g, Neg(g, grad), g.Op("Reciprocal", {turned})));
}
REGISTER_GRADIENT("Angle", AngleGrad);

// --- none ----------------------------------------------------------------------------------------

REGISTER_NO_GRADIENT("ApproximateEqual");
REGISTER_NO_GRADIENT("BitwiseAnd");
REGISTER_NO_GRADIENT("BitwiseOr");
REGISTER_NO_GRADIENT("BitwiseXor");
REGISTER_NO_GRADIENT("Invert");
REGISTER_NO_GRADIENT("LeftShift");
REGISTER_NO_GRADIENT("PopulationCount");
REGISTER_NO_GRADIENT("RightShift");

}  // namespace
}  // namespace troupe::gradients

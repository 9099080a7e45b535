// Gradients of element-wise ops with one operand, and of those gradients.
#include <numbers>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void AbsGrad(GradientContext& g) { g.set(0, Mul(g, g.grad(), g.Op("Sign", {g.input(0)}))); }
REGISTER_GRADIENT("Abs", AbsGrad);

void NegGrad(GradientContext& g) { g.set(0, Neg(g, g.grad())); }
REGISTER_GRADIENT("Neg", NegGrad);

void ReciprocalGrad(GradientContext& g) {
  g.set(0, g.Op("ReciprocalGrad", {g.output(0), g.grad()}));
}
REGISTER_GRADIENT("Inv", ReciprocalGrad);
REGISTER_GRADIENT("Reciprocal", ReciprocalGrad);

// f(y, dy) = -dy conj(y)^2.
void ReciprocalGradGrad(GradientContext& g) {
  Output y = g.Conj(g.input(0));
  if (g.wanted(0)) {
    g.set(0, Mul(g, Mul(g, Scale(g, g.Conj(g.grad()), -2), g.input(1)), y));
  }
  if (g.wanted(1)) g.set(1, g.Op("ReciprocalGrad", {y, g.grad()}));
}
REGISTER_GRADIENT("InvGrad", ReciprocalGradGrad);
REGISTER_GRADIENT("ReciprocalGrad", ReciprocalGradGrad);

void SquareGrad(GradientContext& g) { g.set(0, Mul(g, g.grad(), Scale(g, g.Conj(g.input(0)), 2))); }
REGISTER_GRADIENT("Square", SquareGrad);

void SqrtGrad(GradientContext& g) { g.set(0, g.Op("SqrtGrad", {g.output(0), g.grad()})); }
REGISTER_GRADIENT("Sqrt", SqrtGrad);

// f(y, dy) = dy / (2 conj(y)).
void SqrtGradGrad(GradientContext& g) {
  Output ratio = Div(g, g.grad(), g.input(0));
  if (g.wanted(0)) g.set(0, Mul(g, Neg(g, g.Conj(ratio)), g.output(0)));
  if (g.wanted(1)) g.set(1, Scale(g, ratio, 0.5));
}
REGISTER_GRADIENT("SqrtGrad", SqrtGradGrad);

void RsqrtGrad(GradientContext& g) { g.set(0, g.Op("RsqrtGrad", {g.output(0), g.grad()})); }
REGISTER_GRADIENT("Rsqrt", RsqrtGrad);

// f(y, dy) = -dy conj(y)^3 / 2.
void RsqrtGradGrad(GradientContext& g) {
  Output y = g.Conj(g.input(0));
  if (g.wanted(0)) {
    g.set(0, Mul(g, Mul(g, Scale(g, g.Conj(g.grad()), -1.5), g.input(1)), g.Op("Square", {y})));
  }
  if (g.wanted(1)) g.set(1, g.Op("RsqrtGrad", {y, g.grad()}));
}
REGISTER_GRADIENT("RsqrtGrad", RsqrtGradGrad);

void ExpGrad(GradientContext& g) { g.set(0, Mul(g, g.grad(), g.Conj(g.output(0)))); }
REGISTER_GRADIENT("Exp", ExpGrad);

void Expm1Grad(GradientContext& g) {
  g.set(0, Mul(g, g.grad(), g.Op("Exp", {g.Conj(g.input(0))})));
}
REGISTER_GRADIENT("Expm1", Expm1Grad);

void LogGrad(GradientContext& g) {
  g.set(0, Mul(g, g.grad(), g.Op("Reciprocal", {g.Conj(g.input(0))})));
}
REGISTER_GRADIENT("Log", LogGrad);

void Log1pGrad(GradientContext& g) {
  Output x = g.Conj(g.input(0));
  Output sum = Add(g, g.ScalarOfType(g.input(0).type(), 1), x);
  g.set(0, Mul(g, g.grad(), g.Op("Reciprocal", {sum})));
}
REGISTER_GRADIENT("Log1p", Log1pGrad);

void TanhGrad(GradientContext& g) { g.set(0, g.Op("TanhGrad", {g.Conj(g.output(0)), g.grad()})); }
REGISTER_GRADIENT("Tanh", TanhGrad);

// f(y, dy) = dy (1 - y^2).
void TanhGradGrad(GradientContext& g) {
  Output y = g.Conj(g.input(0));
  if (g.wanted(0)) {
    g.set(0, Mul(g, Mul(g, Scale(g, g.grad(), -2), g.Conj(g.input(1))), y));
  }
  if (g.wanted(1)) g.set(1, g.Op("TanhGrad", {y, g.grad()}));
}
REGISTER_GRADIENT("TanhGrad", TanhGradGrad);

void SigmoidGrad(GradientContext& g) {
  g.set(0, g.Op("SigmoidGrad", {g.Conj(g.output(0)), g.grad()}));
}
REGISTER_GRADIENT("Sigmoid", SigmoidGrad);

// f(y, dy) = dy y (1 - y).
void SigmoidGradGrad(GradientContext& g) {
  Output y = g.Conj(g.input(0));
  if (g.wanted(0)) {
    Output product = Mul(g, g.grad(), g.Conj(g.input(1)));
    g.set(0, Sub(g, product, Mul(g, Scale(g, product, 2), y)));
  }
  if (g.wanted(1)) g.set(1, g.Op("SigmoidGrad", {y, g.grad()}));
}
REGISTER_GRADIENT("SigmoidGrad", SigmoidGradGrad);

void ErfGrad(GradientContext& g) {
  Output bell = g.Op("Exp", {Neg(g, g.Op("Square", {g.input(0)}))});
  g.set(0, Mul(g, Scale(g, g.grad(), 2 * std::numbers::inv_sqrtpi), bell));
}
REGISTER_GRADIENT("Erf", ErfGrad);

void SignGrad(GradientContext& g) { g.set(0, g.ZerosLike(g.input(0))); }
REGISTER_GRADIENT("Sign", SignGrad);

void SinGrad(GradientContext& g) { g.set(0, Mul(g, g.grad(), g.Op("Cos", {g.Conj(g.input(0))}))); }
REGISTER_GRADIENT("Sin", SinGrad);

void CosGrad(GradientContext& g) {
  g.set(0, Mul(g, Neg(g, g.grad()), g.Op("Sin", {g.Conj(g.input(0))})));
}
REGISTER_GRADIENT("Cos", CosGrad);

void TanGrad(GradientContext& g) {
  Output secant = g.Op("Reciprocal", {g.Op("Cos", {g.Conj(g.input(0))})});
  g.set(0, Mul(g, g.Op("Square", {secant}), g.grad()));
}
REGISTER_GRADIENT("Tan", TanGrad);

void ConjGrad(GradientContext& g) { g.set(0, g.Conj(g.grad())); }
REGISTER_GRADIENT("Conj", ConjGrad);

void CastGrad(GradientContext& g) {
  auto continuous = [](ElementType type) { return IsFloating(type) || IsComplex(type); };
  const ElementType source = g.input(0).type();
  if (continuous(source) && continuous(g.grad().type())) g.set(0, Cast(g, g.grad(), source));
}
REGISTER_GRADIENT("Cast", CastGrad);

// Piecewise constant: differentiable, but nothing flows back.
void NothingFlows(GradientContext&) {}
REGISTER_GRADIENT("Ceil", NothingFlows);
REGISTER_GRADIENT("Floor", NothingFlows);
REGISTER_GRADIENT("Rint", NothingFlows);
REGISTER_GRADIENT("Round", NothingFlows);
REGISTER_GRADIENT("FloorDiv", NothingFlows);
REGISTER_GRADIENT("TruncateDiv", NothingFlows);
REGISTER_GRADIENT("ArgMax", NothingFlows);
REGISTER_GRADIENT("ArgMin", NothingFlows);

}  // namespace
}  // namespace troupe::gradients

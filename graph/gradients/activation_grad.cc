// Gradients of the networks' activation functions, and of those gradients.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output FloatZero(GradientContext& g) { return g.ScalarOfType(g.grad().type(), 0); }

/// y = f(x), where <op>Grad takes (dy, y).
template <const char* const& kGradOp>
void GradOfOutput(GradientContext& g) {
  g.set(0, g.Op(kGradOp, {g.grad(), g.output(0)}));
}
/// dx = f(dy, x), linear in dy and piecewise linear in x: nothing flows to x but zeros.
template <const char* const& kGradOp>
void PiecewiseLinearGradGrad(GradientContext& g) {
  if (g.wanted(0)) g.set(0, g.Op(kGradOp, {g.grad(), g.input(1)}));
  if (g.wanted(1)) g.set(1, g.ZerosLike(g.input(1)));
}
/// dx = f(dy, y) = dy below, and dy (y + constant) for negative y.
template <const char* const& kGradOp>
void ExponentialGradGrad(GradientContext& g) {
  const Output dy = g.input(0), y = g.input(1);
  if (g.wanted(0)) g.set(0, g.Op(kGradOp, {g.grad(), y}));
  if (g.wanted(1)) {
    Output zero = FloatZero(g);
    g.set(1, Select(g, g.Op("Less", {y, zero}), Mul(g, g.grad(), dy), zero));
  }
}

constexpr const char* kReluGrad = "ReluGrad";
constexpr const char* kRelu6Grad = "Relu6Grad";
constexpr const char* kEluGrad = "EluGrad";
constexpr const char* kSeluGrad = "SeluGrad";

REGISTER_GRADIENT("Relu", GradOfOutput<kReluGrad>);
REGISTER_GRADIENT("Relu6", GradOfOutput<kRelu6Grad>);
REGISTER_GRADIENT("Elu", GradOfOutput<kEluGrad>);
REGISTER_GRADIENT("Selu", GradOfOutput<kSeluGrad>);
REGISTER_GRADIENT("ReluGrad", PiecewiseLinearGradGrad<kReluGrad>);
REGISTER_GRADIENT("Relu6Grad", PiecewiseLinearGradGrad<kRelu6Grad>);
REGISTER_GRADIENT("EluGrad", ExponentialGradGrad<kEluGrad>);
REGISTER_GRADIENT("SeluGrad", ExponentialGradGrad<kSeluGrad>);

Output LeakyReluBackward(GradientContext& g, Output grad, Output x) {
  return g.Op("LeakyReluGrad", {grad, x},
              [&](NodeSpec& spec) { CopyAttrs(g.node(), {"alpha"}, spec); });
}
void LeakyReluGrad(GradientContext& g) { g.set(0, LeakyReluBackward(g, g.grad(), g.input(0))); }
REGISTER_GRADIENT("LeakyRelu", LeakyReluGrad);

void LeakyReluGradGrad(GradientContext& g) {
  if (g.wanted(0)) g.set(0, LeakyReluBackward(g, g.grad(), g.input(1)));
  if (g.wanted(1)) g.set(1, g.ZerosLike(g.input(1)));
}
REGISTER_GRADIENT("LeakyReluGrad", LeakyReluGradGrad);

void SoftplusGrad(GradientContext& g) { g.set(0, Mul(g, g.grad(), g.Op("Sigmoid", {g.input(0)}))); }
REGISTER_GRADIENT("Softplus", SoftplusGrad);

// f(dy, x) = dy sigmoid(x).
void SoftplusGradGrad(GradientContext& g) {
  const Output dy = g.input(0), x = g.input(1);
  if (g.wanted(0)) g.set(0, g.Op("SoftplusGrad", {g.grad(), x}));
  if (g.wanted(1)) {
    Output two = g.ScalarOfType(x.type(), 2);
    Output width = Add(g, Add(g, g.Op("Exp", {Neg(g, x)}), two), g.Op("Exp", {x}));
    g.set(1, Div(g, Mul(g, g.grad(), dy), width));
  }
}
REGISTER_GRADIENT("SoftplusGrad", SoftplusGradGrad);

void SoftsignGrad(GradientContext& g) { g.set(0, g.Op("SoftsignGrad", {g.grad(), g.input(0)})); }
REGISTER_GRADIENT("Softsign", SoftsignGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of random numbers for the parameters of their distributions, by implicit
// differentiation (Figurnov, Mohamed, Mnih, "Implicit Reparameterization Gradients", NeurIPS 2018).
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/gradients/gradient_ops.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {
namespace {

/// Sets the gradient of a parameter that was broadcast to the numbers that were drawn.
void SetParameter(GradientContext& g, int i, Output grad) {
  g.set(i, Unbroadcast(g, g.input(i), g.output(0)).Reduce(0, grad));
}

template <int kAlpha>
void GammaGrad(GradientContext& g) {
  const Output for_alpha = g.Op("RandomGammaGrad", {g.input(kAlpha), g.output(0)});
  SetParameter(g, kAlpha, Mul(g, g.grad(), for_alpha));
}

/// The normal distribution function, as exact far below 0 as near it.
Output NormalDistribution(GradientContext& g, Output x) {
  const auto number = [&](double value) { return g.ScalarOfType(x.type(), value); };
  const Output half_root = number(0.5 * std::numbers::sqrt2);
  const Output w = Mul(g, x, half_root), z = g.Op("Abs", {w});
  const Output tail = g.Op("Erfc", {z});
  const Output outside = Select(g, g.Op("Greater", {w, number(0)}), Sub(g, number(2), tail), tail);
  const Output inside = Add(g, number(1), g.Op("Erf", {w}));
  return Scale(g, Select(g, g.Op("Less", {z, half_root}), inside, outside), 0.5);
}

/// The smallest normal number above 0, and the greatest below 1.
struct UnitRange {
  double least, greatest;
};
UnitRange InsideOfUnit(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return {std::ldexp(1.0, -14), 1 - std::ldexp(1.0, -10)};
    case ElementType::kFloat:
      return {std::numeric_limits<float>::min(), 1 - std::numeric_limits<float>::epsilon()};
    default:
      return {std::numeric_limits<double>::min(), 1 - std::numeric_limits<double>::epsilon()};
  }
}

/// The gradients for mean and deviation are those with the bounds moving along, as TensorFlow's.
void BoundedNormalGrad(GradientContext& g) {
  enum { kMean = 2, kDeviation, kLow, kHigh };
  const Output mean = g.input(kMean), grad = g.grad();
  const auto standardized = [&](Output x) { return Div(g, Sub(g, x, mean), g.input(kDeviation)); };
  const Output sample = standardized(g.output(0));
  if (g.wanted(kMean)) SetParameter(g, kMean, grad);
  if (g.wanted(kDeviation)) SetParameter(g, kDeviation, Mul(g, grad, sample));
  if (!g.wanted(kLow) && !g.wanted(kHigh)) return;
  const Output low = standardized(g.input(kLow)), high = standardized(g.input(kHigh));
  const Output below_low = NormalDistribution(g, low);
  const Output share = Div(g, Sub(g, NormalDistribution(g, sample), below_low),
                           Sub(g, NormalDistribution(g, high), below_low));
  const UnitRange range = InsideOfUnit(mean.type());
  const Output clipped = g.Op("ClipByValue", {share, g.ScalarOfType(mean.type(), range.least),
                                              g.ScalarOfType(mean.type(), range.greatest)});
  // The density at the bound over that at the number, times the share of the other side.
  const auto for_bound = [&](Output bound, Output log_share) {
    const Output squares = Sub(g, g.Op("Square", {sample}), g.Op("Square", {bound}));
    return Mul(g, grad, g.Op("Exp", {Add(g, Scale(g, squares, 0.5), log_share)}));
  };
  if (g.wanted(kLow)) {
    SetParameter(g, kLow, for_bound(low, g.Op("Log1p", {Neg(g, clipped)})));
  }
  if (g.wanted(kHigh)) SetParameter(g, kHigh, for_bound(high, g.Op("Log", {clipped})));
}

REGISTER_GRADIENT("RandomGamma", GammaGrad<1>);
REGISTER_GRADIENT("StatelessRandomGammaV2", GammaGrad<2>);
REGISTER_GRADIENT("StatelessRandomGammaV3", GammaGrad<4>);
REGISTER_GRADIENT("StatelessParameterizedTruncatedNormal", BoundedNormalGrad);

REGISTER_NO_GRADIENT("ParameterizedTruncatedNormal");
REGISTER_NO_GRADIENT("RandomIndexShuffle");
REGISTER_NO_GRADIENT("StatelessMultinomial");
REGISTER_NO_GRADIENT("StatelessRandomBinomial");
REGISTER_NO_GRADIENT("StatelessRandomNormal");
REGISTER_NO_GRADIENT("StatelessRandomNormalV2");
REGISTER_NO_GRADIENT("StatelessRandomPoisson");
REGISTER_NO_GRADIENT("StatelessRandomUniform");
REGISTER_NO_GRADIENT("StatelessRandomUniformFullInt");
REGISTER_NO_GRADIENT("StatelessRandomUniformFullIntV2");
REGISTER_NO_GRADIENT("StatelessRandomUniformInt");
REGISTER_NO_GRADIENT("StatelessRandomUniformIntV2");
REGISTER_NO_GRADIENT("StatelessRandomUniformV2");
REGISTER_NO_GRADIENT("StatelessTruncatedNormal");
REGISTER_NO_GRADIENT("StatelessTruncatedNormalV2");

}  // namespace
}  // namespace troupe::gradients

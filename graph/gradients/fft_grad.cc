// Gradients of Fourier transforms: transforms in the other direction, times the number of elements.
#include <string>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// Dimensions of the transform of an op: 1, 2 or 3.
int RankOf(const std::string& op) { return op.back() == 'D' ? op[op.size() - 2] - '0' : 1; }

/// a times the number of elements of a transform of `sizes`, or divided by it.
Output TimesCount(GradientContext& g, Output a, const Sizes& sizes, bool divide) {
  const Output count = Cast(g, sizes.Product().Scalar(), a.type());
  return divide ? Div(g, a, count) : Mul(g, a, count);
}

template <bool kForward>
void ComplexFftGrad(GradientContext& g) {
  const std::string& op = g.node()->op();
  const Sizes sizes = Sizes::OfShape(g, g.grad()).Slice(-RankOf(op), Sizes::kEnd);
  const std::string other = kForward ? "I" + op : op.substr(1);
  g.set(0, TimesCount(g, g.Op(other, {g.grad()}), sizes, !kForward));
}
REGISTER_GRADIENT("FFT", ComplexFftGrad<true>);
REGISTER_GRADIENT("FFT2D", ComplexFftGrad<true>);
REGISTER_GRADIENT("FFT3D", ComplexFftGrad<true>);
REGISTER_GRADIENT("IFFT", ComplexFftGrad<false>);
REGISTER_GRADIENT("IFFT2D", ComplexFftGrad<false>);
REGISTER_GRADIENT("IFFT3D", ComplexFftGrad<false>);

/// Weights of the n / 2 + 1 elements that are kept of n: 1 for those that are their own conjugates,
/// the first and, of an even number, the last one; `others` for the rest, which stand for two.
Output HalfWeights(GradientContext& g, Output n, ElementType type, double others) {
  const Output count = Add(g, g.Op("FloorDiv", {n, g.Scalar<int32_t>(2)}), g.Scalar<int32_t>(1));
  const Output k = Numbers(g, count);
  const Output alone = g.Op(
      "LogicalOr", {g.Op("Equal", {k, g.Scalar<int32_t>(0)}), g.Op("Equal", {Add(g, k, k), n})});
  return Select(g, alone, g.ScalarOfType(type, 1), g.ScalarOfType(type, others));
}

/// `grad` with zeros for what the transform cropped of its input.
Output Uncrop(GradientContext& g, Output grad) {
  const PartialShape &from = grad.shape(), &to = g.input(0).shape();
  if (SameKnownShape(from, to)) return grad;
  const Output missing =
      Sub(g, Sizes::OfShape(g, g.input(0)).Vector(), Sizes::OfShape(g, grad).Vector());
  const Output pads = Pack(g, {g.ZerosLike(missing), missing}, 1);
  return g.Op("Pad", {grad, pads});
}

template <bool kForward>
void RealFftGrad(GradientContext& g) {
  const std::string& op = g.node()->op();
  const Output lengths = g.input(1);
  const Sizes sizes = Sizes::OfTensor(g, lengths);
  const Output n = sizes.Slice(-1, Sizes::kEnd).Scalar();
  const ElementType complex_type = kForward ? g.grad().type() : g.input(0).type();
  const Output weights = HalfWeights(g, n, complex_type, kForward ? 0.5 : 2);
  const auto of_type = [&](NodeSpec& spec) {
    spec.Attr(kForward ? "Treal" : "Tcomplex", g.input(0).type());
  };
  Output grad;
  if (kForward) {
    grad = g.Op("I" + op, {Mul(g, g.grad(), weights), lengths}, of_type);
  } else {
    grad = Mul(g, g.Op(op.substr(1), {g.grad(), lengths}, of_type), weights);
  }
  g.set(0, Uncrop(g, TimesCount(g, grad, sizes, !kForward)));
}
REGISTER_GRADIENT("RFFT", RealFftGrad<true>);
REGISTER_GRADIENT("RFFT2D", RealFftGrad<true>);
REGISTER_GRADIENT("IRFFT", RealFftGrad<false>);
REGISTER_GRADIENT("IRFFT2D", RealFftGrad<false>);

}  // namespace
}  // namespace troupe::gradients

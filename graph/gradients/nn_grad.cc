// Gradients of biases, softmax and losses.
#include <algorithm>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void BiasAddGrad(GradientContext& g) {
  g.set(0, g.grad());
  if (g.wanted(1)) {
    g.set(1, g.Op("BiasAddGrad", {g.grad()},
                  [&](NodeSpec& spec) { CopyAttrs(g.node(), {"data_format"}, spec); }));
  }
}
REGISTER_GRADIENT("BiasAdd", BiasAddGrad);
REGISTER_GRADIENT("BiasAddV1", BiasAddGrad);

void BiasAddGradGrad(GradientContext& g) {
  // The bias's sizes are the last, or the second after "NC": [C, 1, 1...] broadcasts to that.
  Sizes shape = Sizes::OfShape(g, g.input(0));
  Output bias = g.grad();
  if (g.node()->attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW") {
    if (shape.count_known()) {
      std::vector<int32_t> sizes(std::max(1, shape.count() - 1), 1);
      sizes[0] = -1;
      if (sizes.size() > 1) bias = g.Op("Reshape", {bias, g.IntVector(sizes)});
    } else {
      Output ones = g.OnesLike(shape.Slice(2, Sizes::kEnd).Vector());
      Sizes sizes = shape.Slice(1, 2).Concat(Sizes::OfTensor(g, ones));
      bias = g.Op("Reshape", {bias, sizes.Vector()});
    }
  }
  g.set(0, BroadcastTo(g, bias, shape));
}
REGISTER_GRADIENT("BiasAddGrad", BiasAddGradGrad);

void SoftmaxGrad(GradientContext& g) {
  const Output y = g.output(0);
  Output weight = Sum(g, Mul(g, g.grad(), y), {-1}, true);
  g.set(0, Mul(g, Sub(g, g.grad(), weight), y));
}
REGISTER_GRADIENT("Softmax", SoftmaxGrad);

void LogSoftmaxGrad(GradientContext& g) {
  Output softmax = g.Op("Exp", {g.output(0)});
  g.set(0, Sub(g, g.grad(), Mul(g, Sum(g, g.grad(), {-1}, true), softmax)));
}
REGISTER_GRADIENT("LogSoftmax", LogSoftmaxGrad);

/// `per_row` [batch] times `rows` [batch, classes].
Output ScaleRows(GradientContext& g, Output per_row, Output rows) {
  return Mul(g, g.Op("ExpandDims", {per_row, g.Scalar<int32_t>(-1)}), rows);
}

/// The gradient of a cross entropy for its logits. Output 1 is what the kernel computed as
/// derivative of output 0; where that is differentiated in turn, it is softmax's derivative.
Output LogitsGrad(GradientContext& g) {
  Output grad;
  if (g.grad(0).valid()) grad = ScaleRows(g, g.grad(0), g.output(1));
  if (g.grad(1).valid()) {
    Output softmax = g.Op("Softmax", {g.input(0)});
    Output weight = Sum(g, Mul(g, g.grad(1), softmax), {-1}, true);
    Output second = Mul(g, Sub(g, g.grad(1), weight), softmax);
    grad = grad.valid() ? Add(g, grad, second) : second;
  }
  return grad;
}

void SoftmaxCrossEntropyGrad(GradientContext& g) {
  Unbroadcast unbroadcast(g, g.input(0), g.input(1));
  // Either input may be broadcast over the batch; if the shapes do not tell, it is not.
  auto reduce = [&](int i, Output grad) {
    const PartialShape& shape = g.input(i).shape();
    return shape.fully_known() && g.input(1 - i).shape().fully_known() ? unbroadcast.Reduce(i, grad)
                                                                       : grad;
  };
  if (g.wanted(0)) g.set(0, reduce(0, LogitsGrad(g)));
  if (g.wanted(1)) {
    Output log = g.Op("LogSoftmax", {g.input(0)});
    g.set(1, reduce(1, ScaleRows(g, g.GradOrZeros(0), Neg(g, log))));
  }
}
REGISTER_GRADIENT("SoftmaxCrossEntropyWithLogits", SoftmaxCrossEntropyGrad);

void SparseSoftmaxCrossEntropyGrad(GradientContext& g) { g.set(0, LogitsGrad(g)); }
REGISTER_GRADIENT("SparseSoftmaxCrossEntropyWithLogits", SparseSoftmaxCrossEntropyGrad);

void L2LossGrad(GradientContext& g) { g.set(0, Mul(g, g.input(0), g.grad())); }
REGISTER_GRADIENT("L2Loss", L2LossGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of pooling, and of those gradients.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output PoolOp(GradientContext& g, std::string_view op, std::initializer_list<Output> inputs) {
  return g.Op(op, inputs, [&](NodeSpec& spec) {
    CopyAttrs(g.node(), {"ksize", "strides", "padding", "data_format"}, spec);
  });
}

void AvgPoolGrad(GradientContext& g) {
  g.set(0, PoolOp(g, "AvgPoolGrad", {g.Shape(g.input(0)), g.grad()}));
}
REGISTER_GRADIENT("AvgPool", AvgPoolGrad);

void AvgPoolGradGrad(GradientContext& g) { g.set(1, PoolOp(g, "AvgPool", {g.grad()})); }
REGISTER_GRADIENT("AvgPoolGrad", AvgPoolGradGrad);

void MaxPoolGrad(GradientContext& g) {
  g.set(0, g.Op("MaxPoolGrad", {g.input(0), g.output(0), g.grad()}, [&](NodeSpec& spec) {
    CopyAttrs(g.node(), {"ksize", "strides", "padding", "explicit_paddings", "data_format"}, spec);
  }));
}
REGISTER_GRADIENT("MaxPool", MaxPoolGrad);

void MaxPoolV2Grad(GradientContext& g) {
  g.set(0, PoolOp(g, "MaxPoolGradV2", {g.input(0), g.output(0), g.grad(), g.input(1), g.input(2)}));
}
REGISTER_GRADIENT("MaxPoolV2", MaxPoolV2Grad);

/// f(x, y, dy) is linear in dy; which elements are the largest does not change with x but by jumps.
void SetZeros(GradientContext& g) {
  for (int i : {0, 1}) {
    if (g.wanted(i)) g.set(i, g.ZerosLike(g.input(i)));
  }
}

void MaxPoolGradGrad(GradientContext& g) {
  SetZeros(g);
  if (g.wanted(2)) {
    g.set(2, PoolOp(g, "MaxPoolGradGrad", {g.input(0), g.input(1), g.grad()}));
  }
}
REGISTER_GRADIENT("MaxPoolGrad", MaxPoolGradGrad);

void MaxPoolGradV2Grad(GradientContext& g) {
  SetZeros(g);
  if (g.wanted(2)) {
    g.set(2, PoolOp(g, "MaxPoolGradGradV2",
                    {g.input(0), g.input(1), g.grad(), g.input(3), g.input(4)}));
  }
}
REGISTER_GRADIENT("MaxPoolGradV2", MaxPoolGradV2Grad);

void MaxPoolGradGradGrad(GradientContext& g) {
  SetZeros(g);
  if (g.wanted(2)) g.set(2, PoolOp(g, "MaxPoolGrad", {g.input(0), g.input(1), g.grad()}));
}
REGISTER_GRADIENT("MaxPoolGradGrad", MaxPoolGradGradGrad);

}  // namespace
}  // namespace troupe::gradients

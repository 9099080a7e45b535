// Gradients of pooling and other ops on neighborhoods beside those of images.
#include <string_view>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output WithAttrs(GradientContext& g, std::string_view op, std::initializer_list<Output> inputs,
                 std::initializer_list<std::string_view> attrs) {
  return g.Op(op, inputs, [&](NodeSpec& spec) { CopyAttrs(g.node(), attrs, spec); });
}

Output VolumePool(GradientContext& g, std::string_view op, std::initializer_list<Output> inputs) {
  return WithAttrs(g, op, inputs, {"ksize", "strides", "padding", "data_format"});
}

void AvgPool3DGrad(GradientContext& g) {
  g.set(0, VolumePool(g, "AvgPool3DGrad", {g.Shape(g.input(0)), g.grad()}));
}
REGISTER_GRADIENT("AvgPool3D", AvgPool3DGrad);

void AvgPool3DGradGrad(GradientContext& g) { g.set(1, VolumePool(g, "AvgPool3D", {g.grad()})); }
REGISTER_GRADIENT("AvgPool3DGrad", AvgPool3DGradGrad);

void MaxPool3DGrad(GradientContext& g) {
  g.set(0, VolumePool(g, "MaxPool3DGrad", {g.input(0), g.output(0), g.grad()}));
}
REGISTER_GRADIENT("MaxPool3D", MaxPool3DGrad);

/// f(x, y, dy) is linear in dy; which elements are the largest does not change with x but by jumps.
void MaxPool3DGradOf(GradientContext& g, std::string_view op) {
  for (const int i : {0, 1}) {
    if (g.wanted(i)) g.set(i, g.ZerosLike(g.input(i)));
  }
  if (g.wanted(2)) g.set(2, VolumePool(g, op, {g.input(0), g.input(1), g.grad()}));
}
void MaxPool3DGradGrad(GradientContext& g) { MaxPool3DGradOf(g, "MaxPool3DGradGrad"); }
void MaxPool3DGradGradGrad(GradientContext& g) { MaxPool3DGradOf(g, "MaxPool3DGrad"); }
REGISTER_GRADIENT("MaxPool3DGrad", MaxPool3DGradGrad);
REGISTER_GRADIENT("MaxPool3DGradGrad", MaxPool3DGradGradGrad);

void MaxPoolWithArgmaxGrad(GradientContext& g) {
  g.set(0, WithAttrs(g, "MaxPoolGradWithArgmax", {g.input(0), g.grad(0), g.output(1)},
                     {"ksize", "strides", "padding", "include_batch_in_index"}));
}
REGISTER_GRADIENT("MaxPoolWithArgmax", MaxPoolWithArgmaxGrad);

void FractionalMaxPoolGrad(GradientContext& g) {
  g.set(0,
        WithAttrs(g, "FractionalMaxPoolGrad",
                  {g.input(0), g.output(0), g.grad(0), g.output(1), g.output(2)}, {"overlapping"}));
}
REGISTER_GRADIENT("FractionalMaxPool", FractionalMaxPoolGrad);

void FractionalAvgPoolGrad(GradientContext& g) {
  const Output shape = g.Op("Shape", {g.input(0)},
                            [](NodeSpec& spec) { spec.Attr("out_type", ElementType::kInt64); });
  g.set(0, WithAttrs(g, "FractionalAvgPoolGrad", {shape, g.grad(0), g.output(1), g.output(2)},
                     {"overlapping"}));
}
REGISTER_GRADIENT("FractionalAvgPool", FractionalAvgPoolGrad);

void Dilation2DGrad(GradientContext& g) {
  const char* ops[] = {"Dilation2DBackpropInput", "Dilation2DBackpropFilter"};
  for (const int i : {0, 1}) {
    if (!g.wanted(i)) continue;
    g.set(i, WithAttrs(g, ops[i], {g.input(0), g.input(1), g.grad()},
                       {"strides", "rates", "padding"}));
  }
}
REGISTER_GRADIENT("Dilation2D", Dilation2DGrad);

void LrnGrad(GradientContext& g) {
  g.set(0, WithAttrs(g, "LRNGrad", {g.grad(), g.input(0), g.output(0)},
                     {"depth_radius", "bias", "alpha", "beta"}));
}
REGISTER_GRADIENT("LRN", LrnGrad);

}  // namespace
}  // namespace troupe::gradients

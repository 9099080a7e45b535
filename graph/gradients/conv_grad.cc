// Gradients of convolutions, and of those gradients.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output ConvOp(GradientContext& g, std::string_view op, std::initializer_list<Output> inputs) {
  return g.Op(op, inputs, [&](NodeSpec& spec) {
    CopyAttrs(
        g.node(),
        {"strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu"},
        spec);
  });
}

void Conv2DGrad(GradientContext& g) {
  const Output x = g.input(0), filter = g.input(1);
  if (g.wanted(0)) {
    g.set(0, ConvOp(g, "Conv2DBackpropInput", {g.Shape(x), filter, g.grad()}));
  }
  if (g.wanted(1)) {
    g.set(1, ConvOp(g, "Conv2DBackpropFilter", {x, g.Shape(filter), g.grad()}));
  }
}
REGISTER_GRADIENT("Conv2D", Conv2DGrad);

// f(sizes, filter, dy).
void Conv2DBackpropInputGrad(GradientContext& g) {
  const Output filter = g.input(1), dy = g.input(2);
  if (g.wanted(1)) {
    g.set(1, ConvOp(g, "Conv2DBackpropFilter", {g.grad(), g.Shape(filter), dy}));
  }
  if (g.wanted(2)) g.set(2, ConvOp(g, "Conv2D", {g.grad(), filter}));
}
REGISTER_GRADIENT("Conv2DBackpropInput", Conv2DBackpropInputGrad);

// f(x, sizes, dy).
void Conv2DBackpropFilterGrad(GradientContext& g) {
  const Output x = g.input(0), dy = g.input(2);
  if (g.wanted(0)) g.set(0, ConvOp(g, "Conv2DBackpropInput", {g.Shape(x), g.grad(), dy}));
  if (g.wanted(2)) g.set(2, ConvOp(g, "Conv2D", {x, g.grad()}));
}
REGISTER_GRADIENT("Conv2DBackpropFilter", Conv2DBackpropFilterGrad);

}  // namespace
}  // namespace troupe::gradients

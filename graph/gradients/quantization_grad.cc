// Gradients of what simulates quantization: that of the identity, but for ops that clip, which pass
// it only where the input is in the range. Of integers there are none.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void StraightThrough(GradientContext& g) { g.set(0, g.grad(0)); }
REGISTER_GRADIENT("QuantizeAndDequantize", StraightThrough);
REGISTER_GRADIENT("QuantizeAndDequantizeV2", StraightThrough);
REGISTER_GRADIENT("QuantizeAndDequantizeV3", StraightThrough);

/// Outputs of the node are the gradients of all inputs.
void SetAll(GradientContext& g, Node* node) {
  if (node == nullptr) return;
  for (int i = 0; i < node->num_outputs(); ++i) g.set(i, Output(node, i));
}

void QuantizeAndDequantizeV4Grad(GradientContext& g) {
  SetAll(g, g.Add("QuantizeAndDequantizeV4Grad", {g.grad(0), g.input(0), g.input(1), g.input(2)},
                  [&](NodeSpec& spec) { CopyAttrs(g.node(), {"axis"}, spec); }));
}
REGISTER_GRADIENT("QuantizeAndDequantizeV4", QuantizeAndDequantizeV4Grad);

void FakeQuantArgsGrad(GradientContext& g) {
  SetAll(g, g.Add("FakeQuantWithMinMaxArgsGradient", {g.grad(0), g.input(0)}, [&](NodeSpec& spec) {
    CopyAttrs(g.node(), {"min", "max", "num_bits", "narrow_range"}, spec);
  }));
}
REGISTER_GRADIENT("FakeQuantWithMinMaxArgs", FakeQuantArgsGrad);
REGISTER_NO_GRADIENT("FakeQuantWithMinMaxArgsGradient");

void FakeQuantVarsGrad(GradientContext& g, std::string_view op) {
  SetAll(g, g.Add(op, {g.grad(0), g.input(0), g.input(1), g.input(2)}, [&](NodeSpec& spec) {
    CopyAttrs(g.node(), {"num_bits", "narrow_range"}, spec);
  }));
}
REGISTER_GRADIENT("FakeQuantWithMinMaxVars", [](GradientContext& g) {
  FakeQuantVarsGrad(g, "FakeQuantWithMinMaxVarsGradient");
});
REGISTER_NO_GRADIENT("FakeQuantWithMinMaxVarsGradient");
REGISTER_GRADIENT("FakeQuantWithMinMaxVarsPerChannel", [](GradientContext& g) {
  FakeQuantVarsGrad(g, "FakeQuantWithMinMaxVarsPerChannelGradient");
});
REGISTER_NO_GRADIENT("FakeQuantWithMinMaxVarsPerChannelGradient");

}  // namespace
}  // namespace troupe::gradients

// Gradients of connectionist temporal classification.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

// The op computes the gradient itself; there is none of that.
void CtcLossGrad(GradientContext& g) {
  const Output own = g.Op("PreventGradient", {g.output(1)}, [](NodeSpec& spec) {
    spec.Attr("message", "CTCLoss has no second derivative.");
  });
  g.set(0, Mul(g, g.Op("ExpandDims", {g.grad(0), g.Scalar<int32_t>(-1)}), own));
}
REGISTER_GRADIENT("CTCLoss", CtcLossGrad);

REGISTER_NO_GRADIENT("CTCBeamSearchDecoder");
REGISTER_NO_GRADIENT("CTCGreedyDecoder");

}  // namespace
}  // namespace troupe::gradients

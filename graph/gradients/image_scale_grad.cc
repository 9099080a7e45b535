// Gradient of ScaleAndTranslate, and late ops on images that have none.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void ScaleAndTranslateGrad(GradientContext& g) {
  const Output image = g.input(0);
  if (image.type() != ElementType::kFloat) return;
  g.set(0, g.Op("ScaleAndTranslateGrad", {g.grad(), image, g.input(2), g.input(3)},
                [&](NodeSpec& spec) {
                  CopyAttrs(g.node(), {"kernel_type", "antialias"}, spec);
                }));
}
REGISTER_GRADIENT("ScaleAndTranslate", ScaleAndTranslateGrad);

REGISTER_NO_GRADIENT("NonMaxSuppressionWithOverlaps");

}  // namespace
}  // namespace troupe::gradients

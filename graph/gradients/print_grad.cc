// The gradient of Print.
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

absl::Status PrintGrad(GradientContext& g) {
  g.set(0, g.gradient(0));
  return g.status();
}
REGISTER_GRADIENT("Print", PrintGrad);

}  // namespace
}  // namespace troupe

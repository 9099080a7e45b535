// The gradient of Print.
#include "graph/gradients/gradient_registry.h"

namespace troupe {
namespace {

void PrintGrad(GradientContext& g) { g.set(0, g.gradient(0)); }
REGISTER_GRADIENT("Print", PrintGrad);

}  // namespace
}  // namespace troupe

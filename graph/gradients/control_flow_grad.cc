// Ops of control flow. Only NextIteration is differentiated by itself; the others are dealt with by
// the structure that they are part of (differentiation.cc, loop_gradient.cc, branch_gradient.cc),
// functional ones by the nodes that they are lowered to (lower_calls.cc).
#include "devices/status_macros.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {
namespace {

void NextIterationGrad(GradientContext& g) { g.set(0, g.gradient()); }
REGISTER_GRADIENT("NextIteration", NextIterationGrad);
REGISTER_GRADIENT("RefIdentity", NextIterationGrad);
REGISTER_GRADIENT("RefNextIteration", NextIterationGrad);

void ByStructure(GradientContext& g) {
  g.Fail(InvalidArgument("node '", g.node()->name(), "' (op ", g.node()->op(),
                         ") is part of no complete loop or branch"));
}
[[maybe_unused]] const bool kRegistered = [] {
  for (const char* op :
       {"Enter", "Exit", "Merge", "RefEnter", "RefExit", "RefMerge", "RefSwitch", "Switch", "Case",
        "For", "If", "PartitionedCall", "RemoteCall", "StatefulPartitionedCall", "StatelessCase",
        "StatelessIf", "StatelessWhile", "SymbolicGradient", "While"}) {
    GradientRegistry::Global()->Register(op, ByStructure);
  }
  return true;
}();

}  // namespace
}  // namespace troupe::gradients

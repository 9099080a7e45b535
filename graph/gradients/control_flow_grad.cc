// Ops of control flow. Only NextIteration is differentiated by itself; the others are dealt with by
// the structure that they are part of (differentiation.cc, loop_gradient.cc, branch_gradient.cc),
// functional ones by the nodes that they are lowered to (lower_calls.cc).
#include "devices/status_macros.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {
namespace {

absl::Status NextIterationGrad(GradientContext& g) {
  g.set(0, g.gradient());
  return g.status();
}
REGISTER_GRADIENT("NextIteration", NextIterationGrad);
REGISTER_GRADIENT("RefIdentity", NextIterationGrad);
REGISTER_GRADIENT("RefNextIteration", NextIterationGrad);

absl::Status ByStructure(GradientContext& g) {
  return InvalidArgument("node '", g.node()->name(), "' (op ", g.node()->op(),
                         ") is part of no complete loop or branch");
}
REGISTER_GRADIENT("Enter", ByStructure);
REGISTER_GRADIENT("Exit", ByStructure);
REGISTER_GRADIENT("Merge", ByStructure);
REGISTER_GRADIENT("RefEnter", ByStructure);
REGISTER_GRADIENT("RefExit", ByStructure);
REGISTER_GRADIENT("RefMerge", ByStructure);
REGISTER_GRADIENT("RefSwitch", ByStructure);
REGISTER_GRADIENT("Switch", ByStructure);

REGISTER_GRADIENT("Case", ByStructure);
REGISTER_GRADIENT("For", ByStructure);
REGISTER_GRADIENT("If", ByStructure);
REGISTER_GRADIENT("PartitionedCall", ByStructure);
REGISTER_GRADIENT("RemoteCall", ByStructure);
REGISTER_GRADIENT("StatefulPartitionedCall", ByStructure);
REGISTER_GRADIENT("StatelessCase", ByStructure);
REGISTER_GRADIENT("StatelessIf", ByStructure);
REGISTER_GRADIENT("StatelessWhile", ByStructure);
REGISTER_GRADIENT("SymbolicGradient", ByStructure);
REGISTER_GRADIENT("While", ByStructure);

// StackPush and StackPop of what one loop saves for another are dealt with there too.
REGISTER_NO_GRADIENT("StackV2");
REGISTER_NO_GRADIENT("StackPushV2");
REGISTER_NO_GRADIENT("StackPopV2");
REGISTER_NO_GRADIENT("StackCloseV2");
REGISTER_NO_GRADIENT("LoopCond");
REGISTER_NO_GRADIENT("ControlTrigger");

}  // namespace
}  // namespace troupe::gradients

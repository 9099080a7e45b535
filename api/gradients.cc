#include "api/gradients.h"

#include "api/flow_context.h"
#include "devices/status_macros.h"

namespace troupe {

std::vector<Output> Gradients(const Scope& scope, absl::Span<const Output> ys,
                              absl::Span<const Output> xs, absl::Span<const Output> grad_ys) {
  std::vector<Output> grads(xs.size());
  // In a branch or loop the chain starts at what comes in from outside.
  auto bring = [&](absl::Span<const Output> tensors) {
    std::vector<Output> brought;
    for (const Output& tensor : tensors) brought.push_back(scope.Bring(tensor));
    return brought;
  };
  const std::vector<Output> inner_ys = bring(ys), inner_xs = bring(xs),
                            inner_grads = bring(grad_ys);
  if (!scope.ok()) return grads;
  const int num_nodes = scope.graph()->num_nodes();
  const std::string prefix = scope.UniqueName("gradients");
  scope.UpdateStatus(AddSymbolicGradients(inner_ys, inner_xs, inner_grads, &grads, prefix));
  FlowContext::Adopt(scope, num_nodes, prefix);
  grads.resize(xs.size());
  return grads;
}

}  // namespace troupe

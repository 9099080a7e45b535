#include "api/gradients.h"

#include "api/internal/flow_context.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

template <typename T>
std::vector<T> GradientsOf(const Scope& scope, absl::Span<const Output> ys,
                           absl::Span<const Output> xs, absl::Span<const Output> grad_ys,
                           GradientOptions options) {
  std::vector<T> grads(xs.size());
  // In a branch or loop the chain starts at what comes in from outside.
  auto bring = [&](absl::Span<const Output> tensors) {
    std::vector<Output> brought;
    for (const Output& tensor : tensors) brought.push_back(scope.Bring(tensor));
    return brought;
  };
  const std::vector<Output> inner_ys = bring(ys), inner_xs = bring(xs),
                            inner_grads = bring(grad_ys);
  options.stop_gradients = bring(options.stop_gradients);
  if (!scope.ok()) return grads;
  const int num_nodes = scope.graph()->num_nodes();
  options.prefix = scope.UniqueName(options.prefix);
  scope.UpdateStatus(AddSymbolicGradients(inner_ys, inner_xs, inner_grads, &grads, options));
  FlowContext::Adopt(scope, num_nodes, options.prefix);
  if (!scope.ok()) grads.assign(xs.size(), T());
  return grads;
}

}  // namespace

OutputList Gradients(const Scope& scope, absl::Span<const Output> ys, absl::Span<const Output> xs,
                     absl::Span<const Output> grad_ys) {
  return GradientsOf<Output>(scope, ys, xs, grad_ys, {});
}

std::vector<Gradient> SparseGradients(const Scope& scope, absl::Span<const Output> ys,
                                      absl::Span<const Output> xs, absl::Span<const Output> grad_ys,
                                      const GradientOptions& options) {
  return GradientsOf<Gradient>(scope, ys, xs, grad_ys, options);
}

}  // namespace troupe

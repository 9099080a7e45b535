#include "api/gradients.h"

namespace troupe {

std::vector<Output> Gradients(const Scope& scope, absl::Span<const Output> ys,
                              absl::Span<const Output> xs, absl::Span<const Output> grad_ys) {
  std::vector<Output> grads(xs.size());
  if (!scope.ok()) return grads;
  scope.UpdateStatus(AddSymbolicGradients(ys, xs, grad_ys, &grads, scope.UniqueName("gradients")));
  grads.resize(xs.size());
  return grads;
}

}  // namespace troupe

#include "graph/gradients/add_gradients.h"

#include "devices/status_macros.h"
#include "graph/gradients/differentiation.h"

namespace troupe {
namespace {

absl::Status CheckTensors(const Graph* graph, absl::Span<const Output> tensors,
                          std::string_view what, bool may_be_invalid) {
  for (const Output& tensor : tensors) {
    if (!tensor.valid()) {
      if (may_be_invalid) continue;
      return InvalidArgument("one of the ", what, " is no tensor");
    }
    if (tensor.node->graph() != graph) {
      return InvalidArgument(what, ": tensor ", tensor.name(), " is of another graph");
    }
    if (tensor.index < 0 || tensor.index >= tensor.node->num_outputs()) {
      return InvalidArgument(what, ": node '", tensor.node->name(), "' (op ", tensor.node->op(),
                             ") has no output ", tensor.index, ", it has ",
                             tensor.node->num_outputs());
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDifferentiable(ElementType type) {
  type = RemoveRef(type);
  return IsFloating(type) || IsComplex(type) || type == ElementType::kResource ||
         type == ElementType::kVariant;
}

absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Gradient>* grads,
                                  const GradientOptions& options) {
  grads->assign(xs.size(), Gradient());
  if (ys.empty() || xs.empty()) return absl::OkStatus();
  if (!ys[0].valid()) return InvalidArgument("one of the ys is no tensor");
  Graph* graph = ys[0].node->graph();
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, ys, "ys", false));
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, xs, "xs", false));
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, grad_ys, "grad_ys", true));
  if (!grad_ys.empty() && grad_ys.size() != ys.size()) {
    return InvalidArgument("got ", grad_ys.size(), " grad_ys for ", ys.size(),
                           " ys; give none, or one for each (an invalid Output stands for ones)");
  }
  TROUPE_RETURN_IF_ERROR(CheckTensors(graph, options.stop_gradients, "stop_gradients", false));
  if (options.max_back_iterations < 0) {
    return InvalidArgument("max_back_iterations is ", options.max_back_iterations,
                           ", expected 0 (all) or more");
  }
  gradients::Differentiation differentiation(graph, ys, xs, options,
                                             graph->UniqueName(options.prefix));
  return differentiation.Run(grad_ys, grads);
}

absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  const GradientOptions& options) {
  std::vector<Gradient> found;
  grads->assign(xs.size(), Output());
  TROUPE_RETURN_IF_ERROR(AddSymbolicGradients(ys, xs, grad_ys, &found, options));
  for (size_t i = 0; i < found.size(); ++i) {
    GradientBuilder g(xs[i].node->graph(), options.prefix);
    (*grads)[i] = g.Dense(found[i]);
    TROUPE_RETURN_IF_ERROR(g.status());
  }
  return absl::OkStatus();
}

absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  std::string_view prefix) {
  GradientOptions options;
  options.prefix = std::string(prefix);
  return AddSymbolicGradients(ys, xs, grad_ys, grads, options);
}

}  // namespace troupe

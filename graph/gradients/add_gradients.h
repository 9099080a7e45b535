/// Symbolic differentiation: extends a graph by the chain rule.
#ifndef TROUPE_GRAPH_GRADIENTS_ADD_GRADIENTS_H_
#define TROUPE_GRAPH_GRADIENTS_ADD_GRADIENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "graph/gradients/gradient.h"
#include "graph/graph.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// True for the element types that gradients flow through: floating, complex, and the handles of
/// what holds them (resource, variant). Reference types count as what they refer to.
bool IsDifferentiable(ElementType type);

/// How to differentiate.
struct GradientOptions {
  /// Nodes are named under this, made unique.
  std::string prefix = "gradients";
  /// Gradients do not flow back through these: they count as constants.
  std::vector<Output> stop_gradients;
  /// The gradients of one node's inputs are used only once all of them have been computed.
  bool gate_gradients = false;
  /// Goes back through at most so many of the last iterations of every loop; what is further back
  /// counts as a constant. 0: through all.
  int64_t max_back_iterations = 0;
};

/// Adds to the graph of `ys` nodes that compute, for every x, d(sum of <y, grad_y>)/dx, and puts
/// them into `grads` (one per x; invalid where no y depends on x through differentiable ops).
///
/// `grad_ys`: empty (ones), or one per y (an invalid Output: ones), of y's type and of a shape
/// compatible with y's; complex ys must have one. A y may be given several times, and may be an x.
/// The gradient of a resource variable's handle is that of its value. Contributions are summed by
/// AddN, at most eight at a time. Ops that are registered as having no gradient, and tensors of
/// integers, end the chain. Gradients of what is looked up by Gather, GatherV2 along the first axis
/// and ResourceGather are sparse.
///
/// NotFound names the op and node on the path that has no gradient registered; InvalidArgument: ys
/// that are no numbers, tensors of other graphs or inside loops, grad_ys that do not fit, malformed
/// loops. Functional control flow and calls on the path are replaced by what they stand for. After
/// an error nodes may have been added that nothing uses. Those of one node's gradient are named
/// under "<prefix>/<node>_grad" and ask for the node's device. Thread-safe as long as nobody else
/// changes the graph.
absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Gradient>* grads,
                                  const GradientOptions& options = {});

/// The same, with every gradient made dense.
absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  const GradientOptions& options);
absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  std::string_view prefix = "gradients");

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_GRADIENTS_ADD_GRADIENTS_H_

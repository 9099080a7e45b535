/// Symbolic differentiation: extends a graph by the chain rule.
#ifndef TROUPE_GRAPH_GRADIENTS_ADD_GRADIENTS_H_
#define TROUPE_GRAPH_GRADIENTS_ADD_GRADIENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/graph.h"

namespace troupe {

/// Adds to the graph of `ys` nodes that compute, for every x, d(sum of <y, grad_y>)/dx, and puts them into
/// `grads` (one per x; invalid where no y depends on x through differentiable ops).
/// `grad_ys`: empty (ones), or one per y (an invalid Output: ones), of y's type and shape.
/// Contributions are summed by AddN. NotFound names the op on the path that has no gradient registered;
/// InvalidArgument: non-floating ys, tensors of other graphs. Nodes are named under `prefix`.
absl::Status AddSymbolicGradients(absl::Span<const Output> ys, absl::Span<const Output> xs,
                                  absl::Span<const Output> grad_ys, std::vector<Output>* grads,
                                  std::string_view prefix = "gradients");

}  // namespace troupe

#endif  // TROUPE_GRAPH_GRADIENTS_ADD_GRADIENTS_H_

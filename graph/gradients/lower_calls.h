/// Functional control flow and calls made differentiable.
#ifndef TROUPE_GRAPH_GRADIENTS_LOWER_CALLS_H_
#define TROUPE_GRAPH_GRADIENTS_LOWER_CALLS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/gradients/gradient_registry.h"
#include "graph/graph.h"

namespace troupe::gradients {

/// Puts primitive nodes in the stead of every If, While, Case and call (and their kin) on a path
/// from `xs` to `ys`: nodes under "<node>/lowered" that compute the same, which from then on are
/// executed in its place (Graph::Replace), so that the gradient uses what the one execution
/// computed. Errors name the node and are those of LowerFunctionalOps.
absl::Status LowerCallsBetween(Graph* graph, const std::vector<Output>& ys,
                               const std::vector<Output>& xs);

/// The function that the graph's library gives as the gradient of the one that a node calls; empty
/// if there is none.
std::string GradientFunctionOf(const Node* node);
/// The gradient of a call by that function.
void CallGradient(GradientContext& g);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_LOWER_CALLS_H_

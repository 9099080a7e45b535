/// Sums of the contributions that a tensor's gradient is made of.
#ifndef TROUPE_GRAPH_GRADIENTS_AGGREGATE_H_
#define TROUPE_GRAPH_GRADIENTS_AGGREGATE_H_

#include <vector>

#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {

/// So many contributions, with the sum so far, are added up by one AddN.
inline constexpr int kAddNWidth = 8;

/// The sum of `parts`, all valid, gradients of one tensor, in the order in which they were found.
/// Sparse ones are joined end to end and stay sparse as long as all are; beside dense ones they
/// become dense, all together. More than `kAddNWidth` dense ones are added up in turns, the sum so
/// far and the next few, so that most of them can be freed long before the last is computed: no
/// more than `kAddNWidth` need be kept at a time. Invalid if there are none.
Gradient SumGradients(GradientBuilder& g, const std::vector<Gradient>& parts);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_AGGREGATE_H_

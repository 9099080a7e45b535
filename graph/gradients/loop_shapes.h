/// Shapes inside loops, which inference while building a graph cannot see.
#ifndef TROUPE_GRAPH_GRADIENTS_LOOP_SHAPES_H_
#define TROUPE_GRAPH_GRADIENTS_LOOP_SHAPES_H_

#include "graph/gradients/control_flow_analysis.h"
#include "graph/graph.h"

namespace troupe::gradients {

/// Refines the shapes of the nodes of a loop and of the loops in it. A graph read from a definition
/// knows nothing of what a loop's variables are like before the loop is closed. Here they are first
/// supposed to keep the shapes with which they enter; what an iteration makes of them then takes
/// back what does not hold, until nothing changes. What is found is true of every iteration, and
/// makes shapes known while the gradient is built that would have to be saved in each iteration.
void InferLoopShapes(Graph* graph, const ControlFlowAnalysis& flow, int frame);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_LOOP_SHAPES_H_

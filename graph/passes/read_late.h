/// Reads of reference variables that come after updates.
#ifndef TROUPE_GRAPH_PASSES_READ_LATE_H_
#define TROUPE_GRAPH_PASSES_READ_LATE_H_

#include "graph/passes/subgraph.h"

namespace troupe {

/// An `Identity` of a reference (a variable's `read` node) is a snapshot of the variable. A
/// consumer of it that the graph orders after an update of that variable is to see the update,
/// although the Identity itself may run before: such consumers take the variable instead, and so a
/// snapshot when they start. (In TensorFlow the Identity shares the buffer that updates change.)
/// Producers stand before consumers but for back edges.
void ReadLate(Subgraph* subgraph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_READ_LATE_H_

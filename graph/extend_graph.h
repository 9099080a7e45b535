/// Adding to a graph that is there.
#ifndef TROUPE_GRAPH_EXTEND_GRAPH_H_
#define TROUPE_GRAPH_EXTEND_GRAPH_H_

#include "absl/status/status.h"
#include "graph/graph.h"

namespace troupe {

/// Adds nodes to a graph; their inputs may name nodes that it has already. All or nothing.
absl::Status ExtendGraphWith(const GraphDef& def, Graph* graph);

}  // namespace troupe

#endif  // TROUPE_GRAPH_EXTEND_GRAPH_H_

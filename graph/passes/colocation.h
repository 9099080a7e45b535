/// Which nodes a graph wants on one device.
#ifndef TROUPE_GRAPH_PASSES_COLOCATION_H_
#define TROUPE_GRAPH_PASSES_COLOCATION_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace troupe {

/// True if input `i` is a resource's handle, which is of use where the resource is only.
bool TakesHandle(const Node& node, int i);

/// The names of the nodes that `node` is to be with: `_class: loc:@name`, or the device "@name".
std::vector<std::string> ColocationNames(const Node& node);
/// The same for nodes that ask for the same device and share a variable, queue or the like by name;
/// "": a node shares nothing.
std::string SharedNameOf(const Node& node);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_COLOCATION_H_

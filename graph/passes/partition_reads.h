/// Reads of variables for consumers on other devices. For the sources of `graph/passes/` only.
#ifndef TROUPE_GRAPH_PASSES_PARTITION_READS_H_
#define TROUPE_GRAPH_PASSES_PARTITION_READS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "graph/passes/subgraph.h"

namespace troupe {

/// An input of a node: (node, input number).
using SubInput = std::pair<int32_t, int32_t>;

/// For every input that takes the value of a reference held on another device (`homes`: per node;
/// a node that is `copied` may be on any): those of the node's other inputs, by node, that come
/// after something that may change the variable. A node takes such a value when it starts, so that
/// it must not be sent before they are there. Inputs without any are left out.
std::map<SubInput, std::vector<int32_t>> FindReadOrder(const Subgraph& subgraph,
                                                       const std::vector<int32_t>& homes,
                                                       const std::vector<char>& copied);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_PARTITION_READS_H_

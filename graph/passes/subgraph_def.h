/// Subgraphs as GraphDefs.
#ifndef TROUPE_GRAPH_PASSES_SUBGRAPH_DEF_H_
#define TROUPE_GRAPH_PASSES_SUBGRAPH_DEF_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "graph/passes/subgraph.h"

namespace troupe {

class GraphDef;
class NodeDef;

/// Names a subgraph's nodes and writes them into a GraphDef, which imports as a graph of its own.
/// The subgraph outlives it. Thread-compatible.
class SubgraphWriter {
 public:
  /// Nodes of `graph` keep their names: errors and stateful kernels go by them. Feeds, and nodes
  /// that passes have made, get free ones.
  SubgraphWriter(const Graph& graph, const Subgraph& subgraph);

  /// A feed becomes a Placeholder, a constant one Const per output. Unimplemented: a constant of
  /// variants or resources.
  absl::Status Write(size_t node, GraphDef* def) const;
  /// Adds a node with one attribute, of a type.
  static NodeDef* AddNode(const std::string& name, const char* op, const char* attr,
                          ElementType type, GraphDef* def);

  /// `wanted`, or something like it if that is taken; taken from now on.
  std::string FreeName(std::string wanted);
  const std::string& name(int32_t node) const { return names_[static_cast<size_t>(node)]; }
  /// "name:port".
  std::string NameOf(SubOutput output) const;

 private:
  const Subgraph& subgraph_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> names_;  ///< By index in the subgraph.
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_SUBGRAPH_DEF_H_

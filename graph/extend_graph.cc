#include "graph/extend_graph.h"

#include <set>
#include <string>
#include <string_view>

#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

absl::Status ExtendGraphWith(const GraphDef& def, Graph* graph) {
  std::set<std::string, std::less<>> added;
  for (const NodeDef& node : def.node()) added.insert(node.name());
  // What the new nodes do not bring along, they take from the graph.
  ImportOptions options;
  for (const NodeDef& node : def.node()) {
    for (const std::string& input : node.input()) {
      std::string_view name = input;
      const bool control = !name.empty() && name[0] == '^';
      if (control) name.remove_prefix(1);
      const std::string node_name(name.substr(0, name.find(':')));
      if (added.count(node_name) != 0) continue;
      if (control) {
        if (Node* known = graph->FindNode(node_name)) options.input_map[input] = Output(known);
      } else if (absl::StatusOr<Output> known = graph->FindOutput(input); known.ok()) {
        options.input_map[input] = *known;
      }
    }
  }
  return ImportGraphDef(def, options, graph);
}

}  // namespace troupe

/// Import of GraphDefs, and reading them from files.
#ifndef TROUPE_GRAPH_GRAPH_DEF_H_
#define TROUPE_GRAPH_GRAPH_DEF_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "graph/graph.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

struct ImportOptions {
  std::string prefix;  ///< Put before every name, with '/'.
  std::map<std::string, Output>
      input_map;  ///< "node:port" of the definition to a tensor of the graph.
  std::vector<std::string> control_dependencies;
  std::string default_device;
  bool uniquify_names = false;  ///< Else a taken name is an error.
};

/// Adds the nodes of `def` to `graph`, in topological order; loops' back edges are joined at the
/// end. All or nothing. Nodes whose op is not registered come along (`Node::op_known`): a training
/// graph may well hold a saver that nobody runs here; steps that need one are refused. Codes:
/// InvalidArgument malformed names, types, attributes, shapes, cycles, duplicated names, unknown
/// inputs; Unimplemented an op removed by its version. Messages name the node.
absl::Status ImportGraphDef(const GraphDef& def, const ImportOptions& options, Graph* graph);

/// Parses bytes that are a GraphDef in binary or text form (told by the content). InvalidArgument
/// with what is wrong; nesting and sizes are bounded.
absl::Status ParseGraphDef(std::string_view bytes, GraphDef* def);
absl::Status ReadGraphDef(const std::string& file, GraphDef* def);

/// A graph from a file that holds a GraphDef in binary or text form. Codes: NotFound no such file;
/// those of ParseGraphDef and ImportGraphDef. Errors name the file.
absl::StatusOr<std::shared_ptr<Graph>> ReadGraph(const std::string& file,
                                                 const ImportOptions& options = {});
/// Writes a definition: as text if the file's name ends in `txt`, else binary.
absl::Status WriteGraphDef(const GraphDef& def, const std::string& file);
/// Writes the graph as a GraphDef in the same way.
absl::Status WriteGraph(const Graph& graph, const std::string& file);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_GRAPH_DEF_H_

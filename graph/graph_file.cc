// Graphs in files, for those who need no protobuf types.

#include <cerrno>
#include <cstring>
#include <fstream>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/message_file.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

absl::StatusOr<std::shared_ptr<Graph>> ReadGraph(const std::string& file,
                                                 const ImportOptions& options) {
  GraphDef def;
  TROUPE_RETURN_IF_ERROR(ReadGraphDef(file, &def));
  auto graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(
      WithContext(StrCat("'", file, "': "), ImportGraphDef(def, options, graph.get())));
  return graph;
}

absl::Status WriteGraphDef(const GraphDef& def, const std::string& file) {
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes, SerializeMessage(def, file.ends_with("txt")));
  std::ofstream stream(file, std::ios::binary);
  if (!stream) {
    return absl::NotFoundError(StrCat("cannot open '", file, "': ", std::strerror(errno)));
  }
  stream << bytes << std::flush;
  if (!stream) return absl::DataLossError(StrCat("cannot write '", file, "'"));
  return absl::OkStatus();
}

absl::Status WriteGraph(const Graph& graph, const std::string& file) {
  GraphDef def;
  graph.ToGraphDef(&def);
  return WriteGraphDef(def, file);
}

}  // namespace troupe

// Graphs in files, for those who need no protobuf types.

#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
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

absl::Status WriteGraph(const Graph& graph, const std::string& file) {
  GraphDef def;
  graph.ToGraphDef(&def);
  std::string bytes;
  const bool serialized = file.ends_with("txt")
                              ? google::protobuf::TextFormat::PrintToString(def, &bytes)
                              : def.SerializeToString(&bytes);
  if (!serialized) return InvalidArgument("'", file, "': a GraphDef takes 2 GB at most");
  std::ofstream stream(file, std::ios::binary);
  if (!stream) {
    return absl::NotFoundError(StrCat("cannot open '", file, "': ", std::strerror(errno)));
  }
  stream << bytes << std::flush;
  if (!stream) return absl::DataLossError(StrCat("cannot write '", file, "'"));
  return absl::OkStatus();
}

}  // namespace troupe

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/message_file.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

/// For a file of TensorFlow's that holds a graph among other things: what it is, and what to do.
absl::Status HoldsAGraph(std::string_view kind) {
  return InvalidArgument("this is a ", kind, ", not a GraphDef: ",
                         kind == "SavedModel"
                             ? "load it with LoadSavedModel, or give `troupe` its folder"
                             : "import it with ImportMetaGraph");
}

/// The same for text, told by its first field. A parser that skips unknown fields would find an
/// empty graph.
absl::Status CheckFirstField(std::string_view text) {
  const std::string_view field = FirstTextField(text);
  for (std::string_view name : {"saved_model_schema_version", "meta_graphs"}) {
    if (field == name) return HoldsAGraph("SavedModel");
  }
  for (std::string_view name : {"meta_info_def", "graph_def", "saver_def", "collection_def",
                                "signature_def", "asset_file_def", "object_graph_def"}) {
    if (field == name) return HoldsAGraph("MetaGraphDef");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseGraphDef(std::string_view bytes, GraphDef* def) {
  def->Clear();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return InvalidArgument("a GraphDef of ", bytes.size(),
                           " bytes is too large; the format ends at 2 GB");
  }
  if (LooksLikeText(bytes)) {
    TROUPE_RETURN_IF_ERROR(CheckFirstField(bytes));
    return ParseMessage(bytes, UnknownFields::kSkip, def);
  }
  // A SavedModel begins with a number, its version; a GraphDef never does.
  SavedModel saved_model;
  if (bytes[0] == 8 && ParseBinaryMessage(bytes, &saved_model)) return HoldsAGraph("SavedModel");
  const absl::Status status = ParseMessage(bytes, UnknownFields::kSkip, def);
  if (status.ok()) return status;
  MetaGraphDef meta_graph;
  if (ParseBinaryMessage(bytes, &meta_graph) && meta_graph.graph_def().node_size() > 0) {
    return HoldsAGraph("MetaGraphDef");
  }
  return status;
}

absl::Status ReadGraphDef(const std::string& file, GraphDef* def) {
  return CatchExceptions([&]() -> absl::Status {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rb"),
                                                             std::fclose);
    if (in == nullptr) {
      return absl::NotFoundError(StrCat("cannot open '", file, "': ", std::strerror(errno)));
    }
    std::string bytes;
    char block[64 << 10];
    while (const size_t n = std::fread(block, 1, sizeof(block), in.get())) bytes.append(block, n);
    if (std::ferror(in.get())) {
      if (errno == EISDIR)
        return InvalidArgument("'", file,
                               "' is a directory, not a graph, and no SavedModel, which "
                               "has a saved_model.pb or saved_model.pbtxt in it");
      return absl::DataLossError(StrCat("cannot read '", file, "': ", std::strerror(errno)));
    }
    return WithContext(StrCat("'", file, "': "), ParseGraphDef(bytes, def));
  });
}

}  // namespace troupe

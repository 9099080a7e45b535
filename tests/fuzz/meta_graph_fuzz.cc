// A MetaGraphDef, or a SavedModel, from outside: parsed, imported under a scope and without one,
// written, and what was written imported again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "devices/allocator.h"
#include "graph/message_file.h"
#include "graph/meta_graph.h"

namespace {

using namespace troupe;  // NOLINT

void Import(const MetaGraphDef& def, const char* scope) {
  Graph graph;
  ImportMetaGraphOptions options;
  options.import_scope = scope;
  options.clear_devices = *scope == '\0';
  const auto imported = ImportMetaGraph(def, options, &graph);
  if (!imported.ok()) {
    if (graph.num_nodes() != 2 || !graph.CollectionKeys().empty()) std::abort();
    return;
  }
  ExportMetaGraphOptions out;
  out.export_scope = imported->scope;
  out.saver_def = imported->saver_def;
  MetaGraphDef written;
  if (!ExportMetaGraph(graph, out, &written).ok()) return;  // A variable that nothing reads.
  Graph again;
  const absl::Status status = ImportMetaGraph(written, {}, &again).status();
  if (!status.ok() && !absl::IsResourceExhausted(status)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  SavedModel model;
  if (bytes.starts_with('\x08') && ParseBinaryMessage(bytes, &model)) {
    for (const MetaGraphDef& def : model.meta_graphs()) Import(def, "");
    return 0;
  }
  MetaGraphDef def;
  if (!ParseMetaGraph(bytes, &def).ok()) return 0;
  for (const char* scope : {"", "a", "a/b"}) Import(def, scope);
  return 0;
}

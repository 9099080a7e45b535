// A GraphDef from outside, binary or text: parsed, imported, written, and what was written imported
// again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "graph/graph_def.h"
#include "graph/passes/prune.h"
#include "graph/passes/simplify.h"
#include "graph/protos/graph.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  troupe::GraphDef def;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!troupe::ParseGraphDef(bytes, &def).ok()) return 0;
  troupe::Graph graph;
  if (!troupe::ImportGraphDef(def, {}, &graph).ok()) {
    if (graph.num_nodes() != 2) std::abort();
    return 0;
  }
  troupe::GraphDef written;
  graph.ToGraphDef(&written);
  troupe::Graph again;
  const absl::Status status = troupe::ImportGraphDef(written, {}, &again);
  if (!status.ok() && !absl::IsResourceExhausted(status)) std::abort();
  std::vector<troupe::Node*> targets;
  for (troupe::Node* node : graph.nodes()) {
    if (node->id() >= 2) targets.push_back(node);
  }
  auto subgraph = troupe::Prune(graph, {}, {}, targets);
  if (subgraph.ok()) troupe::Simplify({}, troupe::Graph::evaluator(), &*subgraph);
  return 0;
}

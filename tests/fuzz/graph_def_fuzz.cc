// A GraphDef from outside, binary or text: parsed, imported with shape inference, and if it is
// accepted, exported and imported again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "devices/allocator.h"
#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  troupe::GraphDef def;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!troupe::ParseGraphDef(bytes, &def).ok()) return 0;
  troupe::Graph graph;
  if (!troupe::ImportGraphDef(def, {}, &graph).ok()) return 0;
  troupe::GraphDef exported;
  graph.ToGraphDef(&exported);
  troupe::Graph copy;
  if (!troupe::ImportGraphDef(exported, {}, &copy).ok()) std::abort();
  return 0;
}

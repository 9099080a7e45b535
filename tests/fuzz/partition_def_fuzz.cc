// Partitions that a master registers: read, checked, compiled to a plan, and forgotten. The first
// byte says whether the rest is a `cluster::Partition` or a GraphDef (binary or text) of which all
// nodes are targets, placeholders are fed, and the last node is fetched.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "graph/graph_def.h"
#include "graph/passes/partition_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/actors/cluster/task_node.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troupe;  // NOLINT: a short program
  HostAllocator()->set_limit(64 << 20);
  if (size == 0) return 0;
  cluster::Partition partition;
  if (data[0] & 1) {
    if (!partition.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  } else {
    GraphDef graph;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (!ParseGraphDef(bytes, &graph).ok()) return 0;
    for (const NodeDef& node : graph.node()) {
      partition.add_targets(node.name());
      if (node.op() != "Placeholder") continue;
      const int index = partition.feeds_size();
      cluster::Binding* feed = partition.add_feeds();
      feed->set_tensor(node.name() + ":0");
      feed->set_index(index);
    }
    if (data[0] & 2 && graph.node_size() > 0) {
      partition.add_fetches()->set_tensor(graph.node(graph.node_size() - 1).name() + ":0");
    }
    partition.set_graph(graph.SerializeAsString());
  }
  if (!PartitionFromDef(partition).ok()) return 0;
  partition.set_device(TaskNode::Task(0) + "/device:CPU:0");
  TaskNode node;
  cluster::RegisterGraphRequest request;
  request.set_session("s");
  request.set_handle("g");
  *request.add_partitions() = partition;
  bool answered = false;
  node.Enter([&] { node.Register(request, [&](const absl::Status&) { answered = true; }); });
  node.Pass(1);
  if (!answered) std::abort();
  node.Enter([&] { node.DeleteSession("s"); });
  node.Stop();
  return 0;
}

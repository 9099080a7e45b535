#include "graph/passes/partition_def.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "graph/function_library.h"
#include "graph/graph_def.h"
#include "graph/passes/prune.h"
#include "graph/passes/subgraph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

/// Writes a partition's subgraph as a GraphDef.
class PartitionWriter {
 public:
  PartitionWriter(const Graph& graph, const DevicePartition& partition, bool partial)
      : graph_(graph),
        subgraph_(partition.subgraph),
        writer_(graph, subgraph_),
        partition_(partition),
        partial_(partial) {}

  absl::StatusOr<GraphDef> Run() {
    GraphDef def;
    def.mutable_versions()->set_producer(graph_.producer());
    for (size_t i = 0; i < subgraph_.nodes.size(); ++i) {
      if (partial_ && subgraph_.nodes[i].kind == SubNode::Kind::kFeed) {
        WriteRecv(static_cast<int32_t>(i), &def);
      } else {
        TROUPE_RETURN_IF_ERROR(writer_.Write(i, &def));
      }
    }
    for (NodeDef& node : *def.mutable_node()) node.clear_device();
    for (size_t i = 0; i < subgraph_.fetches.size(); ++i) {
      partial_ ? WriteSend(i, &def) : WriteFetch(subgraph_.fetches[i], &def);
    }
    *def.mutable_library() = FunctionLibrary(graph_.library(), *graph_.ops()).Reachable(def.node());
    return def;
  }

  /// What a fetch is called: what is fed is not fetched itself (an identity between the two may
  /// have been removed), but through a node of its own.
  std::string FetchName(size_t i) const {
    const SubOutput& fetch = subgraph_.fetches[i];
    if (partial_) return send_nodes_[i];
    auto it = fetch_nodes_.find(fetch.node);
    return it == fetch_nodes_.end() ? writer_.NameOf(fetch) : StrCat(it->second, ":0");
  }
  const std::string& name(int32_t node) const { return writer_.name(node); }

 private:
  /// An edge between the client and this device. A fed tensor has one to each of its devices.
  void SetEnds(const std::string& what, int32_t index, bool from_client, NodeDef* def) const {
    auto& attrs = *def->mutable_attr();
    const std::string& device = partition_.device;
    attrs["tensor_name"].set_s(StrCat(what, ";", index, ";", device));
    attrs["send_device"].set_s(from_client ? kClientDevice : device);
    attrs["recv_device"].set_s(from_client ? device : kClientDevice);
    attrs["send_device_incarnation"].set_i(0);
    attrs["client_terminated"].set_b(true);
  }
  void WriteRecv(int32_t node, GraphDef* graph) const {
    size_t feed = 0;
    while (subgraph_.feeds[feed] != node) ++feed;
    NodeDef* def = SubgraphWriter::AddNode(name(node), "_Recv", "tensor_type",
                                           subgraph_.nodes[node].output_type(0), graph);
    SetEnds("feed", partition_.feeds[feed], /*from_client=*/true, def);
  }
  void WriteSend(size_t i, GraphDef* graph) {
    const SubOutput& fetch = subgraph_.fetches[i];
    const ElementType type = RemoveRef(subgraph_.nodes[fetch.node].output_type(fetch.port));
    send_nodes_.push_back(writer_.FreeName(StrCat(name(fetch.node), "/fetch_", fetch.port)));
    NodeDef* def = SubgraphWriter::AddNode(send_nodes_.back(), "_Send", "T", type, graph);
    def->add_input(writer_.NameOf(fetch));
    SetEnds("fetch", partition_.fetches[i], /*from_client=*/false, def);
  }
  void WriteFetch(SubOutput fetch, GraphDef* graph) {
    const SubNode& node = subgraph_.nodes[fetch.node];
    if (node.kind != SubNode::Kind::kFeed || fetch_nodes_.count(fetch.node) != 0) return;
    std::string& name_of_node = fetch_nodes_[fetch.node];
    name_of_node = writer_.FreeName(StrCat(name(fetch.node), "/fetched"));
    SubgraphWriter::AddNode(name_of_node, "Identity", "T", node.output_type(0), graph)
        ->add_input(writer_.NameOf(fetch));
  }

  const Graph& graph_;
  const Subgraph& subgraph_;
  SubgraphWriter writer_;
  const DevicePartition& partition_;
  const bool partial_;
  std::vector<std::string> send_nodes_;                   // Per fetch of a partial run.
  std::unordered_map<int32_t, std::string> fetch_nodes_;  // By fed node.
};

}  // namespace

absl::StatusOr<cluster::Partition> PartitionToDef(const Graph& graph,
                                                  const DevicePartition& partition, bool partial) {
  const Subgraph& subgraph = partition.subgraph;
  PartitionWriter writer(graph, partition, partial);
  TROUPE_ASSIGN_OR_RETURN(const GraphDef def, writer.Run());
  cluster::Partition result;
  result.set_device(partition.device);
  result.set_partial(partial);
  if (!def.SerializeToString(result.mutable_graph())) {
    return absl::ResourceExhaustedError(
        StrCat("the graph of ", partition.device, " has more than 2 GiB; feed large constants"));
  }
  for (size_t i = 0; i < subgraph.feeds.size(); ++i) {
    cluster::Binding* feed = result.add_feeds();
    feed->set_tensor(StrCat(writer.name(subgraph.feeds[i]), ":0"));
    feed->set_index(partition.feeds[i]);
  }
  for (size_t i = 0; i < subgraph.fetches.size(); ++i) {
    cluster::Binding* fetch = result.add_fetches();
    fetch->set_tensor(writer.FetchName(i));
    fetch->set_index(partition.fetches[i]);
  }
  // Whatever was left in is to be run, whether or not something depends on it.
  for (size_t i = 0; i < subgraph.nodes.size(); ++i) {
    if (subgraph.nodes[i].kind == SubNode::Kind::kOp) {
      result.add_targets(writer.name(static_cast<int32_t>(i)));
    }
  }
  return result;
}

absl::StatusOr<ReceivedPartition> PartitionFromDef(const cluster::Partition& def) {
  ReceivedPartition result;
  GraphDef graph_def;
  if (!graph_def.ParseFromString(def.graph())) {
    return InvalidArgument("the graph of device ", def.device(), " is no GraphDef");
  }
  result.graph = std::make_shared<Graph>();
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(graph_def, ImportOptions(), result.graph.get()));
  const Graph& graph = *result.graph;
  std::vector<Output> feeds, fetches;
  std::vector<Node*> targets;
  // The edge of a node, which is the Recv or Send of a feed or fetch.
  auto edge_of = [&](const std::string& name, std::string_view op) -> absl::StatusOr<std::string> {
    const Node* node = graph.FindNode(name.substr(0, name.find(':')));
    std::string edge;
    if (node == nullptr || node->op() != op || !node->attrs().Get("tensor_name", &edge).ok()) {
      return InvalidArgument("a partial run's feed or fetch ", name, " is no ", op);
    }
    return edge;
  };
  for (const cluster::Binding& bound : def.feeds()) {
    TROUPE_ASSIGN_OR_RETURN(const Output feed, graph.FindOutput(bound.tensor()));
    result.feed_types.emplace_back(RemoveRef(feed.type()), feed.shape());
    if (def.partial()) {
      TROUPE_ASSIGN_OR_RETURN(result.feed_edges.emplace_back(), edge_of(bound.tensor(), "_Recv"));
    } else {
      feeds.push_back(feed);
    }
  }
  for (const cluster::Binding& bound : def.fetches()) {
    if (def.partial()) {
      TROUPE_ASSIGN_OR_RETURN(result.fetch_edges.emplace_back(), edge_of(bound.tensor(), "_Send"));
      targets.push_back(graph.FindNode(bound.tensor()));
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const Output fetch, graph.FindOutput(bound.tensor()));
    fetches.push_back(fetch);
  }
  for (const std::string& name : def.targets()) {
    Node* node = graph.FindNode(name);
    if (node == nullptr) return absl::NotFoundError(StrCat("there is no target ", name));
    targets.push_back(node);
  }
  TROUPE_ASSIGN_OR_RETURN(result.subgraph,
                          Prune(graph, feeds, fetches, absl::MakeConstSpan(targets)));
  // What was folded on the master is known from the start here too.
  for (SubNode& node : result.subgraph.nodes) {
    if (node.kind != SubNode::Kind::kOp || node.original->op() != "Const" ||
        !node.control_inputs.empty()) {
      continue;
    }
    Tensor value;
    TROUPE_RETURN_IF_ERROR(node.original->attrs().Get("value", &value));
    if (value.type() != node.original->output_type(0)) continue;  // Its kernel will refuse it.
    node.kind = SubNode::Kind::kConstant;
    node.values.push_back(std::move(value));
  }
  // A constant orders nobody and is nobody's target.
  Subgraph& subgraph = result.subgraph;
  auto constant = [&](int32_t i) { return subgraph.nodes[i].kind == SubNode::Kind::kConstant; };
  for (SubNode& node : subgraph.nodes) std::erase_if(node.control_inputs, constant);
  std::erase_if(subgraph.targets, constant);
  return result;
}

}  // namespace troupe

#include "actors/cluster/partition_def.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/session/step_signature.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/function_library.h"
#include "graph/graph_def.h"
#include "graph/passes/prune.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

/// Writes a subgraph as a GraphDef.
class PartitionWriter {
 public:
  PartitionWriter(const DevicePartition& partition, bool partial)
      : subgraph_(partition.subgraph), partition_(partition), partial_(partial) {}

  absl::StatusOr<GraphDef> Run(const Graph& graph) {
    GraphDef def;
    def.mutable_versions()->set_producer(graph.producer());
    NameNodes(graph);
    for (size_t i = 0; i < subgraph_.nodes.size(); ++i) TROUPE_RETURN_IF_ERROR(Write(i, &def));
    for (size_t i = 0; i < subgraph_.fetches.size(); ++i) {
      partial_ ? WriteSend(i, &def) : WriteFetch(subgraph_.fetches[i], &def);
    }
    *def.mutable_library() = FunctionLibrary(graph.library(), *graph.ops()).Reachable(def.node());
    return def;
  }

  std::string NameOf(SubOutput output) const {
    const SubNode& node = subgraph_.nodes[output.node];
    // A folded node is one Const per output.
    if (node.kind == SubNode::Kind::kConstant && output.port > 0) {
      return StrCat(names_[output.node], "/output_", output.port, ":0");
    }
    return StrCat(names_[output.node], ":", output.port);
  }
  /// What a fetch is called: what is fed is not fetched itself (an identity between the two may
  /// have been removed), but through a node of its own.
  std::string FetchName(size_t i) const {
    const SubOutput& fetch = subgraph_.fetches[i];
    if (partial_) return send_nodes_[i];
    auto it = fetch_nodes_.find(fetch.node);
    return it == fetch_nodes_.end() ? NameOf(fetch) : StrCat(it->second, ":0");
  }
  const std::string& name(int32_t node) const { return names_[node]; }

 private:
  void NameNodes(const Graph& graph) {
    // Nodes of the session's graph keep their names: errors and stateful kernels go by them.
    names_.resize(subgraph_.nodes.size());
    for (size_t i = 0; i < subgraph_.nodes.size(); ++i) {
      const SubNode& node = subgraph_.nodes[i];
      if (node.kind == SubNode::Kind::kOp && graph.FindNode(node.original->name()) != nullptr &&
          taken_.insert(node.original->name()).second) {
        names_[i] = node.original->name();
      }
    }
    for (size_t i = 0; i < subgraph_.nodes.size(); ++i) {
      if (!names_[i].empty()) continue;
      const SubNode& node = subgraph_.nodes[i];
      std::string name = node.original->name();
      if (node.kind == SubNode::Kind::kFeed) name = StrCat(name, "/fed_", node.fed_port);
      while (!taken_.insert(name).second) name += "_";
      names_[i] = name;
    }
  }

  absl::Status Write(size_t i, GraphDef* graph) const {
    const SubNode& node = subgraph_.nodes[i];
    if (node.kind == SubNode::Kind::kFeed) {
      if (partial_) {
        WriteRecv(i, graph);
        return absl::OkStatus();
      }
      NodeDef* def = graph->add_node();
      def->set_name(names_[i]);
      def->set_op("Placeholder");
      const ElementType type = RemoveRef(node.original->output_type(node.fed_port));
      (*def->mutable_attr())["dtype"].set_type(static_cast<DataType>(type));
      node.original->output_shape(node.fed_port)
          .ToProto((*def->mutable_attr())["shape"].mutable_shape());
      return absl::OkStatus();
    }
    if (node.kind == SubNode::Kind::kConstant) {
      for (size_t port = 0; port < node.values.size(); ++port) {
        const Tensor& value = node.values[port];
        if (value.type() == ElementType::kVariant || value.type() == ElementType::kResource) {
          return absl::UnimplementedError(StrCat("node ", node.original->name(),
                                                 " is a constant that has no wire form; create "
                                                 "the session without optimization"));
        }
        NodeDef* def = graph->add_node();
        def->set_name(port == 0 ? names_[i] : StrCat(names_[i], "/output_", port));
        def->set_op("Const");
        (*def->mutable_attr())["dtype"].set_type(static_cast<DataType>(value.type()));
        TensorToProto(value, (*def->mutable_attr())["value"].mutable_tensor());
      }
      return absl::OkStatus();
    }
    NodeDef* def = graph->add_node();
    *def = node.original->def();
    def->set_name(names_[i]);
    def->clear_input();
    def->clear_device();
    def->mutable_attr()->erase("_class");
    for (const SubOutput& input : node.inputs) def->add_input(NameOf(input));
    for (int32_t control : node.control_inputs) def->add_input("^" + names_[control]);
    return absl::OkStatus();
  }

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
  void WriteRecv(size_t i, GraphDef* graph) const {
    const SubNode& node = subgraph_.nodes[i];
    size_t feed = 0;
    while (subgraph_.feeds[feed] != static_cast<int32_t>(i)) ++feed;
    NodeDef* def = graph->add_node();
    def->set_name(names_[i]);
    def->set_op("_Recv");
    const ElementType type = RemoveRef(node.original->output_type(node.fed_port));
    (*def->mutable_attr())["tensor_type"].set_type(static_cast<DataType>(type));
    SetEnds("feed", partition_.feeds[feed], /*from_client=*/true, def);
  }
  void WriteSend(size_t i, GraphDef* graph) {
    const SubOutput& fetch = subgraph_.fetches[i];
    std::string name = StrCat(names_[fetch.node], "/fetch_", fetch.port);
    while (!taken_.insert(name).second) name += "_";
    NodeDef* def = graph->add_node();
    def->set_name(name);
    def->set_op("_Send");
    def->add_input(NameOf(fetch));
    const ElementType type = RemoveRef(subgraph_.nodes[fetch.node].output_type(fetch.port));
    (*def->mutable_attr())["T"].set_type(static_cast<DataType>(type));
    SetEnds("fetch", partition_.fetches[i], /*from_client=*/false, def);
    send_nodes_.push_back(std::move(name));
  }
  void WriteFetch(SubOutput fetch, GraphDef* graph) {
    const SubNode& node = subgraph_.nodes[fetch.node];
    if (node.kind != SubNode::Kind::kFeed || fetch_nodes_.count(fetch.node) != 0) return;
    std::string name = StrCat(names_[fetch.node], "/fetched");
    while (!taken_.insert(name).second) name += "_";
    NodeDef* def = graph->add_node();
    def->set_name(name);
    def->set_op("Identity");
    def->add_input(NameOf(fetch));
    const ElementType type = RemoveRef(node.original->output_type(node.fed_port));
    (*def->mutable_attr())["T"].set_type(static_cast<DataType>(type));
    fetch_nodes_[fetch.node] = std::move(name);
  }

  const Subgraph& subgraph_;
  const DevicePartition& partition_;
  const bool partial_;
  std::vector<std::string> send_nodes_;  // Per fetch of a partial run.
  std::unordered_set<std::string> taken_;
  std::unordered_map<int32_t, std::string> fetch_nodes_;  // By fed node.
  std::vector<std::string> names_;                        // By index in the subgraph.
};

}  // namespace

absl::StatusOr<cluster::Partition> PartitionToDef(const Graph& graph,
                                                  const DevicePartition& partition, bool partial) {
  const Subgraph& subgraph = partition.subgraph;
  PartitionWriter writer(partition, partial);
  TROUPE_ASSIGN_OR_RETURN(const GraphDef def, writer.Run(graph));
  cluster::Partition result;
  result.set_device(partition.device);
  result.set_partial(partial);
  if (!def.SerializeToString(result.mutable_graph())) {
    return absl::ResourceExhaustedError(
        StrCat("the graph of ", partition.device, " has more than 2 GiB; feed large constants"));
  }
  for (size_t i = 0; i < subgraph.feeds.size(); ++i) {
    result.add_feeds(StrCat(writer.name(subgraph.feeds[i]), ":0"));
    result.add_feed_index(partition.feeds[i]);
  }
  for (size_t i = 0; i < subgraph.fetches.size(); ++i) {
    result.add_fetches(writer.FetchName(i));
    result.add_fetch_index(partition.fetches[i]);
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
  if (def.feeds_size() != def.feed_index_size() || def.fetches_size() != def.fetch_index_size()) {
    return InvalidArgument("a partition whose feeds or fetches are not numbered");
  }
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
  for (const std::string& name : def.feeds()) {
    TROUPE_ASSIGN_OR_RETURN(const Output feed, graph.FindOutput(name));
    result.feed_types.emplace_back(RemoveRef(feed.type()), feed.shape());
    if (def.partial()) {
      TROUPE_ASSIGN_OR_RETURN(result.feed_edges.emplace_back(), edge_of(name, "_Recv"));
    } else {
      feeds.push_back(feed);
    }
  }
  for (const std::string& name : def.fetches()) {
    if (def.partial()) {
      TROUPE_ASSIGN_OR_RETURN(result.fetch_edges.emplace_back(), edge_of(name, "_Send"));
      targets.push_back(graph.FindNode(name));
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const Output fetch, graph.FindOutput(name));
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

#include "actors/session/lower.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "devices/status_macros.h"
#include "graph/function_library.h"
#include "graph/graph_def.h"
#include "graph/passes/lower_functions.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

bool AsksForIt(const NodeDef& node) {
  auto mark = node.attr().find("_lower_using_switch_merge");
  return mark != node.attr().end() && mark->second.b();
}

/// One subgraph as a GraphDef, whose feeds are placeholders.
class Writer {
 public:
  Writer(const Graph& graph, const Subgraph& subgraph) : graph_(graph), subgraph_(subgraph) {}

  GraphDef Run(const FunctionLibrary& library) {
    GraphDef def;
    def.mutable_versions()->set_producer(graph_.producer());
    for (const SubNode& node : subgraph_.nodes) {
      if (node.kind == SubNode::Kind::kOp) taken_.insert(node.original->name());
    }
    for (const SubNode& node : subgraph_.nodes) {
      names_.push_back(node.kind == SubNode::Kind::kOp ? node.original->name() : FreeName(node));
    }
    for (size_t i = 0; i < subgraph_.nodes.size(); ++i) Write(i, def.add_node());
    for (const NodeDef& node : def.node()) {
      for (const std::string& called : library.CalledBy(node)) {
        library.CopyReachable(called, def.mutable_library());
      }
    }
    return def;
  }

  std::string NameOf(SubOutput output) const {
    return StrCat(names_[output.node], ":", output.port);
  }

 private:
  std::string FreeName(const SubNode& node) {
    std::string name = StrCat(node.original->name(), "/fed");
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  void Write(size_t i, NodeDef* def) const {
    const SubNode& node = subgraph_.nodes[i];
    if (node.kind != SubNode::Kind::kOp) {
      const ElementType type = RemoveRef(node.original->output_type(node.fed_port));
      def->set_name(names_[i]);
      def->set_op("Placeholder");
      (*def->mutable_attr())["dtype"].set_type(static_cast<DataType>(type));
      node.original->output_shape(node.fed_port)
          .ToProto((*def->mutable_attr())["shape"].mutable_shape());
      return;
    }
    *def = node.original->def();
    def->clear_input();
    def->mutable_attr()->erase("_class");
    for (const SubOutput& input : node.inputs) def->add_input(NameOf(input));
    for (int32_t control : node.control_inputs) def->add_input("^" + names_[control]);
  }

  const Graph& graph_;
  const Subgraph& subgraph_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> names_;  // By index in the subgraph.
};

}  // namespace

absl::StatusOr<std::shared_ptr<Graph>> LowerForStep(const Graph& graph, const Subgraph& subgraph,
                                                    const StepSignature& signature,
                                                    bool several_devices, StepSignature* lowered) {
  const FunctionLibrary library(graph.library(), *graph.ops());
  std::unordered_map<std::string, bool> recursive, spread;
  // A body with devices of its own must be in the graph when that is placed and cut.
  auto is_spread = [&](const NodeDef& node) {
    if (!several_devices) return false;
    if (node.op() == "RemoteCall") return true;
    for (const std::string& called : library.CalledBy(node)) {
      auto [known, is_new] = spread.try_emplace(called, false);
      if (is_new) known->second = library.AsksForDevices(called);
      if (known->second) return true;
    }
    return false;
  };
  bool any = false;
  for (const SubNode& node : subgraph.nodes) {
    any |= node.kind == SubNode::Kind::kOp && IsFunctionalOp(node.original->op()) &&
           (AsksForIt(node.original->def()) || is_spread(node.original->def()));
  }
  if (!any) return nullptr;
  auto wanted = [&](const NodeDef& node) {
    if (!AsksForIt(node) && !is_spread(node)) return false;
    for (const std::string& called : library.CalledBy(node)) {
      auto [known, is_new] = recursive.try_emplace(called, false);
      if (is_new) known->second = library.CallsItself(called);
      if (known->second) return false;
    }
    return true;
  };
  Writer writer(graph, subgraph);
  TROUPE_ASSIGN_OR_RETURN(const GraphDef def,
                          LowerFunctionalOps(writer.Run(library), *graph.ops(), wanted));
  auto result = std::make_shared<Graph>(graph.ops());
  TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), result.get()));
  for (size_t i = 0; i < signature.feeds.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Output feed, result->FindOutput(writer.NameOf({subgraph.feeds[i], 0})));
    lowered->feeds.push_back(feed);
  }
  for (const SubOutput& fetch : subgraph.fetches) {
    TROUPE_ASSIGN_OR_RETURN(Output tensor, result->FindOutput(writer.NameOf(fetch)));
    lowered->fetches.push_back(tensor);
  }
  for (int32_t target : subgraph.targets) {
    lowered->targets.push_back(result->FindNode(subgraph.nodes[target].original->name()));
  }
  return result;
}

}  // namespace troupe

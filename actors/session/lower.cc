#include "actors/session/lower.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/passes/lower_functions.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

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
    *def.mutable_library() = library.Reachable(def.node());
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

bool IsLowered(const FunctionLibrary& library, const NodeDef& node, bool several_devices) {
  if (!IsFunctionalOp(node.op())) return false;
  auto mark = node.attr().find("_lower_using_switch_merge");
  if (mark != node.attr().end() && mark->second.b()) return true;
  // A body with devices of its own must be in the graph when that is placed and cut.
  if (!several_devices) return false;
  const std::vector<std::string> called = library.CalledBy(node);
  return node.op() == "RemoteCall" ||
         std::any_of(called.begin(), called.end(),
                     [&](const std::string& name) { return library.AsksForDevices(name); });
}

absl::StatusOr<std::shared_ptr<Graph>> LowerForStep(const Graph& graph, const Subgraph& subgraph,
                                                    const StepSignature& signature,
                                                    bool several_devices, StepSignature* lowered) {
  const FunctionLibrary library(graph.library(), *graph.ops());
  auto is_lowered = [&](const NodeDef& node) { return IsLowered(library, node, several_devices); };
  if (std::none_of(subgraph.nodes.begin(), subgraph.nodes.end(), [&](const SubNode& node) {
        return node.kind == SubNode::Kind::kOp && is_lowered(node.original->def());
      })) {
    return nullptr;
  }
  auto wanted = [&](const NodeDef& node) {
    if (!is_lowered(node)) return false;
    const std::vector<std::string> called = library.CalledBy(node);
    return std::none_of(called.begin(), called.end(),
                        [&](const std::string& name) { return library.CallsItself(name); });
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

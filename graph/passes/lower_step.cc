#include "graph/passes/lower_step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/passes/lower_functions.h"
#include "graph/passes/subgraph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

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
  const SubgraphWriter writer(graph, subgraph);
  GraphDef def;
  def.mutable_versions()->set_producer(graph.producer());
  for (size_t i = 0; i < subgraph.nodes.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(writer.Write(i, &def));
  }
  *def.mutable_library() = library.Reachable(def.node());
  TROUPE_ASSIGN_OR_RETURN(def, LowerFunctionalOps(def, *graph.ops(), wanted));
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

#include "api/freeze.h"

#include <algorithm>
#include <map>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph.h"
#include "graph/passes/variables_to_constants.h"

namespace troupe {
namespace {

/// A tensor of the graph that is the variable's value and nothing else happens for; made if there
/// is none.
absl::StatusOr<std::string> ReaderOf(Graph* graph, const NodeDef& variable) {
  Node* const node = graph->FindNode(variable.name());
  if (node == nullptr) {
    return absl::FailedPreconditionError(
        StrCat("variable '", variable.name(), "' is made inside a function: it cannot be read"));
  }
  if (variable.op() != "VarHandleOp") return StrCat(variable.name(), ":0");
  for (const Edge* edge : node->out_edges()) {
    if (edge->control() || edge->dst->op() != "ReadVariableOp") continue;
    if (edge->dst->control_inputs().empty()) return StrCat(edge->dst->name(), ":0");
  }
  NodeSpec spec("ReadVariableOp", graph->UniqueName(StrCat(variable.name(), "/frozen")));
  spec.Input(Output(node)).Attr("dtype", variable.attr().at("dtype")).Device(variable.device());
  TROUPE_ASSIGN_OR_RETURN(const Node* const read, graph->AddNode(spec));
  return StrCat(read->name(), ":0");
}

absl::StatusOr<GraphDef> Freeze(Session& session, const std::vector<std::string>& outputs,
                                const FreezeOptions& options) {
  Graph* const graph = session.graph().get();
  GraphDef whole;
  graph->ToGraphDef(&whole);
  TROUPE_ASSIGN_OR_RETURN(GraphDef part, ExtractForFreezing(whole, *graph->ops(), outputs));
  whole.Clear();
  std::vector<std::string> names, reads;
  for (const NodeDef* variable : VariablesOf(part)) {
    if (std::count(options.keep.begin(), options.keep.end(), variable->name()) > 0) continue;
    names.push_back(variable->name());
    TROUPE_ASSIGN_OR_RETURN(reads.emplace_back(), ReaderOf(graph, *variable));
  }
  std::map<std::string, Tensor> values;
  if (!reads.empty()) {
    std::vector<Tensor> read;
    TROUPE_RETURN_IF_ERROR(session.Run({}, reads, {}, &read));
    for (size_t i = 0; i < names.size(); ++i) values[names[i]] = std::move(read[i]);
  }
  TROUPE_RETURN_IF_ERROR(VariablesToConstants(*graph->ops(), values, &part));
  if (options.clear_devices) {
    for (NodeDef& node : *part.mutable_node()) node.clear_device();
    for (FunctionDef& function : *part.mutable_library()->mutable_function()) {
      for (NodeDef& node : *function.mutable_node_def()) node.clear_device();
    }
  }
  return part;
}

}  // namespace

absl::StatusOr<GraphDef> FreezeGraph(Session& session, const std::vector<std::string>& outputs,
                                     const FreezeOptions& options) {
  return CatchExceptions([&]() -> absl::StatusOr<GraphDef> {
    absl::StatusOr<GraphDef> frozen = Freeze(session, outputs, options);
    if (!frozen.ok()) return WithContext("cannot freeze: ", frozen.status());
    return frozen;
  });
}

}  // namespace troupe

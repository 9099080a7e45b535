#include "graph/collection_records.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"

#include "graph/graph_impl.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

/// Access to what the functions of the header keep.
class Records : GraphImporter {
 public:
  explicit Records(const Graph& graph) : impl_(Inside(graph)), lock_(impl_->mutex) {}
  Impl* operator->() { return impl_; }

 private:
  Impl* const impl_;
  const std::lock_guard<std::mutex> lock_;
};

bool IsOneOf(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of the nodes that take the variable first and are of one of the ops: the one that is called
/// `node` + one of the endings, else the first.
const Node* FindUser(const Node& variable, std::initializer_list<std::string_view> ops,
                     std::initializer_list<std::string_view> endings) {
  const Node* first = nullptr;
  for (const Edge* edge : variable.out_edges()) {
    if (edge->control() || edge->dst_input != 0 || !IsOneOf(edge->dst->op(), ops)) continue;
    if (first == nullptr) first = edge->dst;
    std::string_view stem = variable.name();
    if (stem.ends_with("/handle")) stem.remove_suffix(std::string_view("handle").size());
    for (const std::string_view ending : endings) {
      if (edge->dst->name() == StrCat(stem, ending)) return edge->dst;
    }
  }
  return first;
}

VariableDef Derive(const Node& variable) {
  VariableDef def;
  def.set_variable_name(StrCat(variable.name(), ":0"));
  def.set_is_resource(variable.op() == "VarHandleOp");
  if (const Node* assign =
          FindUser(variable, {"AssignVariableOp", "Assign"}, {"/Assign", "assign"})) {
    def.set_initializer_name(assign->name());
    if (assign->num_inputs() > 1) def.set_initial_value_name(assign->input(1).name());
  }
  const Node* const read =
      def.is_resource() ? FindUser(variable, {"ReadVariableOp"}, {"/Read/ReadVariableOp", "read"})
                        : FindUser(variable, {"Identity"}, {"/read"});
  if (read != nullptr) def.set_snapshot_name(StrCat(read->name(), ":0"));
  return def;
}

}  // namespace

std::optional<CollectionKind> FindCollectionKind(const Graph& graph, std::string_view key) {
  Records records(graph);
  const auto found = records->collection_kinds.find(key);
  if (found == records->collection_kinds.end()) return std::nullopt;
  return found->second;
}

void SetCollectionKind(Graph* graph, std::string_view key, CollectionKind kind) {
  Records(*graph)->collection_kinds[std::string(key)] = kind;
}

absl::StatusOr<VariableDef> DescribeVariable(const Graph& graph, std::string_view node) {
  {
    Records records(graph);
    const auto found = records->variable_defs.find(node);
    if (found != records->variable_defs.end()) return *found->second;
  }
  const Node* const variable = graph.FindNode(node);
  if (variable == nullptr) {
    return absl::NotFoundError(StrCat("the graph has no node '", node, "', a variable's"));
  }
  if (!IsOneOf(variable->op(), {"VarHandleOp", "VariableV2", "Variable"})) {
    return InvalidArgument("node '", node, "' (op ", variable->op(), ") is no variable");
  }
  return Derive(*variable);
}

void SetVariableDef(Graph* graph, VariableDef def) {
  const std::string& name = def.variable_name();
  std::string node = name.substr(0, name.find(':'));
  auto kept = std::make_shared<const VariableDef>(std::move(def));
  Records(*graph)->variable_defs[std::move(node)] = std::move(kept);
}

}  // namespace troupe

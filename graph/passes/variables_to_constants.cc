#include "graph/passes/variables_to_constants.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/function_library.h"
#include "graph/graph_impl.h"
#include "graph/passes/lower_functions.h"

namespace troupe {
namespace {

bool IsVariable(const std::string& op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}

/// Ops that hand on what they take, and whose type is the attribute T.
bool HandsOn(const std::string& op) {
  for (const std::string_view known : {"Identity", "IdentityN", "Switch", "Merge", "Enter", "Exit",
                                       "NextIteration", "StopGradient"}) {
    if (op == known) return true;
  }
  return false;
}

std::string_view NodeOf(std::string_view input) {
  if (input.starts_with('^')) input.remove_prefix(1);
  return input.substr(0, input.find(':'));
}

/// The nodes that `outputs` need, in their order.
absl::StatusOr<GraphDef> Closure(const GraphDef& def, const OpRegistry& ops,
                                 const std::vector<std::string>& outputs) {
  std::unordered_map<std::string_view, int> by_name;
  for (int i = 0; i < def.node_size(); ++i) by_name[def.node(i).name()] = i;
  std::vector<bool> needed(def.node_size());
  std::vector<int> pending;
  const auto need = [&](std::string_view name) {
    const auto found = by_name.find(NodeOf(name));
    if (found == by_name.end()) return false;
    if (!needed[found->second]) pending.push_back(found->second);
    needed[found->second] = true;
    return true;
  };
  for (const std::string& output : outputs) {
    if (need(output)) continue;
    return absl::NotFoundError(
        StrCat("output '", output, "': the graph has no node '", NodeOf(output), "'"));
  }
  while (!pending.empty()) {
    const NodeDef& node = def.node(pending.back());
    pending.pop_back();
    for (const std::string& input : node.input()) {
      if (need(input)) continue;
      return InvalidArgument("node '", node.name(), "': unknown input '", input, "'");
    }
  }
  GraphDef part;
  *part.mutable_versions() = def.versions();
  for (int i = 0; i < def.node_size(); ++i) {
    if (needed[i]) *part.add_node() = def.node(i);
  }
  *part.mutable_library() = FunctionLibrary(def.library(), ops).Reachable(part.node());
  return part;
}

/// A call, or functional control flow, that is given a resource.
bool TakesResources(const NodeDef& node) {
  if (!IsFunctionalOp(node.op())) return false;
  for (const char* name : {"Tin", "T"}) {
    const auto types = node.attr().find(name);
    if (types == node.attr().end()) continue;
    const auto& list = types->second.list().type();
    if (std::find(list.begin(), list.end(), DT_RESOURCE) != list.end()) return true;
  }
  return false;
}

/// One conversion. The graph is changed in place.
class Converter {
 public:
  Converter(const OpRegistry& ops, const std::map<std::string, Tensor>& values, GraphDef* def)
      : ops_(ops), values_(values), def_(def) {}

  absl::Status Run() {
    for (NodeDef& node : *def_->mutable_node()) {
      names_.insert(node.name());
      for (int i = 0; i < node.input_size(); ++i) {
        if (!node.input(i).starts_with('^')) users_[NodeOf(node.input(i))].push_back({&node, i});
      }
    }
    for (NodeDef& node : *def_->mutable_node()) {
      const auto value = values_.find(node.name());
      if (value == values_.end()) continue;
      MakeConstant(value->second, &node);
      Reached(&node, 0, value->second.type());
    }
    while (!pending_.empty()) {
      const Use use = pending_.back();
      pending_.pop_back();
      TROUPE_RETURN_IF_ERROR(Convert(use));
    }
    for (NodeDef& node : added_) *def_->add_node() = std::move(node);
    if (def_->ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
      return InvalidArgument("the frozen graph has ", def_->ByteSizeLong(),
                             " bytes; a GraphDef takes 2 GB at most");
    }
    return absl::OkStatus();
  }

 private:
  struct User {
    NodeDef* node;
    int input;
  };
  /// A node that takes a variable's value where it took the variable.
  struct Use {
    NodeDef* node;
    int input;
    ElementType type;
  };

  static void MakeConstant(const Tensor& value, NodeDef* node) {
    google::protobuf::RepeatedPtrField<std::string> controls;
    for (std::string& input : *node->mutable_input()) {
      if (input.starts_with('^')) *controls.Add() = std::move(input);
    }
    node->mutable_input()->Swap(&controls);
    node->set_op("Const");
    const auto groups = node->attr().find("_class");
    AttrValue kept;
    const bool keep = groups != node->attr().end();
    if (keep) kept = groups->second;
    node->clear_attr();
    SetType(node, "dtype", value.type());
    TensorToProto(value, (*node->mutable_attr())["value"].mutable_tensor());
    if (keep) (*node->mutable_attr())["_class"] = std::move(kept);
  }

  static void SetType(NodeDef* node, const char* attr, ElementType type) {
    AttrValue& value = (*node->mutable_attr())[attr];
    value.Clear();
    value.set_type(static_cast<DataType>(type));
  }
  static void Rename(NodeDef* node, const char* from, const char* to) {
    const auto found = node->attr().find(from);
    if (found == node->attr().end()) return;
    AttrValue value = found->second;
    node->mutable_attr()->erase(from);
    (*node->mutable_attr())[to] = std::move(value);
  }

  /// Output `port` of the node, or any if negative, is a variable's value now.
  void Reached(NodeDef* node, int port, ElementType type) {
    if (!reached_.insert({node, port}).second) return;
    const auto found = users_.find(node->name());
    if (found == users_.end()) return;
    for (const User& user : found->second) {
      std::string_view name;
      int from = 0;
      if (!ParseTensorName(user.node->input(user.input), &name, &from)) continue;
      if (port < 0 || from == port) pending_.push_back({user.node, user.input, type});
    }
  }

  absl::Status Convert(const Use& use) {
    NodeDef* const node = use.node;
    node->mutable_attr()->erase("_output_shapes");  // those of the variable
    // The forms that hand on references.
    if (node->op().starts_with("Ref") && HandsOn(node->op().substr(3))) {
      node->set_op(node->op().substr(3));
    }
    const std::string& op = node->op();
    if (op == "IdentityN") {
      auto* const types = (*node->mutable_attr())["T"].mutable_list()->mutable_type();
      if (use.input < types->size()) types->Set(use.input, static_cast<DataType>(use.type));
      Reached(node, use.input, use.type);
      return absl::OkStatus();
    }
    if (HandsOn(op)) {
      SetType(node, "T", use.type);
      // The other output of a Merge is an index.
      Reached(node, op == "Merge" ? 0 : -1, use.type);
      return absl::OkStatus();
    }
    if (use.input == 0 && ConvertReader(node, use.type)) return absl::OkStatus();
    if (!TakesReference(*node, use.input)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        StrCat("node '", node->name(), "' (op ", op,
               ") writes a variable, or takes it as no constant can be taken: what depends on it "
               "cannot be frozen"));
  }

  /// Makes a node that reads a variable one that reads a constant. False: it is none.
  bool ConvertReader(NodeDef* node, ElementType type) {
    const std::string op = node->op();
    if (op == "ReadVariableOp") {
      node->set_op("Identity");
      node->mutable_attr()->erase("dtype");
      SetType(node, "T", type);
    } else if (op == "VariableShape") {
      node->set_op("Shape");
      SetType(node, "T", type);
    } else if (op == "ResourceGather") {
      node->set_op("GatherV2");
      node->mutable_attr()->erase("validate_indices");
      Rename(node, "dtype", "Tparams");
      SetType(node, "Taxis", ElementType::kInt32);
      const auto batch_dims = node->attr().find("batch_dims");
      const int64_t axis = batch_dims == node->attr().end() ? 0 : batch_dims->second.i();
      NodeDef& constant = added_.emplace_back();
      constant.set_name(NewName(node->name() + "/axis"));
      constant.set_device(node->device());
      MakeConstant(Tensor::Scalar(static_cast<int32_t>(axis)), &constant);
      InsertInput(node, 2, constant.name());
    } else if (op == "ResourceGatherNd") {
      node->set_op("GatherNd");
      Rename(node, "dtype", "Tparams");
    } else if (op == "VarIsInitializedOp" || op == "IsVariableInitialized") {
      MakeConstant(Tensor::Scalar(true), node);
    } else {
      return false;
    }
    return true;
  }

  static void InsertInput(NodeDef* node, int at, const std::string& input) {
    node->add_input(input);
    for (int i = node->input_size() - 1; i > at; --i) node->mutable_input()->SwapElements(i, i - 1);
  }

  std::string NewName(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !names_.insert(name).second; ++i) name = StrCat(wanted, "_", i);
    return name;
  }

  /// Whether the input must be a variable: a resource, or a reference. Ops that nobody knows may
  /// want anything.
  bool TakesReference(const NodeDef& node, int input) const {
    const absl::StatusOr<const OpRegistration*> op = ops_.LookUp(node.op());
    if (!op.ok()) return true;
    int first = 0;
    for (const OpDef::ArgDef& arg : (*op)->def->input_arg()) {
      const AttrMap attrs = WithDefaults(node.attr(), *(*op)->def);
      const absl::StatusOr<std::vector<DataType>> types = ArgumentTypes(arg, attrs);
      if (!types.ok()) return true;
      const int index = input - first;
      first += static_cast<int>(types->size());
      if (index >= static_cast<int>(types->size())) continue;
      return arg.is_ref() || (*types)[index] == DT_RESOURCE;
    }
    return true;
  }

  const OpRegistry& ops_;
  const std::map<std::string, Tensor>& values_;
  GraphDef* const def_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string_view, std::vector<User>> users_;  // keys live in the nodes' inputs
  std::set<std::pair<const NodeDef*, int>> reached_;
  std::vector<Use> pending_;
  std::vector<NodeDef> added_;
};

}  // namespace

absl::StatusOr<GraphDef> ExtractForFreezing(const GraphDef& def, const OpRegistry& ops,
                                            const std::vector<std::string>& outputs) {
  TROUPE_ASSIGN_OR_RETURN(const GraphDef part, Closure(def, ops, outputs));
  if (std::none_of(part.node().begin(), part.node().end(), TakesResources)) return part;
  TROUPE_ASSIGN_OR_RETURN(const GraphDef flat, LowerFunctionalOps(part, ops, TakesResources));
  return Closure(flat, ops, outputs);
}

std::vector<const NodeDef*> VariablesOf(const GraphDef& def) {
  std::vector<const NodeDef*> variables;
  for (const NodeDef& node : def.node()) {
    if (IsVariable(node.op())) variables.push_back(&node);
  }
  return variables;
}

absl::Status VariablesToConstants(const OpRegistry& ops,
                                  const std::map<std::string, Tensor>& values, GraphDef* def) {
  return Converter(ops, values, def).Run();
}

}  // namespace troupe

#include "api/training/saveable.h"

#include "absl/strings/escaping.h"
#include "api/ops.h"
#include "devices/device_name.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

bool IsResourceVariable(const Node& node) { return node.op() == "VarHandleOp"; }
bool IsReferenceVariable(const Node& node) {
  return node.op() == "VariableV2" || node.op() == "Variable";
}

/// A model's variable is called after its scope, others after their nodes.
std::string NameOf(Node* variable) {
  const ModelVariable model = ModelVariable::FromHandle(*variable->graph(), variable->name());
  return model.valid() && model.handle().node == variable ? model.name() : variable->name();
}

/// A read that comes with the variable and waits for nothing: the model's, or that of TensorFlow.
Output OwnRead(Node* variable) {
  const Graph& graph = *variable->graph();
  const ModelVariable model = ModelVariable::FromHandle(graph, variable->name());
  Node* read = model.valid() ? model.value().node
                             : graph.FindNode(StrCat(variable->name(), "/Read/ReadVariableOp"));
  if (read == nullptr || read->op() != "ReadVariableOp" || !read->control_inputs().empty()) {
    return Output();
  }
  return read->input(0).node == variable ? Output(read) : Output();
}

std::vector<Output> ReadVariable(const Scope& scope, Node* variable, ElementType type) {
  if (IsReferenceVariable(*variable)) return {Output(variable)};
  if (const Output own = OwnRead(variable); own.valid()) return {own};
  return {ops::ReadVariableOp(scope, variable, type)};
}

Node* SetVariable(const Scope& scope, Node* variable, bool shape_known, const Output& value) {
  if (IsReferenceVariable(*variable)) {
    return ops::Assign(scope.ColocateWith(variable), variable, value,
                       {.validate_shape = shape_known})
        .node;
  }
  // The value goes to the variable's device first.
  const std::string& device = variable->requested_device();
  const Scope there = device.empty() ? scope : scope.WithDevice(device);
  return ops::AssignVariableOp(there, variable, ops::Identity(there, value));
}

}  // namespace

Saveable::Saveable(const ModelVariable& variable) : Saveable("", variable) {}
Saveable::Saveable(std::string name, const ModelVariable& variable)
    : Saveable(std::move(name), variable.valid() ? variable.handle().node : nullptr) {}
Saveable::Saveable(Node* variable) : Saveable("", variable) {}

Saveable::Saveable(std::string name, Node* variable, std::optional<SaveSliceInfo> slice)
    : name_(std::move(name)), node_(variable) {
  if (variable == nullptr || !(IsResourceVariable(*variable) || IsReferenceVariable(*variable))) {
    status_ = variable == nullptr
                  ? InvalidArgument("a variable that is not valid cannot be saved")
                  : InvalidArgument("node '", variable->name(), "' of op ", variable->op(),
                                    " is no variable, and cannot be saved as one");
    return;
  }
  if (!slice.has_value()) {
    absl::StatusOr<std::optional<SaveSliceInfo>> kept = SaveSliceInfoOf(*variable);
    if (!kept.ok()) {
      status_ = WithContext(StrCat("variable '", variable->name(), "': "), kept.status());
      return;
    }
    slice = *std::move(kept);
  }
  OfVariable(variable, std::move(slice));
  Place();
}

Saveable::Saveable(std::string name, Node* node, std::vector<SavedTensor> tensors, Read read,
                   Restore restore)
    : name_(std::move(name)),
      node_(node),
      tensors_(std::move(tensors)),
      read_(std::move(read)),
      restore_(std::move(restore)) {
  if (node_ == nullptr || tensors_.empty() || read_ == nullptr || restore_ == nullptr) {
    status_ = InvalidArgument("what is saved as '", name_,
                              "' lacks its node, its tensors, or how it is read and restored");
    return;
  }
  Place();
}

void Saveable::OfVariable(Node* variable, std::optional<SaveSliceInfo> slice) {
  SavedTensor tensor;
  if (IsResourceVariable(*variable)) {
    tensor.type = variable->attrs().GetOr<ElementType>("dtype", ElementType::kInvalid);
    tensor.shape = variable->attrs().GetOr<PartialShape>("shape", PartialShape());
  } else {
    tensor.type = Output(variable).type();
    tensor.shape = variable->output_shape(0);
  }
  if (slice.has_value()) {
    status_ = slice->Check();
    if (status_.ok() && !tensor.shape.IsCompatibleWith(PartialShape(slice->extent))) {
      status_ = InvalidArgument("it has the shape ", tensor.shape.ToString(),
                                ", but is said to be the part '", slice->ShapeAndSlice(), "'");
    }
    if (!status_.ok()) {
      status_ = WithContext(StrCat("variable '", variable->name(), "': "), status_);
      return;
    }
    tensor.shape_and_slice = slice->ShapeAndSlice();
  }
  if (name_.empty()) name_ = slice.has_value() ? slice->full_name : NameOf(variable);
  tensor.name = name_;
  read_ = [variable, type = tensor.type](const Scope& scope) {
    return ReadVariable(scope, variable, type);
  };
  restore_ = [variable, known = tensor.shape.fully_known()](const Scope& scope,
                                                            absl::Span<const Output> tensors) {
    return SetVariable(scope, variable, known, tensors[0]);
  };
  tensors_ = {std::move(tensor)};
}

void Saveable::Place() {
  const absl::StatusOr<DeviceName> device = DeviceName::Parse(node_->requested_device());
  if (!device.ok()) {
    status_.Update(WithContext(StrCat("node '", node_->name(), "': "), device.status()));
    return;
  }
  device_ = device->ToString();
}

SaveableList::SaveableList(const std::vector<ModelVariable>& variables)
    : list_(std::vector<Saveable>(variables.begin(), variables.end())) {}

SaveableList::SaveableList(const std::map<std::string, ModelVariable>& names)
    : list_(std::vector<Saveable>()) {
  for (const auto& [name, variable] : names) list_->emplace_back(name, variable);
}

std::vector<Node*> VariableNodes(const Graph& graph) {
  std::vector<Node*> variables;
  for (Node* node : graph.nodes()) {
    if (IsResourceVariable(*node) || IsReferenceVariable(*node)) variables.push_back(node);
  }
  return variables;
}

absl::StatusOr<std::vector<Saveable>> SaveablesOfGraph(const Graph& graph) {
  const std::vector<std::string> collection = graph.Collection(collections::kVariables);
  std::vector<Saveable> saveables;
  for (const std::string& entry : collection) {
    if (Node* node = graph.FindNode(entry)) {
      saveables.emplace_back(node);
      continue;
    }
    return InvalidArgument("collection '", collections::kVariables, "' of the graph holds '",
                           std::string(absl::CHexEscape(entry.substr(0, 100))),
                           "', which is no node");
  }
  if (!collection.empty()) return saveables;
  for (Node* node : VariableNodes(graph)) saveables.emplace_back(node);
  return saveables;
}

}  // namespace troupe

#include "api/training/variables.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

ModelVariable::ModelVariable(const Scope& scope, const Output& initial_value, std::string_view name,
                             bool trainable) {
  Build(scope.NewSubScope(name), initial_value, trainable);
}

ModelVariable::ModelVariable(const Scope& scope, const Shape& shape, const Initializer& initializer,
                             std::string_view name, bool trainable, ElementType type) {
  const Scope own = scope.NewSubScope(name);
  Build(own, initializer(own.NewSubScope("initial_value"), shape, type), trainable);
}

void ModelVariable::Build(const Scope& scope, const Output& initial_value, bool trainable) {
  if (!scope.ok() || !initial_value.valid()) return;
  type_ = initial_value.type();
  shape_ = initial_value.shape();
  // The prefix is unique and so is the variable's name: all steps and sessions know it by that.
  name_ = scope.prefix();
  name_.pop_back();
  handle_ = ops::VarHandleOp(scope.WithOpName("handle"), type_, shape_, {.shared_name = name_});
  initializer_ = ops::AssignVariableOp(scope.WithOpName("assign"), handle_, initial_value);
  value_ =
      ops::ReadVariableOp(scope.WithOpName("read").WithNoControlDependencies(), handle_, type_);
  if (!scope.ok()) {
    handle_ = Output();
    return;
  }
  Graph* graph = scope.graph().get();
  graph->AddToCollection(collections::kVariables, handle_.node->name());
  graph->AddToCollection(collections::kVariableInitializers, initializer_->name());
  if (trainable) graph->AddToCollection(collections::kTrainableVariables, handle_.node->name());
}

ModelVariable ModelVariable::FromHandle(const Graph& graph, const std::string& name) {
  ModelVariable variable;
  const std::string prefix = name.substr(0, name.rfind('/') + 1);
  Node* handle = graph.FindNode(name);
  Node* read = graph.FindNode(prefix + "read");
  Node* assign = graph.FindNode(prefix + "assign");
  if (handle == nullptr || read == nullptr || assign == nullptr) return variable;
  variable.name_ = name.substr(0, name.rfind('/'));
  variable.handle_ = Output(handle);
  variable.value_ = Output(read);
  variable.initializer_ = assign;
  variable.type_ = read->output_type(0);
  variable.shape_ = read->output_shape(0);
  return variable;
}

std::vector<ModelVariable> ModelVariable::Trainable(const Graph& graph) {
  std::vector<ModelVariable> variables;
  for (const std::string& name : graph.Collection(collections::kTrainableVariables)) {
    ModelVariable variable = FromHandle(graph, name);
    if (variable.valid()) variables.push_back(variable);
  }
  return variables;
}

Output ModelVariable::Read(const Scope& scope) const {
  return ops::ReadVariableOp(scope, handle_, type_);
}
Node* ModelVariable::Assign(const Scope& scope, const Input& value) const {
  return ops::AssignVariableOp(scope, handle_, value);
}
Node* ModelVariable::AssignAdd(const Scope& scope, const Input& value) const {
  return ops::AssignAddVariableOp(scope, handle_, value);
}
Node* ModelVariable::AssignSub(const Scope& scope, const Input& value) const {
  return ops::AssignSubVariableOp(scope, handle_, value);
}

Node* GlobalVariablesInitializer(const Scope& scope) {
  std::vector<Node*> initializers;
  for (const std::string& name : scope.graph()->Collection(collections::kVariableInitializers)) {
    if (Node* node = scope.graph()->FindNode(name)) initializers.push_back(node);
  }
  return ops::NoOp(scope.WithOpName("init").WithControlDependencies(initializers));
}

ModelVariable GlobalStep(const Scope& scope) {
  Graph* graph = scope.graph().get();
  const std::vector<std::string> known = graph->Collection(collections::kGlobalStep);
  const Scope root(scope.graph());
  if (known.empty()) {
    ModelVariable step(root, Const(root, int64_t{0}), "global_step", /*trainable=*/false);
    scope.UpdateStatus(root.status());
    if (step.valid()) graph->AddToCollection(collections::kGlobalStep, step.handle().node->name());
    return step;
  }
  return ModelVariable::FromHandle(*graph, known.front());
}

}  // namespace troupe

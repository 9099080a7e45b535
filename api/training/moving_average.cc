#include "api/training/moving_average.h"

#include <set>

#include "api/collections.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// What a tensor's average is named after: its node.
const std::string& NameOf(const Output& tensor) { return tensor.node->name(); }

/// A scope for variables: on the same graph, with nothing before the names.
Scope RootOf(const Scope& scope) { return Scope(scope.graph()).WithDevicesOf(scope); }

Output InType(const Scope& scope, const Output& value, ElementType type) {
  return !value.valid() || value.type() == type ? value : ops::Cast(scope, value, type);
}

}  // namespace

Output ExponentialMovingAverage::Rate(const Scope& s, ElementType type) const {
  Output decay = decay_.ToOutput(s);
  if (num_updates_.valid() && decay.valid()) {
    const Output n = InType(s, num_updates_, decay.type());
    auto plus = [&](double x) { return ops::Add(s, n, InType(s, Const(s, x), decay.type())); };
    decay = ops::Minimum(s, decay, ops::RealDiv(s, plus(1.0), plus(10.0)));
  }
  if (!decay.valid()) return Output();
  return InType(s, ops::Sub(s, ops::OnesLike(s, decay), decay), type);
}

Node* ExponentialMovingAverage::UpdateAverage(const Scope& s, const ModelVariable& average,
                                              const Output& value) const {
  const Output step = ops::Mul(s, ops::Sub(s, average.Read(s), value), Rate(s, average.type()));
  return average.AssignSub(s, step);
}

Node* ExponentialMovingAverage::UpdateWithoutBias(const Scope& s, const ModelVariable& average,
                                                  const Output& value) {
  const ElementType type = average.type();
  absl::StatusOr<Shape> shape = average.shape().ToShape();
  if (!shape.ok()) {
    s.UpdateStatus(shape.status());
    return nullptr;
  }
  const Scope root = RootOf(s);
  const ModelVariable biased(root, *shape, ZerosInitializer(), average.name() + "/biased", false,
                             type);
  const ModelVariable steps(root, {}, ZerosInitializer(), average.name() + "/local_step", false,
                            type);
  s.UpdateStatus(root.status());
  if (!s.ok()) return nullptr;
  Node* next = UpdateAverage(s, biased, value);
  Node* count = steps.AssignAdd(s, InType(s, Const(s, 1.0), type));
  const Scope after = s.WithControlDependencies({next, count});
  const Output kept = ops::Sub(s, InType(s, Const(s, 1.0), type), Rate(s, type));
  const Output weight = ops::Pow(s, kept, steps.Read(after));
  return average.Assign(
      s, ops::RealDiv(s, biased.Read(after), ops::Sub(s, ops::OnesLike(s, weight), weight)));
}

Node* ExponentialMovingAverage::Apply(const Scope& scope, std::vector<ModelVariable> variables) {
  if (variables.empty()) variables = ModelVariable::Trainable(*scope.graph());
  const Scope own = scope.NewSubScope(name_);
  std::vector<Node*> updates;
  for (const ModelVariable& variable : variables) {
    if (!own.ok() || !variable.valid()) break;
    ModelVariable& average = averages_[variable.name()];
    if (!average.valid()) {
      const Scope root = RootOf(scope).WithDevice(variable.device());
      // The tensor that the variable's initializer assigns: in one step it is the same for both.
      average = ModelVariable(root, variable.initializer()->input(1), AverageName(variable),
                              /*trainable=*/false);
      own.UpdateStatus(root.status());
      if (!own.ok()) break;
      scope.graph()->AddToCollection(collections::kMovingAverageVariables,
                                     variable.handle().node->name());
    }
    updates.push_back(UpdateAverage(own, average, variable.Read(own)));
  }
  if (!own.ok()) return nullptr;
  return ops::NoOp(own.WithOpName("update").WithControlDependencies(updates));
}

Node* ExponentialMovingAverage::Apply(const Scope& scope, const std::vector<Output>& tensors) {
  const Scope own = scope.NewSubScope(name_);
  std::vector<Node*> updates;
  for (const Output& tensor : tensors) {
    if (!own.ok() || !tensor.valid()) break;
    ModelVariable& average = averages_[tensor.name()];
    if (!average.valid()) {
      absl::StatusOr<Shape> shape = tensor.shape().ToShape();
      if (!shape.ok()) {
        own.UpdateStatus(InvalidArgument(name_, ": the average of ", tensor.name(),
                                         " needs its shape, which is ", tensor.shape().ToString()));
        break;
      }
      const Scope root = RootOf(scope);
      average = ModelVariable(root, *shape, ZerosInitializer(), AverageName(tensor),
                              /*trainable=*/false, tensor.type());
      own.UpdateStatus(root.status());
      if (!own.ok()) break;
    }
    updates.push_back(zero_debias_ ? UpdateWithoutBias(own, average, tensor)
                                   : UpdateAverage(own, average, tensor));
  }
  if (!own.ok()) return nullptr;
  return ops::NoOp(own.WithOpName("update").WithControlDependencies(updates));
}

ModelVariable ExponentialMovingAverage::Average(const ModelVariable& variable) const {
  auto it = averages_.find(variable.name());
  return it == averages_.end() ? ModelVariable() : it->second;
}

ModelVariable ExponentialMovingAverage::Average(const Output& tensor) const {
  auto it = tensor.valid() ? averages_.find(tensor.name()) : averages_.end();
  return it == averages_.end() ? ModelVariable() : it->second;
}

std::string ExponentialMovingAverage::AverageName(const ModelVariable& variable) const {
  const ModelVariable known = Average(variable);
  return known.valid() ? known.name() : StrCat(variable.name(), "/", name_);
}

std::string ExponentialMovingAverage::AverageName(const Output& tensor) const {
  const ModelVariable known = Average(tensor);
  if (known.valid()) return known.name();
  return tensor.valid() ? StrCat(NameOf(tensor), "/", name_) : std::string();
}

std::map<std::string, ModelVariable> ExponentialMovingAverage::VariablesToRestore(
    const Graph& graph) const {
  std::set<std::string> averaged;
  for (const ModelVariable& variable : ModelVariable::Trainable(graph)) {
    averaged.insert(variable.name());
  }
  for (const auto& [name, average] : averages_) averaged.insert(name);
  std::map<std::string, ModelVariable> result;
  std::vector<ModelVariable> others;
  for (const std::string& handle : graph.Collection(collections::kVariables)) {
    const ModelVariable variable = ModelVariable::FromHandle(graph, handle);
    if (!variable.valid()) continue;
    if (averaged.count(variable.name()) != 0) {
      result[AverageName(variable)] = variable;
    } else {
      others.push_back(variable);
    }
  }
  // The shadow variables are among them: what is saved under their names is already spoken for.
  for (const ModelVariable& variable : others) result.emplace(variable.name(), variable);
  return result;
}

}  // namespace troupe

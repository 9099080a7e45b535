#include "api/training/optimizer.h"

#include <algorithm>

#include "api/ops.h"
#include "api/variable_scope.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// The same gradients, each available only when all are.
void Gate(const Scope& scope, std::vector<GradientAndVariable>* gradients) {
  std::vector<Node*> nodes;
  for (const auto& [gradient, variable] : *gradients) {
    if (gradient.valid()) nodes.push_back(gradient.values.node);
    if (gradient.sparse()) nodes.push_back(gradient.indices.node);
  }
  const Scope own = scope.NewSubScope("gate_gradients");
  const Scope after = own.WithControlDependencies({ops::NoOp(own.WithControlDependencies(nodes))});
  for (auto& [gradient, variable] : *gradients) {
    if (gradient.valid()) gradient.values = ops::Identity(after, gradient.values);
  }
}

}  // namespace

Gradient SumRepeatedRows(const Scope& scope, const Gradient& gradient) {
  if (!gradient.sparse() || !scope.ok()) return gradient;
  const Scope own = scope.NewSubScope("sum_repeated_rows");
  const auto rows = ops::Unique(own, gradient.indices);
  const Output sums =
      ops::UnsortedSegmentSum(own, gradient.values, rows.idx, ops::Size(own, rows.y));
  return Gradient(sums, rows.y, gradient.dense_shape);
}

std::vector<GradientAndVariable> Optimizer::ComputeGradients(const Scope& scope, const Output& loss,
                                                             std::vector<ModelVariable> variables,
                                                             GateGradients gate,
                                                             GradientOptions options) const {
  if (variables.empty()) variables = ModelVariable::Trainable(*scope.graph());
  // By the handles: reads of the whole value and look-ups of rows both count.
  std::vector<Output> xs;
  for (const ModelVariable& variable : variables) xs.push_back(variable.handle());
  std::vector<Gradient> gradients(xs.size());
  options.prefix = scope.UniqueName(options.prefix);
  options.gate_gradients |= gate == GateGradients::kOp;
  if (scope.ok()) {
    scope.UpdateStatus(AddSymbolicGradients({loss}, xs, {}, &gradients, options));
  }
  gradients.resize(xs.size());
  std::vector<GradientAndVariable> result;
  for (size_t i = 0; i < variables.size(); ++i) result.emplace_back(gradients[i], variables[i]);
  if (gate == GateGradients::kGraph && scope.ok()) Gate(scope, &result);
  return result;
}

Node* Optimizer::ApplyGradients(const Scope& scope,
                                const std::vector<GradientAndVariable>& gradients,
                                const ModelVariable& global_step) {
  if (!scope.ok()) return nullptr;
  const bool any = std::any_of(gradients.begin(), gradients.end(),
                               [](const GradientAndVariable& g) { return g.first.valid(); });
  if (!any) {
    scope.UpdateStatus(InvalidArgument(
        name_, ": no variable has a gradient. Does the loss depend on a trainable variable?"));
    return nullptr;
  }
  CreateSlots(scope, gradients);
  const Scope own = scope.NewSubScope(name_);
  std::vector<Node*> updates;
  for (const auto& [gradient, variable] : gradients) {
    if (!gradient.valid() || !own.ok()) continue;
    Scope one = own.NewSubScope(StrCat("update_", variable.name()));
    // All of the step sees the value from before: a gradient may be there before every read is.
    if (!gradient.sparse()) one = one.WithControlDependencies({variable.value()});
    const Gradient rows = TakesRepeatedRows() ? gradient : SumRepeatedRows(one, gradient);
    if (!one.ok()) break;
    Node* update = Apply(Update(*this, one, variable, rows));
    if (const Constraint constraint = scope.variable_store().ConstraintOf(variable);
        constraint != nullptr && update != nullptr) {
      const Scope after = one.WithControlDependencies(absl::MakeConstSpan(&update, 1));
      update = variable.Assign(after, constraint(after, variable.Read(after)));
    }
    updates.push_back(update);
  }
  if (!own.ok()) return nullptr;
  updates = Finish(own, updates);
  if (!own.ok()) return nullptr;
  const Scope after = own.WithControlDependencies(updates);
  // All of the step sees the number from before, too.
  Node* train = global_step.valid()
                    ? global_step.AssignAdd(
                          after.WithControlDependencies({global_step.value()}).WithOpName("train"),
                          Const(own.WithOpName("one"), int64_t{1}))
                    : ops::NoOp(after.WithOpName("train"));
  if (train != nullptr) scope.graph()->AddToCollection(collections::kTrainOp, train->name());
  return train;
}

void Optimizer::CreateSlots(const Scope& scope, const std::vector<GradientAndVariable>& gradients) {
  if (!scope.ok()) return;
  for (const auto& [gradient, variable] : gradients) {
    if (!gradient.valid()) continue;
    for (const Slot& slot : Slots()) MakeSlot(scope, variable, slot);
  }
  Prepare(scope);
}

Node* Optimizer::Minimize(const Scope& scope, const Output& loss, const ModelVariable& global_step,
                          std::vector<ModelVariable> variables) {
  return ApplyGradients(scope, ComputeGradients(scope, loss, std::move(variables)), global_step);
}

Node* Optimizer::Update::Apply(const std::string& rule, const std::vector<std::string>& slots,
                               const std::vector<Output>& arguments,
                               const std::vector<std::pair<std::string, bool>>& attributes) const {
  std::vector<Output> inputs = {variable_.handle()};
  for (const std::string& name : slots) inputs.push_back(slot(name).handle());
  for (const Output& argument : arguments) {
    inputs.push_back(argument);
    if (sparse() && argument == gradient()) inputs.push_back(indices());
  }
  // An invalid input is the sign of an error that the scope has already.
  for (const Output& input : inputs) {
    if (!input.valid()) return nullptr;
  }
  return scope_.AddNode(StrCat(sparse() ? "ResourceSparseApply" : "ResourceApply", rule),
                        [&](ScopedSpec& spec) {
                          for (const Output& input : inputs) spec.Input(input);
                          for (const auto& [name, value] : attributes) spec.Attr(name, value);
                        });
}

ModelVariable Optimizer::GetSlot(const ModelVariable& variable, const std::string& slot) const {
  auto it = slots_.find({variable.name(), slot});
  return it == slots_.end() ? ModelVariable() : it->second;
}

std::vector<std::string> Optimizer::SlotNames() const {
  std::vector<std::string> names;
  for (const Slot& slot : Slots()) names.push_back(slot.name);
  return names;
}

ModelVariable Optimizer::MakeSlot(const Scope& scope, const ModelVariable& variable,
                                  const Slot& slot) {
  ModelVariable& known = slots_[{variable.name(), slot.name}];
  if (known.valid() || !scope.ok()) return known;
  absl::StatusOr<Shape> shape = variable.shape().ToShape();
  if (!shape.ok()) {
    scope.UpdateStatus(InvalidArgument(name_, ": the slot '", slot.name, "' of the variable '",
                                       variable.name(), "' needs the variable's shape, which is ",
                                       variable.shape().ToString()));
    return known;
  }
  // Named after the variable alone, wherever the optimizer is used; placed where the variable is.
  const Scope root = Scope(scope.graph()).WithDevice(variable.device());
  known = ModelVariable(root, *shape, ConstantInitializer(slot.initial_value),
                        StrCat(variable.name(), "/", name_), /*trainable=*/false, variable.type());
  scope.UpdateStatus(root.status());
  return known;
}

ModelVariable Optimizer::MakeState(const Scope& scope, const Input& value, std::string_view name) {
  if (!scope.ok()) return ModelVariable();
  const Scope outside = Scope(scope.graph()).WithPrefix(scope.prefix()).WithDevicesOf(scope);
  ModelVariable state(outside, value.ToOutput(outside), name, /*trainable=*/false);
  scope.UpdateStatus(outside.status());
  return state;
}

Output Optimizer::Parameter(const Scope& scope, const Input& value, ElementType type) {
  const Output output = value.ToOutput(scope);
  return !output.valid() || output.type() == type ? output : ops::Cast(scope, output, type);
}

}  // namespace troupe

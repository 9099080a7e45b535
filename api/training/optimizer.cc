#include "api/training/optimizer.h"

#include "api/gradients.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

std::vector<GradientAndVariable> Optimizer::ComputeGradients(
    const Scope& scope, const Output& loss, std::vector<ModelVariable> variables) const {
  if (variables.empty()) variables = ModelVariable::Trainable(*scope.graph());
  std::vector<Output> xs;
  for (const ModelVariable& variable : variables) xs.push_back(variable.value());
  const std::vector<Output> gradients = Gradients(scope, {loss}, xs);
  std::vector<GradientAndVariable> result;
  for (size_t i = 0; i < variables.size(); ++i) result.emplace_back(gradients[i], variables[i]);
  return result;
}

Node* Optimizer::ApplyGradients(const Scope& scope,
                                const std::vector<GradientAndVariable>& gradients,
                                const ModelVariable& global_step) {
  if (!scope.ok()) return nullptr;
  std::vector<ModelVariable> variables;
  for (const auto& [gradient, variable] : gradients) {
    if (gradient.valid()) variables.push_back(variable);
  }
  if (variables.empty()) {
    scope.UpdateStatus(InvalidArgument(
        name_, ": no variable has a gradient. Does the loss depend on a trainable variable?"));
    return nullptr;
  }
  const Scope own = scope.NewSubScope(name_);
  Prepare(own, variables);
  std::vector<Node*> updates;
  for (const auto& [gradient, variable] : gradients) {
    if (!gradient.valid() || !own.ok()) continue;
    updates.push_back(Apply(own.NewSubScope("update"), variable, gradient));
  }
  if (!own.ok()) return nullptr;
  updates = Finish(own, updates);
  if (!own.ok()) return nullptr;
  const Scope after = own.WithControlDependencies(updates);
  Node* train = global_step.valid()
                    ? global_step.AssignAdd(after.WithOpName("train"),
                                            Const(own.WithOpName("one"), int64_t{1}))
                    : ops::NoOp(after.WithOpName("train"));
  if (train != nullptr) scope.graph()->AddToCollection(collections::kTrainOp, train->name());
  return train;
}

Node* Optimizer::Minimize(const Scope& scope, const Output& loss, const ModelVariable& global_step,
                          std::vector<ModelVariable> variables) {
  return ApplyGradients(scope, ComputeGradients(scope, loss, std::move(variables)), global_step);
}

ModelVariable Optimizer::GetSlot(const ModelVariable& variable, const std::string& slot) const {
  auto it = slots_.find({variable.name(), slot});
  return it == slots_.end() ? ModelVariable() : it->second;
}

ModelVariable Optimizer::MakeSlot(const ModelVariable& variable, const std::string& slot,
                                  double value) {
  ModelVariable& known = slots_[{variable.name(), slot}];
  if (known.valid()) return known;
  const Scope root(variable.handle().node->graph()->shared_from_this());
  absl::StatusOr<Shape> shape = variable.shape().ToShape();
  if (!shape.ok()) return known;
  known = ModelVariable(root, *shape, ConstantInitializer(value),
                        StrCat(variable.name(), "/", name_, "_", slot),
                        /*trainable=*/false, variable.type());
  return known;
}

Output Optimizer::Parameter(const Scope& scope, const Input& value, ElementType type) {
  const Output output = value.ToOutput(scope);
  return !output.valid() || output.type() == type ? output : ops::Cast(scope, output, type);
}

// --- gradient descent, momentum ---

Node* GradientDescentOptimizer::Apply(const Scope& scope, const ModelVariable& variable,
                                      const Output& gradient) {
  return ops::ResourceApplyGradientDescent(
      scope, variable.handle(), Parameter(scope, learning_rate_, variable.type()), gradient);
}

void MomentumOptimizer::Prepare(const Scope&, const std::vector<ModelVariable>& variables) {
  for (const ModelVariable& variable : variables) MakeSlot(variable, "momentum");
}

Node* MomentumOptimizer::Apply(const Scope& scope, const ModelVariable& variable,
                               const Output& gradient) {
  return ops::ResourceApplyMomentum(
      scope, variable.handle(), GetSlot(variable, "momentum").handle(),
      Parameter(scope, learning_rate_, variable.type()), gradient,
      Parameter(scope, momentum_, variable.type()), {.use_nesterov = use_nesterov_});
}

// --- Adam ---

void AdamOptimizer::Prepare(const Scope& scope, const std::vector<ModelVariable>& variables) {
  for (const ModelVariable& variable : variables) {
    MakeSlot(variable, "m");
    MakeSlot(variable, "v");
  }
  // The powers are kept in the first variable's type, as TensorFlow does.
  const ElementType type = variables.front().type();
  beta1_power_ = ModelVariable(scope, Parameter(scope, beta1_, type), "beta1_power", false);
  beta2_power_ = ModelVariable(scope, Parameter(scope, beta2_, type), "beta2_power", false);
}

Node* AdamOptimizer::Apply(const Scope& scope, const ModelVariable& variable,
                           const Output& gradient) {
  const ElementType type = variable.type();
  return ops::ResourceApplyAdam(
      scope, variable.handle(), GetSlot(variable, "m").handle(), GetSlot(variable, "v").handle(),
      Parameter(scope, beta1_power_.value(), type), Parameter(scope, beta2_power_.value(), type),
      Parameter(scope, learning_rate_, type), Parameter(scope, beta1_, type),
      Parameter(scope, beta2_, type), Parameter(scope, epsilon_, type), gradient);
}

std::vector<Node*> AdamOptimizer::Finish(const Scope& scope, const std::vector<Node*>& updates) {
  const Scope after = scope.WithControlDependencies(updates);
  const ElementType type = beta1_power_.type();
  Node* power1 = beta1_power_.Assign(
      after, ops::Mul(scope, beta1_power_.value(), Parameter(scope, beta1_, type)));
  Node* power2 = beta2_power_.Assign(
      after, ops::Mul(scope, beta2_power_.value(), Parameter(scope, beta2_, type)));
  return {power1, power2};
}

}  // namespace troupe

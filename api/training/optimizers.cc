// Which op updates a variable, with what.
#include "api/training/optimizers.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

Node* GradientDescentOptimizer::Apply(const Update& u) {
  const Output rate = u.parameter(learning_rate_);
  if (!u.sparse()) return u.Apply("GradientDescent", {}, {rate, u.gradient()});
  return ops::ResourceScatterSub(u.scope(), u.variable().handle(), u.indices(),
                                 ops::Mul(u.scope(), u.gradient(), rate));
}

Node* MomentumOptimizer::Apply(const Update& u) {
  return u.Apply("Momentum", {"momentum"},
                 {u.parameter(learning_rate_), u.gradient(), u.parameter(momentum_)},
                 {{"use_nesterov", use_nesterov_}});
}

Node* AdagradOptimizer::Apply(const Update& u) {
  return u.Apply("Adagrad", {"accumulator"}, {u.parameter(learning_rate_), u.gradient()});
}

void AdagradDAOptimizer::Prepare(const Scope& scope) {
  if (!global_step_.valid()) {
    scope.UpdateStatus(InvalidArgument(
        name(),
        ": needs a variable that counts the steps. Give GlobalStep(scope), here and to "
        "ApplyGradients or Minimize"));
    return;
  }
  step_ = ops::Add(scope, Parameter(scope, global_step_.value(), ElementType::kInt64), int64_t{1});
}

Node* AdagradDAOptimizer::Apply(const Update& u) {
  return u.Apply(
      "AdagradDA", {"gradient_accumulator", "gradient_squared_accumulator"},
      {u.gradient(), u.parameter(learning_rate_), u.parameter(l1_), u.parameter(l2_), step_});
}

Node* AdadeltaOptimizer::Apply(const Update& u) {
  return u.Apply(
      "Adadelta", {"accum", "accum_update"},
      {u.parameter(learning_rate_), u.parameter(rho_), u.parameter(epsilon_), u.gradient()});
}

std::vector<Optimizer::Slot> RMSPropOptimizer::Slots() const {
  if (centered_) return {{"rms", 1.0}, {"mg"}, {"momentum"}};
  return {{"rms", 1.0}, {"momentum"}};
}

Node* RMSPropOptimizer::Apply(const Update& u) {
  const std::vector<Output> arguments = {u.parameter(learning_rate_), u.parameter(decay_),
                                         u.parameter(momentum_), u.parameter(epsilon_),
                                         u.gradient()};
  if (centered_) return u.Apply("CenteredRMSProp", {"mg", "rms", "momentum"}, arguments);
  return u.Apply("RMSProp", {"rms", "momentum"}, arguments);
}

Node* FtrlOptimizer::Apply(const Update& u) {
  std::vector<Output> arguments = {u.gradient(), u.parameter(learning_rate_),
                                   u.parameter(options_.l1), u.parameter(options_.l2)};
  const bool shrink = options_.l2_shrinkage > 0;
  if (shrink) arguments.push_back(u.parameter(options_.l2_shrinkage));
  arguments.push_back(u.parameter(options_.learning_rate_power));
  return u.Apply(shrink ? "FtrlV2" : "Ftrl", {"accum", "linear"}, arguments);
}

Node* ProximalGradientDescentOptimizer::Apply(const Update& u) {
  return u.Apply("ProximalGradientDescent", {},
                 {u.parameter(learning_rate_), u.parameter(l1_), u.parameter(l2_), u.gradient()});
}

Node* ProximalAdagradOptimizer::Apply(const Update& u) {
  return u.Apply("ProximalAdagrad", {"accumulator"},
                 {u.parameter(learning_rate_), u.parameter(l1_), u.parameter(l2_), u.gradient()});
}

}  // namespace troupe

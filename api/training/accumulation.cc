#include "api/training/accumulation.h"

#include "api/control_flow.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

Node* GradientAccumulation::ApplyGradients(const Scope& scope,
                                           const std::vector<GradientAndVariable>& gradients,
                                           const ModelVariable& global_step) {
  if (optimizer_ == nullptr || steps_ < 1) {
    scope.UpdateStatus(InvalidArgument(
        name(),
        optimizer_ == nullptr ? ": there is no optimizer to give the gradients to"
                              : ": the gradients of at least 1 step are needed, not of ",
        optimizer_ == nullptr ? "" : StrCat(steps_)));
  }
  if (!scope.ok()) return nullptr;
  // Made here, they are not in the branch that applies them, where nothing could initialize them.
  optimizer_->CreateSlots(scope, gradients);
  variables_.clear();
  for (const auto& [gradient, variable] : gradients) {
    if (gradient.valid()) variables_.push_back(variable);
  }
  global_step_ = global_step;
  return Optimizer::ApplyGradients(scope, gradients);
}

ModelVariable GradientAccumulation::GetSlot(const ModelVariable& variable,
                                            const std::string& slot) const {
  const ModelVariable own = Optimizer::GetSlot(variable, slot);
  return own.valid() || optimizer_ == nullptr ? own : optimizer_->GetSlot(variable, slot);
}

std::vector<std::string> GradientAccumulation::SlotNames() const {
  std::vector<std::string> names = Optimizer::SlotNames();
  if (optimizer_ == nullptr) return names;
  for (std::string& slot : optimizer_->SlotNames()) names.push_back(std::move(slot));
  return names;
}

void GradientAccumulation::Prepare(const Scope& scope) {
  if (!runs_.valid()) runs_ = MakeState(scope, int64_t{0}, name() + "/runs");
}

Node* GradientAccumulation::Apply(const Update& u) {
  const ModelVariable sum = u.slot("sum");
  if (!u.sparse()) return sum.AssignAdd(u.scope(), u.gradient());
  return ops::ResourceScatterAdd(u.scope(), sum.handle(), u.indices(), u.gradient());
}

std::vector<Node*> GradientAccumulation::Finish(const Scope& scope,
                                                const std::vector<Node*>& updates) {
  Node* counted = runs_.AssignAdd(scope.WithControlDependencies(updates), Const(scope, int64_t{1}));
  if (counted == nullptr) return {};
  const Output runs = runs_.Read(scope.WithControlDependencies({counted}));
  const Output full =
      ops::Equal(scope, ops::FloorMod(scope, runs, Const(scope, steps_)), int64_t{0});
  const std::vector<Output> done = Cond(
      scope, full, [&](const Scope& s) { return std::vector<Output>{Output(ApplySums(s))}; },
      [&](const Scope& s) { return std::vector<Output>{Output(ops::NoOp(s))}; });
  if (done.empty() || !done[0].valid()) return {};
  return {done[0].node};
}

Node* GradientAccumulation::ApplySums(const Scope& s) {
  std::vector<GradientAndVariable> gradients;
  for (const ModelVariable& variable : variables_) {
    Output sum = Optimizer::GetSlot(variable, "sum").Read(s);
    if (mean_ && sum.valid()) {
      sum = ops::RealDiv(s, sum, Parameter(s, static_cast<double>(steps_), sum.type()));
    }
    gradients.emplace_back(Gradient(sum), variable);
  }
  Node* train = optimizer_->ApplyGradients(s, gradients, global_step_);
  if (train == nullptr) return nullptr;
  const Scope after = s.WithControlDependencies({train});
  std::vector<Node*> cleared;
  for (const auto& [gradient, variable] : gradients) {
    cleared.push_back(
        Optimizer::GetSlot(variable, "sum").Assign(after, ops::ZerosLike(s, gradient.values)));
  }
  return ops::NoOp(s.WithControlDependencies(cleared));
}

}  // namespace troupe

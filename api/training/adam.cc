// Adam and AdaMax: their powers of beta, and sparse updates, which are made of several ops.
#include "api/ops.h"
#include "api/training/optimizers.h"

namespace troupe {

namespace {

Node* NextPower(const Scope& scope, const Scope& after, const ModelVariable& power,
                const Input& beta) {
  return power.Assign(after, ops::Mul(scope, power.value(), beta));
}

Output OneMinus(const Scope& scope, const Output& x) {
  return ops::Sub(scope, ops::OnesLike(scope, x), x);
}

}  // namespace

// --- Adam ---

void AdamOptimizer::Prepare(const Scope& scope) {
  if (beta1_power_.valid()) return;
  // In beta's own type: in a short one (bfloat16) 0.999 is 1.
  beta1_power_ = MakeState(scope, beta1_, "beta1_power");
  beta2_power_ = MakeState(scope, beta2_, "beta2_power");
}

Node* AdamOptimizer::Apply(const Update& u) {
  if (u.sparse()) return ApplySparse(u);
  return u.Apply("Adam", {"m", "v"},
                 {u.parameter(beta1_power_.value()), u.parameter(beta2_power_.value()),
                  u.parameter(learning_rate_), u.parameter(beta1_), u.parameter(beta2_),
                  u.parameter(epsilon_), u.gradient()});
}

Node* AdamOptimizer::ApplySparse(const Update& u) const {
  const Scope& s = u.scope();
  // slot = beta * slot everywhere, + (1 - beta) * x in the gradient's rows.
  auto decay_and_add = [&](const ModelVariable& slot, const Output& beta, const Output& x) {
    if (!slot.valid()) return Output();
    Node* decayed = slot.Assign(s, ops::Mul(s, slot.Read(s), beta));
    Node* added = ops::ResourceScatterAdd(s.WithControlDependencies({decayed}), slot.handle(),
                                          u.indices(), ops::Mul(s, x, OneMinus(s, beta)));
    return slot.Read(s.WithControlDependencies({added}));
  };
  const Output m = decay_and_add(u.slot("m"), u.parameter(beta1_), u.gradient());
  const Output v = decay_and_add(u.slot("v"), u.parameter(beta2_), ops::Square(s, u.gradient()));
  const Output correction =
      ops::RealDiv(s, ops::Sqrt(s, OneMinus(s, u.parameter(beta2_power_.value()))),
                   OneMinus(s, u.parameter(beta1_power_.value())));
  const Output rate = ops::Mul(s, u.parameter(learning_rate_), correction);
  const Output step =
      ops::RealDiv(s, ops::Mul(s, rate, m), ops::Add(s, ops::Sqrt(s, v), u.parameter(epsilon_)));
  return u.variable().AssignSub(s, step);
}

std::vector<Node*> AdamOptimizer::Finish(const Scope& scope, const std::vector<Node*>& updates) {
  const Scope after = scope.WithControlDependencies(updates);
  return {NextPower(scope, after, beta1_power_, beta1_),
          NextPower(scope, after, beta2_power_, beta2_)};
}

// --- AdaMax ---

void AdaMaxOptimizer::Prepare(const Scope& scope) {
  if (!beta1_power_.valid()) beta1_power_ = MakeState(scope, beta1_, "beta1_power");
}

Node* AdaMaxOptimizer::Apply(const Update& u) {
  if (u.sparse()) return ApplySparse(u);
  return u.Apply("AdaMax", {"m", "v"},
                 {u.parameter(beta1_power_.value()), u.parameter(learning_rate_),
                  u.parameter(beta1_), u.parameter(beta2_), u.parameter(epsilon_), u.gradient()});
}

Node* AdaMaxOptimizer::ApplySparse(const Update& u) const {
  const Scope& s = u.scope();
  const Output beta1 = u.parameter(beta1_), beta2 = u.parameter(beta2_);
  auto rows = [&](const char* slot) {
    return ops::ResourceGather(s, u.slot(slot).handle(), u.indices(), u.variable().type());
  };
  const Output m =
      ops::Add(s, ops::Mul(s, rows("m"), beta1), ops::Mul(s, u.gradient(), OneMinus(s, beta1)));
  const Output v = ops::Maximum(s, ops::Mul(s, rows("v"), beta2), ops::Abs(s, u.gradient()));
  Node* set_m = ops::ResourceScatterUpdate(s, u.slot("m").handle(), u.indices(), m);
  Node* set_v = ops::ResourceScatterUpdate(s, u.slot("v").handle(), u.indices(), v);
  const Output rate =
      ops::RealDiv(s, u.parameter(learning_rate_), OneMinus(s, u.parameter(beta1_power_.value())));
  const Output step = ops::Mul(s, rate, ops::RealDiv(s, m, ops::Add(s, v, u.parameter(epsilon_))));
  return ops::ResourceScatterSub(s.WithControlDependencies({set_m, set_v}), u.variable().handle(),
                                 u.indices(), step);
}

std::vector<Node*> AdaMaxOptimizer::Finish(const Scope& scope, const std::vector<Node*>& updates) {
  return {NextPower(scope, scope.WithControlDependencies(updates), beta1_power_, beta1_)};
}

}  // namespace troupe

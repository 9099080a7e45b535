#include "api/internal/metric_sums.h"

#include "api/collections.h"
#include "api/internal/label_shapes.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"

namespace troupe::metrics {

Output Float(const Scope& scope, const Output& x) {
  return !x.valid() || x.type() == ElementType::kFloat ? x
                                                       : ops::Cast(scope, x, ElementType::kFloat);
}

ModelVariable MetricVariable(const Scope& scope, const char* name, const Shape& shape,
                             ElementType type) {
  if (!scope.ok()) return ModelVariable();
  const Scope outside = scope.WithFlowContext(nullptr).WithPrefix(scope.variables()->prefix);
  const Output zeros =
      ZerosInitializer()(outside.NewSubScope(StrCat(name, "/initial_value")), shape, type);
  ModelVariable variable = ModelVariable::Local(outside, zeros, name);
  if (scope.ok()) {
    scope.graph()->AddToCollection(collections::kMetricVariables, variable.handle().node->name());
  }
  return variable;
}

Sum Keep(const Scope& scope, const char* name, const Shape& shape, const Output& batch) {
  if (!scope.ok() || !batch.valid()) return {};
  const ModelVariable sum = MetricVariable(scope, name, shape, batch.type());
  if (!scope.ok()) return {};
  Node* add = sum.AssignAdd(scope, batch);
  if (add == nullptr) return {};
  return {sum.value(), sum.Read(scope.WithControlDependencies(absl::MakeConstSpan(&add, 1)))};
}

Metric Ratio(const Scope& scope, const Sum& a, const Sum& b) {
  return Of(
      scope, [&](const Output& x, const Output& y) { return ops::DivNoNan(scope, x, y); }, a, b);
}

Output Spread(const Scope& scope, const Output& values, const std::optional<Input>& weights) {
  if (!scope.ok() || !values.valid()) return Output();
  const Output ones = ops::OnesLike(scope, Float(scope, values));
  if (!weights) return ones;
  const Output given = Float(scope, weights->ToOutput(scope));
  const Output fit = SqueezedWeights(scope, given, values, /*may_grow=*/true);
  return ops::Mul(scope, ones, CheckedWeights(scope, fit, values));
}

Metric MeanOf(const Scope& scope, const Output& values, const std::optional<Input>& weights) {
  if (!scope.ok() || !values.valid()) return {};
  const Output w = Spread(scope, values, weights);
  const Sum total =
      Keep(scope, "total", {}, ReduceSum(scope, ops::Mul(scope, Float(scope, values), w)));
  const Sum count = Keep(scope, "count", {}, ReduceSum(scope, w));
  return Ratio(scope, total, count);
}

}  // namespace troupe::metrics

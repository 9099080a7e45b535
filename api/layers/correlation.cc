#include "api/layers/correlation.h"

#include "api/internal/label_shapes.h"
#include "api/internal/metric_sums.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"

namespace troupe::metrics {

namespace {

/// A mean that batches move.
struct MovingMean {
  Output batch;   ///< Of the batch.
  Output before;  ///< Of the batches before.
};

MovingMean Move(const Scope& scope, const char* name, const Output& values, const Output& weights,
                const Output& batch_count, const Output& count) {
  const ModelVariable mean = MetricVariable(scope, name, {}, ElementType::kFloat);
  if (!scope.ok()) return {};
  const Output batch =
      ops::DivNoNan(scope, ReduceSum(scope, ops::Mul(scope, values, weights)), batch_count);
  const Output way = ops::Sub(scope, batch, mean.value());
  const Output step = ops::DivNoNan(scope, ops::Mul(scope, way, batch_count), count);
  Node* move = mean.AssignAdd(scope, step);
  if (move == nullptr) return {};
  const Output after = mean.Read(scope.WithControlDependencies(absl::MakeConstSpan(&move, 1)));
  return {batch, ops::Sub(scope, after, step)};
}

Metric CovarianceIn(const Scope& own, const Output& x, const Output& y,
                    const std::optional<Input>& weights) {
  if (!own.ok() || !x.valid() || !y.valid()) return {};
  const LabeledPredictions matched = Matched(own, x, y);
  const Output a = Float(own, matched.labels), b = Float(own, matched.predictions);
  const Output w = Spread(own, a, weights);
  const Output batch_count = ReduceSum(own, w);
  const Sum count = Keep(own, "count", {}, batch_count);
  const MovingMean mean_a = Move(own, "mean_label", a, w, batch_count, count.after);
  const MovingMean mean_b = Move(own, "mean_prediction", b, w, batch_count, count.after);
  if (!own.ok()) return {};
  // Products of what is off the batch's means, and of what these are off the means before.
  const Output off = ops::Mul(own, ops::Sub(own, a, mean_a.batch), ops::Sub(own, b, mean_b.batch));
  const Output apart = ops::Mul(own, ops::Sub(own, mean_a.before, mean_a.batch),
                                ops::Sub(own, mean_b.before, mean_b.batch));
  const Output both = ops::DivNoNan(
      own, ops::Mul(own, ops::Sub(own, count.after, batch_count), batch_count), count.after);
  const Sum products =
      Keep(own, "comoment", {},
           ops::Add(own, ReduceSum(own, ops::Mul(own, off, w)), ops::Mul(own, apart, both)));
  return Of(
      own,
      [&](const Output& p, const Output& n) {
        return ops::DivNoNan(own, p, ops::Relu(own, ops::Sub(own, n, 1.0f)));
      },
      products, count);
}

}  // namespace

Metric Covariance(const Scope& scope, const Output& labels, const Output& predictions,
                  std::optional<Input> weights) {
  return CovarianceIn(UniqueVariableScope(scope, "covariance"), labels, predictions, weights);
}

Metric PearsonCorrelation(const Scope& scope, const Output& labels, const Output& predictions,
                          std::optional<Input> weights) {
  const Scope own = UniqueVariableScope(scope, "pearson_r");
  const auto part = [&](const char* name, const Output& x, const Output& y) {
    return CovarianceIn(VariableScope(own, name), x, y, weights);
  };
  const Metric both = part("covariance", labels, predictions);
  const Metric of_labels = part("variance_labels", labels, labels);
  const Metric of_predictions = part("variance_predictions", predictions, predictions);
  if (!own.ok()) return {};
  const auto correlation = [&](const Output& c, const Output& x, const Output& y) {
    return ops::DivNoNan(own, c, ops::Mul(own, ops::Sqrt(own, x), ops::Sqrt(own, y)));
  };
  return {correlation(both.value, of_labels.value, of_predictions.value),
          correlation(both.update, of_labels.update, of_predictions.update)};
}

}  // namespace troupe::metrics

#include "api/layers/metrics.h"

#include <utility>

#include "api/internal/label_shapes.h"
#include "api/internal/metric_sums.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/variable_scope.h"
#include "devices/status_macros.h"

namespace troupe::metrics {

namespace {

using Weights = std::optional<Input>;

Output Positive(const Scope& scope, const Output& x) {
  if (!x.valid() || x.type() == ElementType::kBool) return x;
  return ops::Cast(scope, x, ElementType::kBool);
}

/// The weight of a batch's elements of which `labels` and `predictions` are as asked for.
Output CountIf(const Scope& scope, const Output& labels, bool label, const Output& predictions,
               bool prediction, const Output& weights) {
  const auto as = [&](const Output& x, bool yes) { return yes ? x : ops::LogicalNot(scope, x); };
  const Output both = ops::LogicalAnd(scope, as(labels, label), as(predictions, prediction));
  return ops::Mul(scope, Float(scope, both), weights);
}

Metric Count(const Scope& scope, const char* base, const Output& labels, bool label,
             const Output& predictions, bool prediction, const Weights& weights) {
  const Scope own = UniqueVariableScope(scope, base);
  const auto [y, p] = Matched(own, labels, predictions);
  if (!own.ok() || !y.valid()) return {};
  const Output batch = ReduceSum(own, CountIf(own, Positive(own, y), label, Positive(own, p),
                                              prediction, Spread(own, y, weights)));
  const Sum count = Keep(own, "count", {}, batch);
  return {count.value, count.after};
}

/// True positives by those and others, of which `label` is.
Metric Share(const Scope& scope, const char* base, const Output& labels, const Output& predictions,
             bool label, bool prediction, const Weights& weights) {
  const Scope own = UniqueVariableScope(scope, base);
  const LabeledPredictions both = Matched(own, labels, predictions);
  if (!own.ok() || !both.labels.valid()) return {};
  const Output y = Positive(own, both.labels), p = Positive(own, both.predictions);
  const Output w = Spread(own, y, weights);
  const Sum hits =
      Keep(own, "true_positives", {}, ReduceSum(own, CountIf(own, y, true, p, true, w)));
  const Sum misses = Keep(own, label ? "false_negatives" : "false_positives", {},
                          ReduceSum(own, CountIf(own, y, label, p, prediction, w)));
  return Of(
      own,
      [&](const Output& h, const Output& m) { return ops::DivNoNan(own, h, ops::Add(own, h, m)); },
      hits, misses);
}

const char* CountName(bool label, bool prediction) {
  if (prediction) return label ? "true_positives" : "false_positives";
  return label ? "false_negatives" : "true_negatives";
}

/// The weights of scores of the label that are above each of some thresholds, or that are not:
/// [thresholds].
Sum CountAt(const Scope& scope, const LabeledPredictions& of, const std::vector<float>& thresholds,
            const Weights& weights, bool label, bool prediction) {
  if (!scope.ok() || !of.labels.valid()) return {};
  const int64_t n = static_cast<int64_t>(thresholds.size());
  // Thresholds are rows, scores are columns.
  const Output limits =
      ops::Reshape(scope, Tensor::Vector<float>(thresholds), {static_cast<int32_t>(n), 1});
  const Output scores = ops::Reshape(scope, Float(scope, of.predictions), {1, -1});
  const Output p = ops::Greater(scope, scores, limits);
  const Output y = ops::Reshape(scope, Positive(scope, of.labels), {1, -1});
  const Output w = ops::Reshape(scope, Spread(scope, of.labels, weights), {1, -1});
  const Output batch = ops::Sum(scope, CountIf(scope, y, label, p, prediction, w), {1});
  return Keep(scope, CountName(label, prediction), {n}, batch);
}

Metric CountsAt(const Scope& scope, const Output& labels, const Output& scores,
                const std::vector<float>& thresholds, const Weights& weights, bool label,
                bool prediction) {
  const Scope own =
      UniqueVariableScope(scope, StrCat(CountName(label, prediction), "_at_thresholds"));
  const Sum sum =
      CountAt(own, Matched(own, labels, scores), thresholds, weights, label, prediction);
  return {sum.value, sum.after};
}

struct Confusion {
  Sum tp, fn, tn, fp;
};
Confusion Confuse(const Scope& scope, const Output& labels, const Output& scores,
                  const std::vector<float>& thresholds, const Weights& weights) {
  const LabeledPredictions of = Matched(scope, labels, scores);
  const auto count = [&](bool label, bool prediction) {
    return CountAt(scope, of, thresholds, weights, label, prediction);
  };
  return {count(true, true), count(true, false), count(false, false), count(false, true)};
}

/// a / (a + b), a little less than that to have no division by 0.
Output Part(const Scope& scope, const Output& a, const Output& b, float epsilon = 1e-7f) {
  return ops::RealDiv(scope, a, ops::Add(scope, ops::Add(scope, a, b), epsilon));
}

/// So many scores from below 0 to above 1.
std::vector<float> Thresholds(const Scope& scope, int64_t count) {
  std::vector<float> thresholds;
  if (count < 2 || count > (int64_t{1} << 24)) {
    scope.UpdateStatus(InvalidArgument("metrics: there cannot be ", count, " thresholds"));
    return thresholds;
  }
  thresholds.push_back(-1e-7f);
  for (int64_t i = 1; i + 1 < count; ++i) {
    thresholds.push_back(
        static_cast<float>(static_cast<double>(i) / static_cast<double>(count - 1)));
  }
  thresholds.push_back(1.0f + 1e-7f);
  return thresholds;
}

/// All but the last, all but the first.
Output Front(const Scope& scope, const Output& x) {
  return ops::StridedSlice(scope, x, {0}, {-1}, {1});
}
Output Back(const Scope& scope, const Output& x) {
  return ops::StridedSlice(scope, x, {1}, {0}, {1}, {.end_mask = 1});
}

Output AreaUnder(const Scope& s, const Output& x, const Output& y, Summation summation) {
  const Output widths = ops::Sub(s, Front(s, x), Back(s, x));
  const Output a = Front(s, y), b = Back(s, y);
  const Output heights = summation == Summation::kMinoring   ? ops::Minimum(s, a, b)
                         : summation == Summation::kMajoring ? ops::Maximum(s, a, b)
                                                             : ops::Mul(s, ops::Add(s, a, b), 0.5f);
  return ReduceSum(s, ops::Mul(s, widths, heights));
}

/// Between two thresholds true positives grow linearly with all positives.
Output AreaUnderPrecision(const Scope& s, const Output& tp, const Output& fn, const Output& fp) {
  const auto positive = [&](const Output& x) { return ops::Maximum(s, x, 0.0f); };
  const Output p = ops::Add(s, tp, fp);
  const Output dtp = ops::Sub(s, Front(s, tp), Back(s, tp));
  const Output dp = ops::Sub(s, Front(s, p), Back(s, p));
  const Output slope = ops::DivNoNan(s, dtp, positive(dp));
  const Output intercept = ops::Sub(s, Back(s, tp), ops::Mul(s, slope, Back(s, p)));
  const Output both =
      ops::LogicalAnd(s, ops::Greater(s, Front(s, p), 0.0f), ops::Greater(s, Back(s, p), 0.0f));
  const Output ratio =
      ops::SelectV2(s, both, ops::DivNoNan(s, Front(s, p), positive(Back(s, p))), 1.0f);
  const Output grown = ops::Add(s, dtp, ops::Mul(s, intercept, ops::Log(s, ratio)));
  const Output all = positive(ops::Add(s, Back(s, tp), Back(s, fn)));
  return ReduceSum(s, ops::DivNoNan(s, ops::Mul(s, slope, grown), all));
}

absl::Status CheckClasses(int64_t classes) {
  if (classes > 0 && classes <= (1 << 15)) return absl::OkStatus();
  return InvalidArgument("metrics: there cannot be ", classes, " classes");
}

}  // namespace

Metric Mean(const Scope& scope, const Output& values, Weights weights) {
  return MeanOf(UniqueVariableScope(scope, "mean"), values, weights);
}

Metric MeanTensor(const Scope& scope, const Output& values, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean");
  if (!own.ok() || !values.valid()) return {};
  const absl::StatusOr<Shape> shape = values.shape().ToShape();
  own.UpdateStatus(shape.status());
  if (!own.ok()) return {};
  const Output w = Spread(own, values, weights);
  const Sum total = Keep(own, "total_tensor", *shape, ops::Mul(own, Float(own, values), w));
  const Sum count = Keep(own, "count_tensor", *shape, w);
  return Ratio(own, total, count);
}

Metric Accuracy(const Scope& scope, const Output& labels, const Output& predictions,
                Weights weights) {
  const Scope own = UniqueVariableScope(scope, "accuracy");
  const auto [y, guesses] = Matched(own, labels, predictions);
  if (!own.ok() || !y.valid()) return {};
  const Output p = guesses.type() == y.type() ? guesses : ops::Cast(own, guesses, y.type());
  return MeanOf(own, Float(own, ops::Equal(own, y, p)), weights);
}

Metric PercentageBelow(const Scope& scope, const Output& values, double threshold,
                       Weights weights) {
  const Scope own = UniqueVariableScope(scope, "percentage_below_threshold");
  const Output x = Float(own, values);
  return MeanOf(own, Float(own, ops::Less(own, x, static_cast<float>(threshold))), weights);
}

Metric MeanSquaredError(const Scope& scope, const Output& labels, const Output& predictions,
                        Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean_squared_error");
  const auto [y, p] = Matched(own, labels, predictions);
  return MeanOf(own, ops::SquaredDifference(own, Float(own, p), Float(own, y)), weights);
}

Metric RootMeanSquaredError(const Scope& scope, const Output& labels, const Output& predictions,
                            Weights weights) {
  const Scope own = UniqueVariableScope(scope, "root_mean_squared_error");
  const auto [y, p] = Matched(own, labels, predictions);
  const Metric squares =
      MeanOf(own, ops::SquaredDifference(own, Float(own, p), Float(own, y)), weights);
  if (!own.ok()) return {};
  return {ops::Sqrt(own, squares.value), ops::Sqrt(own, squares.update)};
}

Metric MeanAbsoluteError(const Scope& scope, const Output& labels, const Output& predictions,
                         Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean_absolute_error");
  const auto [y, p] = Matched(own, labels, predictions);
  return MeanOf(own, ops::Abs(own, ops::Sub(own, Float(own, p), Float(own, y))), weights);
}

Metric MeanCosineDistance(const Scope& scope, const Output& labels, const Output& predictions,
                          int axis, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean_cosine_distance");
  const auto [y, p] = Matched(own, labels, predictions);
  const Output products = ReduceSum(own, ops::Mul(own, Float(own, p), Float(own, y)),
                                    {.axes = {{axis}}, .keep_dims = true});
  const Metric mean = MeanOf(own, products, weights);
  if (!own.ok()) return {};
  return {ops::Sub(own, 1.0f, mean.value), ops::Sub(own, 1.0f, mean.update)};
}

Metric MeanRelativeError(const Scope& scope, const Output& labels, const Output& predictions,
                         const Output& normalizer, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean_relative_error");
  const auto [labels_or_more, predictions_or_more] = Matched(own, labels, predictions);
  const auto [by, p] = Matched(own, normalizer, predictions_or_more);
  const Output y = Squeezed(own, labels_or_more, p).labels;
  const Output error = ops::Abs(own, ops::Sub(own, Float(own, y), Float(own, p)));
  return MeanOf(own, ops::DivNoNan(own, error, Float(own, by)), weights);
}

Metric TruePositives(const Scope& scope, const Output& labels, const Output& predictions,
                     Weights weights) {
  return Count(scope, "true_positives", labels, true, predictions, true, weights);
}
Metric TrueNegatives(const Scope& scope, const Output& labels, const Output& predictions,
                     Weights weights) {
  return Count(scope, "true_negatives", labels, false, predictions, false, weights);
}
Metric FalsePositives(const Scope& scope, const Output& labels, const Output& predictions,
                      Weights weights) {
  return Count(scope, "false_positives", labels, false, predictions, true, weights);
}
Metric FalseNegatives(const Scope& scope, const Output& labels, const Output& predictions,
                      Weights weights) {
  return Count(scope, "false_negatives", labels, true, predictions, false, weights);
}
Metric Precision(const Scope& scope, const Output& labels, const Output& predictions,
                 Weights weights) {
  return Share(scope, "precision", labels, predictions, false, true, weights);
}
Metric Recall(const Scope& scope, const Output& labels, const Output& predictions,
              Weights weights) {
  return Share(scope, "recall", labels, predictions, true, false, weights);
}

Metric TruePositivesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                 const std::vector<float>& thresholds, Weights weights) {
  return CountsAt(scope, labels, scores, thresholds, weights, true, true);
}
Metric TrueNegativesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                 const std::vector<float>& thresholds, Weights weights) {
  return CountsAt(scope, labels, scores, thresholds, weights, false, false);
}
Metric FalsePositivesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                  const std::vector<float>& thresholds, Weights weights) {
  return CountsAt(scope, labels, scores, thresholds, weights, false, true);
}
Metric FalseNegativesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                  const std::vector<float>& thresholds, Weights weights) {
  return CountsAt(scope, labels, scores, thresholds, weights, true, false);
}

Metric PrecisionAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                             const std::vector<float>& thresholds, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "precision_at_thresholds");
  const Confusion c = Confuse(own, labels, scores, thresholds, weights);
  return Of(
      own, [&](const Output& tp, const Output& fp) { return Part(own, tp, fp); }, c.tp, c.fp);
}

Metric RecallAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                          const std::vector<float>& thresholds, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "recall_at_thresholds");
  const Confusion c = Confuse(own, labels, scores, thresholds, weights);
  return Of(
      own, [&](const Output& tp, const Output& fn) { return Part(own, tp, fn); }, c.tp, c.fn);
}

Metric Auc(const Scope& scope, const Output& labels, const Output& scores, Curve curve,
           int64_t thresholds, Weights weights, Summation summation) {
  const Scope own = UniqueVariableScope(scope, "auc");
  const Confusion c = Confuse(own, labels, scores, Thresholds(own, thresholds), weights);
  return Of(
      own,
      [&](const Output& tp, const Output& fn, const Output& tn, const Output& fp) {
        const bool is_roc = curve == Curve::kRoc;
        if (!is_roc && summation == Summation::kCarefulInterpolation) {
          return AreaUnderPrecision(own, tp, fn, fp);
        }
        constexpr float kEpsilon = 1e-6f;
        const Output hits = ops::Add(own, tp, kEpsilon);
        const Output recall = ops::RealDiv(own, hits, ops::Add(own, hits, fn));
        if (is_roc) return AreaUnder(own, Part(own, fp, tn, kEpsilon), recall, summation);
        const Output precision = ops::RealDiv(own, hits, ops::Add(own, hits, fp));
        return AreaUnder(own, recall, precision, summation);
      },
      c.tp, c.fn, c.tn, c.fp);
}

Metric SensitivityAtSpecificity(const Scope& scope, const Output& labels, const Output& scores,
                                double specificity, int64_t thresholds, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "sensitivity_at_specificity");
  const Confusion c = Confuse(own, labels, scores, Thresholds(own, thresholds), weights);
  return Of(
      own,
      [&](const Output& tp, const Output& fn, const Output& tn, const Output& fp) {
        const Output off =
            ops::Abs(own, ops::Sub(own, Part(own, tn, fp), static_cast<float>(specificity)));
        return ops::GatherV2(own, Part(own, tp, fn), ops::ArgMin(own, off, 0), 0);
      },
      c.tp, c.fn, c.tn, c.fp);
}

Metric SpecificityAtSensitivity(const Scope& scope, const Output& labels, const Output& scores,
                                double sensitivity, int64_t thresholds, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "specificity_at_sensitivity");
  const Confusion c = Confuse(own, labels, scores, Thresholds(own, thresholds), weights);
  return Of(
      own,
      [&](const Output& tp, const Output& fn, const Output& tn, const Output& fp) {
        const Output off =
            ops::Abs(own, ops::Sub(own, Part(own, tp, fn), static_cast<float>(sensitivity)));
        // The last one of the nearest.
        const Output nearest = ops::Equal(own, off, ops::Min(own, off, 0));
        const Output number = ops::Cumsum(own, ops::Cast(own, nearest, ElementType::kInt64), 0);
        return ops::GatherV2(own, Part(own, tn, fp), ops::ArgMax(own, number, 0), 0);
      },
      c.tp, c.fn, c.tn, c.fp);
}

Output ConfusionMatrix(const Scope& scope, const Output& labels, const Output& predictions,
                       int64_t classes, Weights weights) {
  const Scope own = scope.NewSubScope("confusion_matrix");
  own.UpdateStatus(CheckClasses(classes));
  const auto [y, p] = Matched(own, labels, predictions);
  if (!own.ok() || !y.valid()) return Output();
  const auto column = [&](const Output& x) {
    return ops::Reshape(own, ops::Cast(own, x, ElementType::kInt64), {-1});
  };
  const Output places = ops::Pack(own, {column(y), column(p)}, {.axis = 1});
  const Output w = ops::Reshape(own, Spread(own, y, weights), {-1});
  return ops::ScatterNd(own, places, ops::Cast(own, w, ElementType::kDouble), {classes, classes});
}

Metric MeanIou(const Scope& scope, const Output& labels, const Output& predictions, int64_t classes,
               Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean_iou");
  const Output batch = ConfusionMatrix(own, labels, predictions, classes, weights);
  const Sum matrix = Keep(own, "total_confusion_matrix", {classes, classes}, batch);
  if (!own.ok() || !matrix.value.valid()) return {};
  const Output m = Float(own, matrix.value);
  const Output diagonal = ops::MatrixDiagPart(own, m);
  const Output either =
      ops::Sub(own, ops::Add(own, ops::Sum(own, m, {0}), ops::Sum(own, m, {1})), diagonal);
  const Output there = Float(own, ops::NotEqual(own, either, 0.0f));
  const Output sum = ReduceSum(own, ops::DivNoNan(own, diagonal, either));
  return {ops::DivNoNan(own, sum, ReduceSum(own, there)), matrix.after};
}

Metric MeanPerClassAccuracy(const Scope& scope, const Output& labels, const Output& predictions,
                            int64_t classes, Weights weights) {
  const Scope own = UniqueVariableScope(scope, "mean_accuracy");
  own.UpdateStatus(CheckClasses(classes));
  if (!own.ok() || !labels.valid() || !predictions.valid()) return {};
  const Output guesses = ops::Reshape(own, predictions, {-1});
  const Output y = CheckedLabels(own, ops::Reshape(own, labels, {-1}), guesses);
  const Output w = ops::Reshape(own, Spread(own, labels, weights), {-1});
  const Output p = ops::Cast(own, guesses, labels.type());
  const Output hits = ops::Mul(own, Float(own, ops::Equal(own, y, p)), w);
  const Output places = ops::ExpandDims(own, ops::Cast(own, y, ElementType::kInt64), 1);
  const auto keep = [&](const char* name, const Output& of) {
    return Keep(own, name, {classes}, ops::ScatterNd(own, places, of, {classes}));
  };
  const Sum total = keep("total", hits), count = keep("count", w);
  const Metric each = Ratio(own, total, count);
  if (!own.ok()) return {};
  return {ReduceMean(own, each.value), each.update};
}

}  // namespace troupe::metrics

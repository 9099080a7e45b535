/// Metrics over many batches, as TensorFlow 1.x's `tf.metrics` computes them: each keeps its sums
/// in local variables, which `LocalVariablesInitializer` sets to zero and the collection
/// "metric_variables" has. The k best, and covariance: `metrics_at_k.h`, `correlation.h`.
///
///     metrics::Metric accuracy = metrics::Accuracy(s, labels, predictions);
///     Node* reset = LocalVariablesInitializer(s);
///     ... for each batch: session->Run(feeds, {accuracy.update});
///     session->Run({}, {accuracy.value});
#ifndef TROUPE_API_LAYERS_METRICS_H_
#define TROUPE_API_LAYERS_METRICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::metrics {

/// A value that refers to nodes of a graph.
struct Metric {
  Output value;   ///< Of all batches so far; 0 without any.
  Output update;  ///< Takes a batch in; the value with it.
};

// Labels and predictions are of one shape; those of two classes are bool, or numbers of which 0 is
// the negative class. `weights`: a scalar, or of the values' rank with sizes that are 1 or theirs;
// absent: 1. One of labels and predictions may have a last axis of size 1 more than the other, and
// weights one more or less than the values. InvalidArgument for other shapes, in the scope or,
// where sizes are not known, in a step. Results are floats.
//
// Variables are called as the variable scope says; its getters, regularizers, reuse and types are
// not for them.

/// The weighted mean of `values`, a scalar; MeanTensor: for each element, over batches of one
/// known shape.
Metric Mean(const Scope& scope, const Output& values, std::optional<Input> weights = std::nullopt);
Metric MeanTensor(const Scope& scope, const Output& values,
                  std::optional<Input> weights = std::nullopt);
/// How often both are equal.
Metric Accuracy(const Scope& scope, const Output& labels, const Output& predictions,
                std::optional<Input> weights = std::nullopt);
/// How much of `values` is below `threshold`.
Metric PercentageBelow(const Scope& scope, const Output& values, double threshold,
                       std::optional<Input> weights = std::nullopt);
Metric MeanSquaredError(const Scope& scope, const Output& labels, const Output& predictions,
                        std::optional<Input> weights = std::nullopt);
Metric RootMeanSquaredError(const Scope& scope, const Output& labels, const Output& predictions,
                            std::optional<Input> weights = std::nullopt);
Metric MeanAbsoluteError(const Scope& scope, const Output& labels, const Output& predictions,
                         std::optional<Input> weights = std::nullopt);
/// 1 minus the mean of the products of labels and predictions along `axis`, both of length 1 along
/// it; weights have size 1 there. 1 without any.
Metric MeanCosineDistance(const Scope& scope, const Output& labels, const Output& predictions,
                          int axis, std::optional<Input> weights = std::nullopt);
/// |p - y| / normalizer, 0 where that is 0.
Metric MeanRelativeError(const Scope& scope, const Output& labels, const Output& predictions,
                         const Output& normalizer, std::optional<Input> weights = std::nullopt);

/// Sums of weights by label and prediction.
Metric TruePositives(const Scope& scope, const Output& labels, const Output& predictions,
                     std::optional<Input> weights = std::nullopt);
Metric TrueNegatives(const Scope& scope, const Output& labels, const Output& predictions,
                     std::optional<Input> weights = std::nullopt);
Metric FalsePositives(const Scope& scope, const Output& labels, const Output& predictions,
                      std::optional<Input> weights = std::nullopt);
Metric FalseNegatives(const Scope& scope, const Output& labels, const Output& predictions,
                      std::optional<Input> weights = std::nullopt);
/// True positives by all that are predicted to be; by all that are.
Metric Precision(const Scope& scope, const Output& labels, const Output& predictions,
                 std::optional<Input> weights = std::nullopt);
Metric Recall(const Scope& scope, const Output& labels, const Output& predictions,
              std::optional<Input> weights = std::nullopt);

// Of scores in [0, 1], positive above a threshold: [thresholds].

Metric TruePositivesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                 const std::vector<float>& thresholds,
                                 std::optional<Input> weights = std::nullopt);
Metric TrueNegativesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                 const std::vector<float>& thresholds,
                                 std::optional<Input> weights = std::nullopt);
Metric FalsePositivesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                  const std::vector<float>& thresholds,
                                  std::optional<Input> weights = std::nullopt);
Metric FalseNegativesAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                                  const std::vector<float>& thresholds,
                                  std::optional<Input> weights = std::nullopt);
Metric PrecisionAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                             const std::vector<float>& thresholds,
                             std::optional<Input> weights = std::nullopt);
Metric RecallAtThresholds(const Scope& scope, const Output& labels, const Output& scores,
                          const std::vector<float>& thresholds,
                          std::optional<Input> weights = std::nullopt);

enum class Curve { kRoc, kPrecisionRecall };
/// How high a curve is taken to be between two points.
enum class Summation {
  kTrapezoidal,  ///< A line. Too high for precision and recall.
  /// A line; for precision and recall the interpolation of Davis and Goadrich (2006).
  kCarefulInterpolation,
  kMinoring,  ///< As the lower one.
  kMajoring,  ///< As the higher one.
};
/// The area under a curve, from its values at `thresholds` scores. At least 2 thresholds.
Metric Auc(const Scope& scope, const Output& labels, const Output& scores,
           Curve curve = Curve::kRoc, int64_t thresholds = 200,
           std::optional<Input> weights = std::nullopt,
           Summation summation = Summation::kTrapezoidal);
/// Recall where the specificity is nearest to the one given; the reverse.
Metric SensitivityAtSpecificity(const Scope& scope, const Output& labels, const Output& scores,
                                double specificity, int64_t thresholds = 200,
                                std::optional<Input> weights = std::nullopt);
Metric SpecificityAtSensitivity(const Scope& scope, const Output& labels, const Output& scores,
                                double sensitivity, int64_t thresholds = 200,
                                std::optional<Input> weights = std::nullopt);

// Of `classes` classes; labels and predictions are int32 or int64, of any shape.

/// The weights by label (row) and prediction (column), of one batch: double [classes, classes].
Output ConfusionMatrix(const Scope& scope, const Output& labels, const Output& predictions,
                       int64_t classes, std::optional<Input> weights = std::nullopt);
/// The mean over classes that occur of intersection by union. `update` is the confusion matrix.
Metric MeanIou(const Scope& scope, const Output& labels, const Output& predictions, int64_t classes,
               std::optional<Input> weights = std::nullopt);
/// The mean over classes of their accuracies. `update` is those: [classes].
Metric MeanPerClassAccuracy(const Scope& scope, const Output& labels, const Output& predictions,
                            int64_t classes, std::optional<Input> weights = std::nullopt);

}  // namespace troupe::metrics
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_METRICS_H_

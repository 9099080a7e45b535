/// Metrics of the k best classes, as TensorFlow 1.x's `tf.metrics.recall_at_k` and its kin.
///
///     metrics::Metric recall = metrics::RecallAtK(s, labels, scores, 5);
///     metrics::Metric of_cats = metrics::PrecisionAtK(s, labels, scores, 5, {.class_id = 3});
#ifndef TROUPE_API_LAYERS_METRICS_AT_K_H_
#define TROUPE_API_LAYERS_METRICS_AT_K_H_

#include <cstdint>
#include <optional>

#include "api/layers/metrics.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::metrics {

/// The classes that each example has, a set: repeated ones count once. A value.
///
/// Dense: int64 [examples..., labels], or [examples...] of one label each. Sparse: int64 indices
/// [n, rank], values [n] and the shape [rank] of such a tensor [examples..., labels], in row-major
/// order. Classes that do not exist are never found.
class ClassLabels {
 public:
  ClassLabels(const Output& dense) : values_(dense) {}  // NOLINT: conversions are the point
  ClassLabels(const Output& indices, const Output& values, const Output& shape)
      : indices_(indices), values_(values), shape_(shape) {}

  bool is_sparse() const { return indices_.valid(); }
  const Output& indices() const { return indices_; }
  const Output& values() const { return values_; }  ///< The labels, if they are dense.
  const Output& shape() const { return shape_; }

 private:
  Output indices_, values_, shape_;
};

struct AtKOptions {
  /// Only this class counts: examples that have it, or that it is predicted for. Absent: all.
  std::optional<int64_t> class_id = std::nullopt;
  /// Of examples, to be broadcast to [examples...]; absent: 1.
  std::optional<Input> weights = std::nullopt;
};

// `scores` are floating [examples..., classes], `best` int32 or int64 [examples..., k] classes;
// their rank is known and at least 2. Results are floats, 0 without any. InvalidArgument, in the
// scope, for k below 1, or for labels of a rank that does not fit.

/// Which part of the labels is among the k best: sums over all examples.
Metric RecallAtK(const Scope& scope, const ClassLabels& labels, const Output& scores, int64_t k,
                 const AtKOptions& options = {});
Metric RecallAtTopK(const Scope& scope, const ClassLabels& labels, const Output& best,
                    const AtKOptions& options = {});
/// Which part of the k best is among the labels.
Metric PrecisionAtK(const Scope& scope, const ClassLabels& labels, const Output& scores, int64_t k,
                    const AtKOptions& options = {});
Metric PrecisionAtTopK(const Scope& scope, const ClassLabels& labels, const Output& best,
                       const AtKOptions& options = {});
/// The mean over examples of their average precision: the sum of the precisions of the 1, 2, ... k
/// best at those places that a label has, by the number of labels or k, the smaller one; 0 for an
/// example without labels.
Metric AveragePrecisionAtK(const Scope& scope, const ClassLabels& labels, const Output& scores,
                           int64_t k, std::optional<Input> weights = std::nullopt);

}  // namespace troupe::metrics
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_METRICS_AT_K_H_

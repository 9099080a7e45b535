/// Metrics of how labels and predictions vary together, as TensorFlow 1.x's `tf.contrib.metrics`.
#ifndef TROUPE_API_LAYERS_CORRELATION_H_
#define TROUPE_API_LAYERS_CORRELATION_H_

#include <optional>

#include "api/layers/metrics.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::metrics {

/// The unbiased covariance (by the sum of the weights - 1) of labels and predictions, of one shape,
/// over all elements of all batches: a scalar float, 0 as long as the weights add up to no more
/// than 1. Means and products move with each batch, so that nothing large is subtracted. (Chan et
/// al. 1983.) `weights`: broadcast to the labels; an element of weight 2 counts as two.
Metric Covariance(const Scope& scope, const Output& labels, const Output& predictions,
                  std::optional<Input> weights = std::nullopt);

/// The covariance by both standard deviations, in [-1, 1]; 0 if one of them is 0.
Metric PearsonCorrelation(const Scope& scope, const Output& labels, const Output& predictions,
                          std::optional<Input> weights = std::nullopt);

}  // namespace troupe::metrics
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_CORRELATION_H_

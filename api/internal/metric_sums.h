/// What metrics are made of: sums over batches. For `api/layers`.
#ifndef TROUPE_API_INTERNAL_METRIC_SUMS_H_
#define TROUPE_API_INTERNAL_METRIC_SUMS_H_

#include <optional>

#include "api/layers/metrics.h"
#include "api/scope.h"
#include "api/training/variables.h"

namespace troupe::metrics {

Output Float(const Scope& scope, const Output& x);

/// A sum over batches, and that sum after a batch has been added.
struct Sum {
  Output value, after;
};

/// A local variable of zeros that is also a metric's, called `name` under the variable scope. What
/// the variable scope says of its variables (reuse, getters, regularizers, ...) is not for this
/// one.
ModelVariable MetricVariable(const Scope& scope, const char* name, const Shape& shape,
                             ElementType type);
/// The sum, in a variable called `name`, of what `batch` is for each batch.
Sum Keep(const Scope& scope, const char* name, const Shape& shape, const Output& batch);

/// f(value...), f(after...).
template <typename F, typename... Sums>
Metric Of(const Scope& scope, F f, const Sums&... sums) {
  if (!scope.ok()) return {};
  return {f(sums.value...), f(sums.after...)};
}
/// a / b, 0 where b is 0.
Metric Ratio(const Scope& scope, const Sum& a, const Sum& b);

/// Weights as floats, broadcast to the shape of `values`; such with one axis of size 1 more or less
/// at the end, too. InvalidArgument, in the scope or in a step, for weights that do not fit.
Output Spread(const Scope& scope, const Output& values, const std::optional<Input>& weights);
/// The weighted mean, in variables "total" and "count".
Metric MeanOf(const Scope& scope, const Output& values, const std::optional<Input>& weights);

}  // namespace troupe::metrics

#endif  // TROUPE_API_INTERNAL_METRIC_SUMS_H_

/// Learning rates that change as training goes on: formulas of the step's number, to be given to an
/// optimizer in place of a number.
///
///     const ModelVariable step = GlobalStep(s);
///     AdamOptimizer optimizer(ExponentialDecay(s, 0.001f, step.value(), 1000, 0.9f));
///     optimizer.Minimize(s, loss, step);
///
/// `step` is a scalar of any number type; `learning_rate` a scalar of a floating type, which is
/// also the result's. Errors go to the scope. The formulas are TensorFlow 1.x's (`tf.train`).
#ifndef TROUPE_API_TRAINING_LEARNING_RATE_H_
#define TROUPE_API_TRAINING_LEARNING_RATE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// learning_rate * decay_rate ^ (step / decay_steps); in a staircase the exponent is rounded down.
Output ExponentialDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                        const Input& decay_steps, const Input& decay_rate, bool staircase = false);
/// learning_rate * exp(-decay_rate * step / decay_steps).
Output NaturalExpDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                       const Input& decay_steps, const Input& decay_rate, bool staircase = false);
/// learning_rate / (1 + decay_rate * step / decay_steps).
Output InverseTimeDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                        const Input& decay_steps, const Input& decay_rate, bool staircase = false);
/// (learning_rate - end) * (1 - step / decay_steps) ^ power + end, and `end` from decay_steps on.
/// With `cycle` decay_steps grows to its next multiple instead whenever it has been reached.
Output PolynomialDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                       const Input& decay_steps, const Input& end_learning_rate = 0.0001f,
                       const Input& power = 1.0f, bool cycle = false);
/// values[0] up to and with boundaries[0], values[1] up to and with boundaries[1], ...; the last
/// value after that. A float. `boundaries` rise; there is one more value.
Output PiecewiseConstant(const Scope& scope, const Input& step, absl::Span<const double> boundaries,
                         absl::Span<const float> values);
/// learning_rate * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha).
/// (Loshchilov and Hutter 2017.)
Output CosineDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                   const Input& decay_steps, const Input& alpha = 0.0f);
/// Cosine decay that starts again after first_decay_steps, then after t_mul times as many and so
/// on; each time from m_mul times the rate. t_mul must be 1 or more, m_mul positive.
Output CosineDecayRestarts(const Scope& scope, const Input& learning_rate, const Input& step,
                           const Input& first_decay_steps, double t_mul = 2.0, double m_mul = 1.0,
                           const Input& alpha = 0.0f);
/// Options of the linear cosine forms.
struct LinearCosineOptions {
  double num_periods = 0.5;
  double alpha = 0.0;
  double beta = 0.001;
};
/// learning_rate * ((alpha + linear) * cosine + beta), where linear falls from 1 to 0 over
/// decay_steps and cosine is (1 + cos(2 pi * num_periods * step / decay_steps)) / 2.
/// (Bello et al. 2017.)
Output LinearCosineDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                         const Input& decay_steps, const LinearCosineOptions& options = {});
/// The same with normal noise of variance initial_variance / (1 + step) ^ variance_decay added to
/// the linear part.
Output NoisyLinearCosineDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                              const Input& decay_steps, double initial_variance = 1.0,
                              double variance_decay = 0.55, const LinearCosineOptions& options = {},
                              std::optional<int64_t> seed = std::nullopt);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_LEARNING_RATE_H_

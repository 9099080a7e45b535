#include "api/training/learning_rate.h"

#include <numbers>

#include "api/ops.h"
#include "api/training/initializers.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// The tensors of a schedule, all in the learning rate's type.
class Schedule {
 public:
  Schedule(const Scope& scope, std::string_view name, const Input& learning_rate)
      : scope_(scope.NewSubScope(name)) {
    rate_ = learning_rate.ToOutput(scope_);
    if (!rate_.valid()) return;
    type_ = rate_.type();
    if (type_ != ElementType::kFloat && type_ != ElementType::kDouble &&
        type_ != ElementType::kHalf && type_ != ElementType::kBfloat16) {
      scope_.UpdateStatus(InvalidArgument(name, ": the learning rate is a tensor of type ",
                                          ElementTypeName(type_), ", not of a floating type"));
    }
  }

  const Scope& scope() const { return scope_; }
  bool ok() const { return scope_.ok() && rate_.valid(); }
  Output rate() const { return rate_; }
  Output of(const Input& value) const {
    const Output tensor = value.ToOutput(scope_);
    return !tensor.valid() || tensor.type() == type_ ? tensor : ops::Cast(scope_, tensor, type_);
  }
  /// step / decay_steps.
  Output Part(const Input& step, const Input& decay_steps, bool staircase = false) const {
    const Output part = ops::RealDiv(scope_, of(step), of(decay_steps));
    return staircase ? ops::Floor(scope_, part) : part;
  }
  /// min(step, decay_steps) / decay_steps.
  Output PartUpToOne(const Input& step, const Input& decay_steps) const {
    return Part(ops::Minimum(scope_, of(step), of(decay_steps)), decay_steps);
  }
  /// (1 + cos(pi * x)) / 2.
  Output HalfCosine(const Output& x) const {
    const Output cosine = ops::Cos(scope_, ops::Mul(scope_, x, of(std::numbers::pi)));
    return ops::Mul(scope_, ops::Add(scope_, cosine, of(1.0)), of(0.5));
  }
  /// rate * ((1 - alpha) * x + alpha).
  Output WithFloor(const Output& x, const Input& alpha) const {
    const Output floor = of(alpha);
    const Output range = ops::Sub(scope_, of(1.0), floor);
    return ops::Mul(scope_, rate_, ops::Add(scope_, ops::Mul(scope_, range, x), floor));
  }
  /// rate * ((alpha + linear) * cosine + beta).
  Output LinearCosine(const Output& linear, const Output& done,
                      const LinearCosineOptions& options) const {
    const Output cosine = HalfCosine(ops::Mul(scope_, done, of(2.0 * options.num_periods)));
    const Output product = ops::Mul(scope_, ops::Add(scope_, of(options.alpha), linear), cosine);
    return ops::Mul(scope_, rate_, ops::Add(scope_, product, of(options.beta)));
  }

 private:
  Scope scope_;
  Output rate_;
  ElementType type_ = ElementType::kInvalid;
};

}  // namespace

Output ExponentialDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                        const Input& decay_steps, const Input& decay_rate, bool staircase) {
  const Schedule s(scope, "ExponentialDecay", learning_rate);
  if (!s.ok()) return Output();
  return ops::Mul(s.scope(), s.rate(),
                  ops::Pow(s.scope(), s.of(decay_rate), s.Part(step, decay_steps, staircase)));
}

Output NaturalExpDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                       const Input& decay_steps, const Input& decay_rate, bool staircase) {
  const Schedule s(scope, "NaturalExpDecay", learning_rate);
  if (!s.ok()) return Output();
  const Output part = s.Part(step, decay_steps, staircase);
  return ops::Mul(
      s.scope(), s.rate(),
      ops::Exp(s.scope(), ops::Neg(s.scope(), ops::Mul(s.scope(), s.of(decay_rate), part))));
}

Output InverseTimeDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                        const Input& decay_steps, const Input& decay_rate, bool staircase) {
  const Schedule s(scope, "InverseTimeDecay", learning_rate);
  if (!s.ok()) return Output();
  const Output part = s.Part(step, decay_steps, staircase);
  return ops::RealDiv(s.scope(), s.rate(),
                      ops::Add(s.scope(), s.of(1.0), ops::Mul(s.scope(), s.of(decay_rate), part)));
}

Output PolynomialDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                       const Input& decay_steps, const Input& end_learning_rate, const Input& power,
                       bool cycle) {
  const Schedule s(scope, "PolynomialDecay", learning_rate);
  if (!s.ok()) return Output();
  Output part;
  if (cycle) {
    // The first cycle is there from the start, where the quotient is 0.
    const Output cycles =
        ops::Maximum(s.scope(), ops::Ceil(s.scope(), s.Part(step, decay_steps)), s.of(1.0));
    part = s.Part(step, ops::Mul(s.scope(), s.of(decay_steps), cycles));
  } else {
    part = s.PartUpToOne(step, decay_steps);
  }
  const Output end = s.of(end_learning_rate);
  const Output left = ops::Pow(s.scope(), ops::Sub(s.scope(), s.of(1.0), part), s.of(power));
  return ops::Add(s.scope(), ops::Mul(s.scope(), ops::Sub(s.scope(), s.rate(), end), left), end);
}

Output PiecewiseConstant(const Scope& scope, const Input& step, absl::Span<const double> boundaries,
                         absl::Span<const float> values) {
  const Scope s = scope.NewSubScope("PiecewiseConstant");
  if (values.size() != boundaries.size() + 1) {
    s.UpdateStatus(InvalidArgument("PiecewiseConstant: ", boundaries.size(), " boundaries need ",
                                   boundaries.size() + 1, " values, not ", values.size()));
  }
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i - 1] < boundaries[i]) continue;
    s.UpdateStatus(InvalidArgument("PiecewiseConstant: the boundaries must rise, but ",
                                   boundaries[i - 1], " is followed by ", boundaries[i]));
  }
  if (!s.ok()) return Output();
  const Output at = ops::Cast(s, step, ElementType::kDouble);
  Output value = Const(s, values[0]);
  for (size_t i = 0; i < boundaries.size(); ++i) {
    value = ops::SelectV2(s, ops::Greater(s, at, boundaries[i]), values[i + 1], value);
  }
  return value;
}

Output CosineDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                   const Input& decay_steps, const Input& alpha) {
  const Schedule s(scope, "CosineDecay", learning_rate);
  if (!s.ok()) return Output();
  return s.WithFloor(s.HalfCosine(s.PartUpToOne(step, decay_steps)), alpha);
}

Output CosineDecayRestarts(const Scope& scope, const Input& learning_rate, const Input& step,
                           const Input& first_decay_steps, double t_mul, double m_mul,
                           const Input& alpha) {
  const Schedule s(scope, "CosineDecayRestarts", learning_rate);
  if (!(t_mul >= 1.0) || !(m_mul > 0.0)) {
    scope.UpdateStatus(InvalidArgument("CosineDecayRestarts: t_mul must be 1 or more and m_mul ",
                                       "positive, but they are ", t_mul, " and ", m_mul));
  }
  if (!s.ok()) return Output();
  const Scope& g = s.scope();
  const Output part = s.Part(step, first_decay_steps);
  // The period that the step is in: the first is 0. It begins at (t_mul^restart - 1) / (t_mul - 1).
  Output restart, done;
  if (t_mul == 1.0) {
    restart = ops::Floor(g, part);
    done = ops::Sub(g, part, restart);
  } else {
    const Output ratio = s.of(t_mul), grown = s.of(t_mul - 1.0);
    const Output powers = ops::Add(g, ops::Mul(g, part, grown), s.of(1.0));
    restart = ops::Floor(g, ops::RealDiv(g, ops::Log(g, powers), ops::Log(g, ratio)));
    const Output length = ops::Pow(g, ratio, restart);
    const Output begin = ops::RealDiv(g, ops::Sub(g, length, s.of(1.0)), grown);
    done = ops::RealDiv(g, ops::Sub(g, part, begin), length);
  }
  const Output height = ops::Pow(g, s.of(m_mul), restart);
  return s.WithFloor(ops::Mul(g, height, s.HalfCosine(done)), alpha);
}

Output LinearCosineDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                         const Input& decay_steps, const LinearCosineOptions& options) {
  const Schedule s(scope, "LinearCosineDecay", learning_rate);
  if (!s.ok()) return Output();
  const Output done = s.PartUpToOne(step, decay_steps);
  return s.LinearCosine(ops::Sub(s.scope(), s.of(1.0), done), done, options);
}

Output NoisyLinearCosineDecay(const Scope& scope, const Input& learning_rate, const Input& step,
                              const Input& decay_steps, double initial_variance,
                              double variance_decay, const LinearCosineOptions& options,
                              std::optional<int64_t> seed) {
  const Schedule s(scope, "NoisyLinearCosineDecay", learning_rate);
  if (!s.ok()) return Output();
  const Scope& g = s.scope();
  const Output done = s.PartUpToOne(step, decay_steps);
  const Output at = ops::Minimum(g, s.of(step), s.of(decay_steps));
  const Output variance = ops::RealDiv(
      g, s.of(initial_variance), ops::Pow(g, ops::Add(g, s.of(1.0), at), s.of(variance_decay)));
  const Output noise = ops::Mul(g, RandomNormalInitializer(0.0, 1.0, seed)(g, {}, s.rate().type()),
                                ops::Sqrt(g, variance));
  const Output linear = ops::Add(g, ops::Sub(g, s.of(1.0), done), noise);
  return s.LinearCosine(linear, done, options);
}

}  // namespace troupe

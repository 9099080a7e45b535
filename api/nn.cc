#include "api/nn.h"

#include <numeric>
#include <vector>

#include "api/ops.h"
#include "api/training/initializers.h"

namespace troupe {

namespace {

/// The axes that are asked for, or all of x's.
Output Axes(const Scope& scope, const Output& x, const ReduceOptions& options) {
  if (options.axes) return Const(scope, Tensor::Vector<int32_t>(*options.axes));
  if (!x.valid() || x.shape().unknown_rank()) {
    return ops::Range(scope, 0, ops::Rank(scope, x), 1);
  }
  std::vector<int32_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return Const(scope, Tensor::Vector<int32_t>(axes));
}

}  // namespace

Output Dropout(const Scope& scope, const Output& x, const Input& keep_probability,
               std::optional<int64_t> seed, const std::optional<Input>& noise_shape) {
  const Scope own = scope.NewSubScope("dropout");
  if (!own.ok() || !x.valid()) return Output();
  const OpSeed s = OpSeed::For(own, seed);
  const Output keep = keep_probability.ToOutput(own, x.type());
  const Input shape = noise_shape ? *noise_shape : Input(ops::Shape(own, x));
  const Output uniform =
      ops::RandomUniform(own, shape, x.type(), {.seed = s.seed, .seed2 = s.seed2});
  // 1 with probability `keep`, else 0.
  const Output mask = ops::Floor(own, ops::Add(own, uniform, keep));
  const Output dropped = ops::Mul(own, ops::RealDiv(own, x, keep), mask);
  return noise_shape ? ops::EnsureShape(own, dropped, x.shape()) : dropped;
}

Output ReduceMean(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::Mean(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}
Output ReduceSum(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::Sum(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}
Output ReduceProd(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::Prod(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}
Output ReduceMax(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::Max(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}
Output ReduceMin(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::Min(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}
Output ReduceAny(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::Any(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}
Output ReduceAll(const Scope& scope, const Output& x, const ReduceOptions& options) {
  return ops::All(scope, x, Axes(scope, x, options), {.keep_dims = options.keep_dims});
}

Output ReduceLogSumExp(const Scope& scope, const Output& x, const ReduceOptions& options) {
  const Scope own = scope.NewSubScope("reduce_logsumexp");
  const Output most = ReduceMax(own, x, {options.axes, /*keep_dims=*/true});
  if (!own.ok()) return Output();
  // Infinite ones have no difference to anything.
  const Output finite = ops::StopGradient(
      own, ops::SelectV2(own, ops::IsFinite(own, most), most, ops::ZerosLike(own, most)));
  const Output sum =
      ReduceSum(own, ops::Exp(own, ops::Sub(own, x, finite)), {options.axes, /*keep_dims=*/true});
  const Output kept = ops::Add(own, ops::Log(own, sum), finite);
  // Every axis that goes has size 1.
  return options.keep_dims || !own.ok() ? kept : ReduceSum(own, kept, options);
}

Output SigmoidCrossEntropyWithLogits(const Scope& scope, const Output& labels,
                                     const Output& logits) {
  if (!scope.ok() || !labels.valid() || !logits.valid()) return Output();
  // max(x, 0) - x y + log(1 + exp(-|x|)). At 0 the slopes of Relu and Abs would be 0; those of one
  // side, the same for both, add up to the right one.
  const Output zeros = ops::ZerosLike(scope, logits);
  const Output positive = ops::GreaterEqual(scope, logits, zeros);
  const Output above = ops::SelectV2(scope, positive, logits, zeros);
  const Output below = ops::SelectV2(scope, positive, ops::Neg(scope, logits), logits);
  return ops::Add(scope, ops::Sub(scope, above, ops::Mul(scope, logits, labels)),
                  ops::Log1p(scope, ops::Exp(scope, below)));
}

Output Accuracy(const Scope& scope, const Output& logits, const Output& labels) {
  const Scope own = scope.NewSubScope("accuracy");
  if (!own.ok() || !labels.valid()) return Output();
  const Output best = ops::ArgMax(own, logits, 1, {.output_type = labels.type()});
  return ReduceMean(own, ops::Cast(own, ops::Equal(own, best, labels), ElementType::kFloat));
}

}  // namespace troupe

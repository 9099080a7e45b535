#include "api/nn.h"

#include <numeric>
#include <vector>

#include "api/ops.h"
#include "api/training/initializers.h"

namespace troupe {

namespace {

/// All axes of x.
Output AllAxes(const Scope& scope, const Output& x) {
  if (!x.valid() || x.shape().unknown_rank()) {
    return ops::Range(scope, 0, ops::Rank(scope, x), 1);
  }
  std::vector<int32_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  return Const(scope, Tensor::Vector<int32_t>(axes));
}

}  // namespace

Output Dropout(const Scope& scope, const Output& x, const Input& keep_probability,
               std::optional<int64_t> seed) {
  const Scope own = scope.NewSubScope("dropout");
  if (!own.ok() || !x.valid()) return Output();
  const OpSeed s = OpSeed::For(own, seed);
  const Output keep = keep_probability.ToOutput(own);
  const Output uniform =
      ops::RandomUniform(own, ops::Shape(own, x), x.type(), {.seed = s.seed, .seed2 = s.seed2});
  // 1 with probability `keep`, else 0.
  const Output mask = ops::Floor(own, ops::Add(own, uniform, keep));
  return ops::Mul(own, ops::RealDiv(own, x, keep), mask);
}

Output ReduceMean(const Scope& scope, const Output& x) {
  return ops::Mean(scope, x, AllAxes(scope, x));
}

Output ReduceSum(const Scope& scope, const Output& x) {
  return ops::Sum(scope, x, AllAxes(scope, x));
}

Output Accuracy(const Scope& scope, const Output& logits, const Output& labels) {
  const Scope own = scope.NewSubScope("accuracy");
  if (!own.ok() || !labels.valid()) return Output();
  const Output best = ops::ArgMax(own, logits, 1, {.output_type = labels.type()});
  return ReduceMean(own, ops::Cast(own, ops::Equal(own, best, labels), ElementType::kFloat));
}

}  // namespace troupe

#include "api/training/clipping.h"

#include <limits>

#include "api/nn.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

Output InTypeOf(const Scope& scope, const Output& t, const Input& value) {
  const Output tensor = value.ToOutput(scope);
  if (!tensor.valid() || !t.valid() || tensor.type() == t.type()) return tensor;
  return ops::Cast(scope, tensor, t.type());
}

/// The gradient with other values.
Gradient With(Gradient gradient, const Output& values) {
  gradient.values = values;
  return gradient;
}

/// t * clip_norm / max(sqrt(squares), clip_norm).
Output ScaleByNorm(const Scope& s, const Output& t, const Output& squares, const Output& clip) {
  // The square root of zero has no finite gradient: it is kept out of both branches.
  const Output positive = ops::Greater(s, squares, ops::ZerosLike(s, squares));
  const Output safe = ops::SelectV2(s, positive, squares, ops::OnesLike(s, squares));
  const Output norm = ops::SelectV2(s, positive, ops::Sqrt(s, safe), squares);
  return ops::RealDiv(s, ops::Mul(s, t, clip), ops::Maximum(s, norm, clip));
}

}  // namespace

Gradient ClipByValue(const Scope& scope, const Gradient& t, const Input& low, const Input& high) {
  const Scope s = scope.NewSubScope("ClipByValue");
  if (!s.ok() || !t.valid()) return Gradient();
  const Output below = ops::Minimum(s, t.values, InTypeOf(s, t.values, high));
  return With(t, ops::Maximum(s, below, InTypeOf(s, t.values, low)));
}

Gradient ClipByNorm(const Scope& scope, const Gradient& t, const Input& clip_norm) {
  const Scope s = scope.NewSubScope("ClipByNorm");
  if (!s.ok() || !t.valid()) return Gradient();
  const Output squares = ReduceSum(s, ops::Square(s, t.values));
  return With(t, ScaleByNorm(s, t.values, squares, InTypeOf(s, t.values, clip_norm)));
}

Output ClipByNorm(const Scope& scope, const Output& t, const Input& clip_norm,
                  const std::vector<int32_t>& axes) {
  const Scope s = scope.NewSubScope("ClipByNorm");
  if (!s.ok() || !t.valid()) return Output();
  const Output squares =
      ops::Sum(s, ops::Square(s, t), Tensor::Vector<int32_t>(axes), {.keep_dims = true});
  return ScaleByNorm(s, t, squares, InTypeOf(s, t, clip_norm));
}

Gradient ClipByAverageNorm(const Scope& scope, const Gradient& t, const Input& clip_norm) {
  const Scope s = scope.NewSubScope("ClipByAverageNorm");
  if (!s.ok() || !t.valid()) return Gradient();
  const Output clip = InTypeOf(s, t.values, clip_norm);
  const Output count = InTypeOf(s, t.values, ops::Size(s, t.values));
  const Output inverse = ops::Rsqrt(s, ReduceSum(s, ops::Square(s, t.values)));
  const Output scale = ops::Minimum(s, ops::Mul(s, inverse, count), ops::Reciprocal(s, clip));
  return With(t, ops::Mul(s, ops::Mul(s, t.values, clip), scale));
}

Output GlobalNorm(const Scope& scope, const std::vector<Gradient>& gradients) {
  const Scope s = scope.NewSubScope("GlobalNorm");
  std::vector<Output> halves;
  for (const Gradient& gradient : gradients) {
    if (gradient.valid() && s.ok()) halves.push_back(ops::L2Loss(s, gradient.values));
  }
  if (!s.ok()) return Output();
  if (halves.empty()) {
    s.UpdateStatus(InvalidArgument("GlobalNorm: there is no gradient to take the norm of"));
    return Output();
  }
  const Output half = halves.size() == 1 ? halves[0] : ops::AddN(s, halves);
  return ops::Sqrt(s, ops::Mul(s, half, InTypeOf(s, half, 2.0)));
}

std::vector<Gradient> ClipByGlobalNorm(const Scope& scope, const std::vector<Gradient>& gradients,
                                       const Input& clip_norm, Output norm) {
  std::vector<Gradient> clipped(gradients.size());
  if (!norm.valid()) norm = GlobalNorm(scope, gradients);
  const Scope s = scope.NewSubScope("ClipByGlobalNorm");
  if (!s.ok() || !norm.valid()) return clipped;
  const Output clip = InTypeOf(s, norm, clip_norm);
  const Output finite =
      ops::Mul(s, clip, ops::Minimum(s, ops::Reciprocal(s, norm), ops::Reciprocal(s, clip)));
  const Output scale = ops::SelectV2(s, ops::IsFinite(s, norm), finite,
                                     InTypeOf(s, norm, std::numeric_limits<double>::quiet_NaN()));
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Gradient& g = gradients[i];
    if (g.valid()) clipped[i] = With(g, ops::Mul(s, g.values, InTypeOf(s, g.values, scale)));
  }
  return clipped;
}

std::vector<GradientAndVariable> ClipByGlobalNorm(const Scope& scope,
                                                  std::vector<GradientAndVariable> gradients,
                                                  const Input& clip_norm, Output norm) {
  std::vector<Gradient> values;
  for (const auto& [gradient, variable] : gradients) values.push_back(gradient);
  values = ClipByGlobalNorm(scope, values, clip_norm, norm);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i].first = values[i];
  return gradients;
}

}  // namespace troupe

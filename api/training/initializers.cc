#include "api/training/initializers.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

Output ScalarOf(const Scope& scope, ElementType type, double value) {
  const Output wide = Const(scope, value);
  return type == ElementType::kDouble ? wide : ops::Cast(scope, wide, type);
}

Output ShapeOf(const Scope& scope, const Shape& shape) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  return Const(scope, Tensor::Vector<int64_t>(dims));
}

Output Filled(const Scope& scope, const Shape& shape, ElementType type, double value) {
  return ops::Fill(scope, ShapeOf(scope, shape), ScalarOf(scope, type, value));
}

/// samples * factor + offset, leaving out what changes nothing.
template <typename Attrs, typename Sampler>
Initializer Sampled(Sampler sampler, double factor, double offset, std::optional<int64_t> seed) {
  return [=](const Scope& scope, const Shape& shape, const Shape&, ElementType type) {
    const OpSeed s = OpSeed::For(scope, seed);
    Output samples =
        sampler(scope, ShapeOf(scope, shape), type, Attrs{.seed = s.seed, .seed2 = s.seed2});
    if (factor != 1.0) samples = ops::Mul(scope, samples, ScalarOf(scope, type, factor));
    if (offset != 0.0) samples = ops::Add(scope, samples, ScalarOf(scope, type, offset));
    return samples;
  };
}

}  // namespace

OpSeed OpSeed::For(const Scope& scope, std::optional<int64_t> op_seed) {
  const auto [seed, seed2] = scope.graph()->OpSeeds(op_seed ? &*op_seed : nullptr);
  return {seed, seed2};
}

Initializer ConstantInitializer(double value) {
  return [value](const Scope& scope, const Shape& shape, const Shape&, ElementType type) {
    return Filled(scope, shape, type, value);
  };
}
Initializer ZerosInitializer() { return ConstantInitializer(0.0); }
Initializer OnesInitializer() { return ConstantInitializer(1.0); }

Initializer RandomUniformInitializer(double minimum, double maximum, std::optional<int64_t> seed) {
  return Sampled<ops::RandomUniformAttrs>(ops::RandomUniform, maximum - minimum, minimum, seed);
}

Initializer RandomNormalInitializer(double mean, double stddev, std::optional<int64_t> seed) {
  return Sampled<ops::RandomStandardNormalAttrs>(ops::RandomStandardNormal, stddev, mean, seed);
}

Initializer TruncatedNormalInitializer(double mean, double stddev, std::optional<int64_t> seed) {
  return Sampled<ops::TruncatedNormalAttrs>(ops::TruncatedNormal, stddev, mean, seed);
}

Initializer VarianceScalingInitializer(const VarianceScaling& options) {
  return [options](const Scope& scope, const Shape& shape, const Shape& whole, ElementType type) {
    if (!(options.scale > 0)) {
      scope.UpdateStatus(
          InvalidArgument("variance scaling: the scale must be positive, not ", options.scale));
      return Output();
    }
    double receptive = 1, inputs = 1, outputs = 1;
    const int rank = whole.rank();
    for (int i = 0; i + 2 < rank; ++i) receptive *= static_cast<double>(whole.dim(i));
    if (rank == 1) inputs = outputs = static_cast<double>(whole.dim(0));
    if (rank >= 2) {
      inputs = static_cast<double>(whole.dim(rank - 2)) * receptive;
      outputs = static_cast<double>(whole.dim(rank - 1)) * receptive;
    }
    double n = inputs;
    if (options.mode == VarianceScaling::kFanOut) n = outputs;
    if (options.mode == VarianceScaling::kFanAverage) n = (inputs + outputs) / 2;
    const double variance = options.scale / std::max(1.0, n);
    switch (options.distribution) {
      case VarianceScaling::kUniform: {
        const double limit = std::sqrt(3.0 * variance);
        return RandomUniformInitializer(-limit, limit, options.seed)(scope, shape, type);
      }
      case VarianceScaling::kUntruncatedNormal:
        return RandomNormalInitializer(0.0, std::sqrt(variance), options.seed)(scope, shape, type);
      case VarianceScaling::kTruncatedNormal:
        break;
    }
    // A standard normal cut off at two deviations has this standard deviation.
    constexpr double kTruncatedDeviation = 0.87962566103423978;
    return TruncatedNormalInitializer(0.0, std::sqrt(variance) / kTruncatedDeviation, options.seed)(
        scope, shape, type);
  };
}

Initializer GlorotUniformInitializer(std::optional<int64_t> seed) {
  return VarianceScalingInitializer({.scale = 1.0,
                                     .mode = VarianceScaling::kFanAverage,
                                     .distribution = VarianceScaling::kUniform,
                                     .seed = seed});
}

}  // namespace troupe

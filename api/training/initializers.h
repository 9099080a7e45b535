/// Initial values of variables.
#ifndef TROUPE_API_TRAINING_INITIALIZERS_H_
#define TROUPE_API_TRAINING_INITIALIZERS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Adds nodes that compute an initial value of the given shape and floating element type.
using Initializer = std::function<Output(const Scope& scope, const Shape& shape, ElementType type)>;

/// {seed, seed2} attributes of a random op: from the graph's seed and the op's own by TensorFlow's
/// rule; without either the numbers differ from session to session.
struct OpSeed {
  int64_t seed = 0;
  int64_t seed2 = 0;
  static OpSeed For(const Scope& scope, std::optional<int64_t> op_seed);
};

Initializer ZerosInitializer();
Initializer OnesInitializer();
Initializer ConstantInitializer(double value);
/// Uniform in [minimum, maximum).
Initializer RandomUniformInitializer(double minimum = -0.05, double maximum = 0.05,
                                     std::optional<int64_t> seed = std::nullopt);
Initializer RandomNormalInitializer(double mean = 0.0, double stddev = 0.05,
                                    std::optional<int64_t> seed = std::nullopt);
/// Normal; values more than two standard deviations from the mean are drawn again.
Initializer TruncatedNormalInitializer(double mean = 0.0, double stddev = 0.05,
                                       std::optional<int64_t> seed = std::nullopt);

/// Variance `scale / n`, where n is the number of inputs of a unit, of its outputs, or their mean.
/// Dimensions are read as [..., inputs, outputs], what is before them being the receptive field.
/// (Glorot and Bengio 2010: scale 1, kFanAverage; He et al. 2015: scale 2, kFanIn.)
struct VarianceScaling {
  enum Mode { kFanIn, kFanOut, kFanAverage };
  enum Distribution { kTruncatedNormal, kUntruncatedNormal, kUniform };
  double scale = 1.0;
  Mode mode = kFanIn;
  Distribution distribution = kTruncatedNormal;
  std::optional<int64_t> seed = std::nullopt;
};
Initializer VarianceScalingInitializer(const VarianceScaling& options = {});
Initializer GlorotUniformInitializer(std::optional<int64_t> seed = std::nullopt);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_INITIALIZERS_H_

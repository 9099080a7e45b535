/// Initial values of variables.
#ifndef TROUPE_API_TRAINING_INITIALIZERS_H_
#define TROUPE_API_TRAINING_INITIALIZERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Adds nodes that compute an initial value of the given shape and element type. Made of a
/// function, which says what the parts of a partitioned variable get. A value; null: none.
class Initializer {
 public:
  /// Of a whole variable. One in parts computes it once, and each part is a slice of it.
  using Function = std::function<Output(const Scope& scope, const Shape& shape, ElementType type)>;
  /// Of a part of `shape` of a variable of the shape `whole`, which are the same for a variable
  /// that is not in parts. Each part computes its own value: none is as large as the whole, and
  /// random parts draw their own numbers, as in TensorFlow 1.x. With a seed of its own, parts of
  /// one shape get the same ones.
  using PartFunction = std::function<Output(const Scope& scope, const Shape& shape,
                                            const Shape& whole, ElementType type)>;

  Initializer(std::nullptr_t = nullptr) {}  // NOLINT: conversions are the point
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Initializer> &&
           std::is_convertible_v<F, Function>) Initializer(F function)  // NOLINT
      : function_(std::move(function)) {}
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Initializer> &&
           !std::is_convertible_v<F, Function> && std::is_convertible_v<F, PartFunction>)
      Initializer(F function)  // NOLINT
      : part_function_(std::move(function)) {}

  Output operator()(const Scope& scope, const Shape& shape, ElementType type) const {
    return makes_parts() ? part_function_(scope, shape, shape, type)
                         : function_(scope, shape, type);
  }
  /// Whether parts compute their own values, by `Part`.
  bool makes_parts() const { return part_function_ != nullptr; }
  Output Part(const Scope& scope, const Shape& shape, const Shape& whole, ElementType type) const {
    return part_function_(scope, shape, whole, type);
  }
  explicit operator bool() const { return *this != nullptr; }
  friend bool operator==(const Initializer& initializer, std::nullptr_t) {
    return initializer.function_ == nullptr && initializer.part_function_ == nullptr;
  }

 private:
  Function function_;
  PartFunction part_function_;
};

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
// The defaults are those of `tf.initializers`, which are far wider than what layers begin with.
/// Uniform in [minimum, maximum).
Initializer RandomUniformInitializer(double minimum = 0.0, double maximum = 1.0,
                                     std::optional<int64_t> seed = std::nullopt);
Initializer RandomNormalInitializer(double mean = 0.0, double stddev = 1.0,
                                    std::optional<int64_t> seed = std::nullopt);
/// Normal; values more than two standard deviations from the mean are drawn again.
Initializer TruncatedNormalInitializer(double mean = 0.0, double stddev = 1.0,
                                       std::optional<int64_t> seed = std::nullopt);

/// Variance `scale / n`, where n is the number of inputs of a unit, of its outputs, or their mean.
/// Dimensions are read as [..., inputs, outputs], what is before them being the receptive field.
/// Parts of a variable are scaled by the numbers of the whole.
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

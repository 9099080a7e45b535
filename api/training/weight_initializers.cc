#include "api/training/weight_initializers.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

using Mode = VarianceScaling::Mode;
using Distribution = VarianceScaling::Distribution;

Initializer Scaled(double scale, Mode mode, Distribution distribution,
                   std::optional<int64_t> seed) {
  return VarianceScalingInitializer(
      {.scale = scale, .mode = mode, .distribution = distribution, .seed = seed});
}

Output Dims(const Scope& scope, absl::Span<const int64_t> dims) {
  return Const(scope, Tensor::Vector<int64_t>(std::vector<int64_t>(dims.begin(), dims.end())));
}

absl::Status CheckRank(const char* what, const Shape& shape, int least, int most) {
  if (shape.rank() >= least && shape.rank() <= most) return absl::OkStatus();
  return InvalidArgument(what, " initializer: the shape ", shape.ToString(), " has ", shape.rank(),
                         " axes, not ", least, least == most ? "" : StrCat(" to ", most));
}

/// A matrix of orthogonal columns, `rows` >= `columns`. Their signs are those that make the
/// distribution uniform. (Mezzadri 2007.)
Output RandomOrthogonal(const Scope& scope, int64_t rows, int64_t columns, ElementType type,
                        double gain, std::optional<int64_t> seed) {
  const Output normal =
      RandomNormalInitializer(0.0, 1.0, seed)(scope, Shape({rows, columns}), type);
  if (!scope.ok()) return Output();
  const auto qr = ops::Qr(scope, normal);
  const Output signs = ops::Sign(scope, ops::MatrixDiagPart(scope, qr.r));
  return ops::Mul(scope, ops::Mul(scope, qr.q, signs), gain);
}

}  // namespace

Initializer ConstantInitializer(Tensor value) {
  return [value = std::move(value)](const Scope& scope, const Shape& shape, ElementType type) {
    if (value.num_elements() != shape.num_elements() && value.num_elements() != 1) {
      scope.UpdateStatus(InvalidArgument("constant initializer: ", value.num_elements(),
                                         " values for the shape ", shape.ToString()));
    }
    if (!scope.ok()) return Output();
    Output values = Const(scope, value);
    if (value.type() != type) values = ops::Cast(scope, values, type);
    return value.num_elements() == shape.num_elements()
               ? ops::Reshape(scope, values, Dims(scope, shape.dims()))
               : ops::Fill(scope, Dims(scope, shape.dims()),
                           ops::Reshape(scope, values, Dims(scope, {})));
  };
}

Initializer GlorotNormalInitializer(std::optional<int64_t> seed) {
  return Scaled(1.0, VarianceScaling::kFanAverage, VarianceScaling::kTruncatedNormal, seed);
}
Initializer HeNormalInitializer(std::optional<int64_t> seed) {
  return Scaled(2.0, VarianceScaling::kFanIn, VarianceScaling::kTruncatedNormal, seed);
}
Initializer HeUniformInitializer(std::optional<int64_t> seed) {
  return Scaled(2.0, VarianceScaling::kFanIn, VarianceScaling::kUniform, seed);
}
Initializer LecunNormalInitializer(std::optional<int64_t> seed) {
  return Scaled(1.0, VarianceScaling::kFanIn, VarianceScaling::kTruncatedNormal, seed);
}
Initializer LecunUniformInitializer(std::optional<int64_t> seed) {
  return Scaled(1.0, VarianceScaling::kFanIn, VarianceScaling::kUniform, seed);
}

Initializer UniformUnitScalingInitializer(double factor, std::optional<int64_t> seed) {
  return
      [factor, seed](const Scope& scope, const Shape& shape, const Shape& whole, ElementType type) {
        double inputs = 1;
        for (int i = 0; i + 1 < whole.rank(); ++i) inputs *= static_cast<double>(whole.dim(i));
        const double limit = std::sqrt(3.0 / std::max(inputs, 1.0)) * factor;
        return RandomUniformInitializer(-limit, limit, seed)(scope, shape, type);
      };
}

Initializer IdentityInitializer(double gain) {
  return [gain](const Scope& scope, const Shape& shape, ElementType type) {
    scope.UpdateStatus(CheckRank("identity", shape, 2, 2));
    if (!scope.ok()) return Output();
    const auto filled = [&](absl::Span<const int64_t> dims, double value) {
      return ops::Fill(scope, Dims(scope, dims), ops::Cast(scope, Const(scope, value), type));
    };
    return ops::MatrixSetDiag(scope, filled(shape.dims(), 0.0),
                              filled({std::min(shape.dim(0), shape.dim(1))}, gain));
  };
}

Initializer OrthogonalInitializer(double gain, std::optional<int64_t> seed) {
  return [gain, seed](const Scope& scope, const Shape& shape, ElementType type) {
    scope.UpdateStatus(CheckRank("orthogonal", shape, 2, Shape::kMaxRank));
    if (!scope.ok()) return Output();
    const int64_t columns = shape.dim(shape.rank() - 1);
    const int64_t rows = columns == 0 ? 0 : shape.num_elements() / columns;
    Output q =
        RandomOrthogonal(scope, std::max(rows, columns), std::min(rows, columns), type, gain, seed);
    if (rows < columns) q = ops::Transpose(scope, q, {1, 0});
    return ops::Reshape(scope, q, Dims(scope, shape.dims()));
  };
}

Initializer ConvolutionDeltaOrthogonalInitializer(double gain, std::optional<int64_t> seed) {
  return [gain, seed](const Scope& scope, const Shape& shape, ElementType type) {
    scope.UpdateStatus(CheckRank("convolution delta orthogonal", shape, 3, 5));
    if (!scope.ok()) return Output();
    const int space = shape.rank() - 2;
    const int64_t inputs = shape.dim(space), outputs = shape.dim(space + 1);
    if (inputs > outputs) {
      scope.UpdateStatus(InvalidArgument("convolution delta orthogonal initializer: the kernel ",
                                         shape.ToString(), " has more inputs than outputs"));
      return Output();
    }
    const Output q = RandomOrthogonal(scope, outputs, outputs, type, gain, seed);
    const Output rows = ops::Slice(scope, q, Dims(scope, {0, 0}), Dims(scope, {inputs, outputs}));
    std::vector<int64_t> center;
    for (int i = 0; i < space; ++i) center.push_back((shape.dim(i) - 1) / 2);
    return ops::ScatterNd(scope, ops::ExpandDims(scope, Dims(scope, center), 0),
                          ops::ExpandDims(scope, rows, 0), Dims(scope, shape.dims()));
  };
}

}  // namespace troupe

/// Initial values of kernels: scaled by the numbers of a unit's inputs and outputs, and matrices.
#ifndef TROUPE_API_TRAINING_WEIGHT_INITIALIZERS_H_
#define TROUPE_API_TRAINING_WEIGHT_INITIALIZERS_H_

#include <cstdint>
#include <optional>

#include "api/training/initializers.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What `value` holds, in the variable's shape and type. InvalidArgument, in the scope, unless it
/// has as many elements, or one. Parts of a variable are slices of it, as they are of an identity
/// or an orthogonal matrix.
Initializer ConstantInitializer(Tensor value);

// `VarianceScaling` with ...
/// ... scale 1, the mean of inputs and outputs, and a truncated normal. (Glorot and Bengio 2010.)
Initializer GlorotNormalInitializer(std::optional<int64_t> seed = std::nullopt);
/// ... scale 2 and the inputs. (He et al. 2015.)
Initializer HeNormalInitializer(std::optional<int64_t> seed = std::nullopt);
Initializer HeUniformInitializer(std::optional<int64_t> seed = std::nullopt);
/// ... scale 1 and the inputs. (LeCun et al. 1998.)
Initializer LecunNormalInitializer(std::optional<int64_t> seed = std::nullopt);
Initializer LecunUniformInitializer(std::optional<int64_t> seed = std::nullopt);

/// Uniform within sqrt(3 / inputs) * `factor`, where inputs are the product of all sizes but the
/// last. (Sussillo and Abbott 2014.)
Initializer UniformUnitScalingInitializer(double factor = 1.0,
                                          std::optional<int64_t> seed = std::nullopt);

/// A matrix of `gain` on the diagonal, else 0. InvalidArgument, in the scope, for another rank.
Initializer IdentityInitializer(double gain = 1.0);

/// A random matrix [product of all sizes but the last, last size] whose columns, or rows if there
/// are fewer, are orthogonal and of length `gain`. InvalidArgument, in the scope, for a rank below
/// 2. (Saxe et al. 2014.)
Initializer OrthogonalInitializer(double gain = 1.0, std::optional<int64_t> seed = std::nullopt);
/// Of a kernel [size..., inputs, outputs] over one to three axes: such a matrix at the center, else
/// 0, so that a convolution keeps the length of what it is given. InvalidArgument, in the scope,
/// for another rank, or for more inputs than outputs. (Xiao et al. 2018.)
Initializer ConvolutionDeltaOrthogonalInitializer(double gain = 1.0,
                                                  std::optional<int64_t> seed = std::nullopt);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_WEIGHT_INITIALIZERS_H_

/// Layers of networks, with TensorFlow 1.x's names of variables (`tf.layers`), so that checkpoints
/// of either are read by the other: "dense/kernel", "conv2d/bias", "batch_normalization/gamma".
///
///     Output h = layers::Conv2D(s, images, 32, {3, 3}, {.activation = layers::Relu});
///     h = layers::MaxPooling2D(s, h, {2, 2}, {2, 2});
///     h = layers::Dense(s, layers::Flatten(s, h), 10);
///
/// A layer finds its variables by `GetVariable` (`api/variable_scope.h`). Without a name it is
/// called after its kind, "dense", "dense_1" and so on, counted from each entry of the variable
/// scope (`DefaultVariableScope`). In a variable scope that reuses variables it shares those that a
/// layer of the same name has made there, whether it was given a name or not:
///
///     Output real = layers::Dense(VariableScope(s, "D", {.reuse = Reuse::kAuto}), x, 1);
///     Output made = layers::Dense(VariableScope(s, "D", {.reuse = Reuse::kAuto}), g, 1);
///
/// Both are "D/dense". Without reuse the second one is an error, AlreadyExists. Sizes that
/// variables depend on must be known when the graph is built. Errors are the scope's:
/// InvalidArgument says which layer and what shape.
#ifndef TROUPE_API_LAYERS_LAYERS_H_
#define TROUPE_API_LAYERS_LAYERS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/layers/convolution.h"     // IWYU pragma: export
#include "api/layers/pooling.h"         // IWYU pragma: export
#include "api/layers/weight_options.h"  // IWYU pragma: export
#include "api/scope.h"
#include "api/variable_scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::layers {

/// x [..., inputs] times a kernel [inputs, units]: [..., units].
Output Dense(const Scope& scope, const Output& x, int64_t units, const WeightOptions& options = {});

/// [batch, ...] as [batch, product of the rest].
Output Flatten(const Scope& scope, const Output& x);

/// Drops each element with probability `rate` when `training` (a scalar bool, of the graph or a
/// constant) holds, else gives x. The others are scaled by 1 / (1 - rate). `noise_shape`: as of
/// `Dropout`.
Output DropoutLayer(const Scope& scope, const Output& x, double rate, const Input& training,
                    std::optional<int64_t> seed = std::nullopt,
                    const std::optional<Input>& noise_shape = std::nullopt);

struct BatchNormalizationOptions {
  std::string name;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  bool trainable = true;
  /// Null: as the variable scope says.
  Regularizer gamma_regularizer = nullptr;
  Regularizer beta_regularizer = nullptr;
  Constraint gamma_constraint = nullptr;
  Constraint beta_constraint = nullptr;
  /// Null: ones.
  Initializer gamma_initializer = nullptr;
  Initializer moving_variance_initializer = nullptr;
  /// Null: zeros.
  Initializer beta_initializer = nullptr;
  Initializer moving_mean_initializer = nullptr;
};
/// x [..., channels] to mean 0 and variance 1 per channel, then times gamma plus beta. In training
/// (`training`: a scalar bool) by the batch, whose mean and variance also move the averages
/// "moving_mean" and "moving_variance": by nodes of the collection "update_ops", which the training
/// op should depend on (`UpdateOps`). Else by the averages. x is of half, bfloat16, float or
/// double; variables are of double for double, else of float. Statistics are TensorFlow 1.x's:
/// where x has 4 axes and is not double the variance that moves its average is the unbiased one, as
/// in the fused op; else it is the biased one. (Ioffe and Szegedy 2015.)
Output BatchNormalization(const Scope& scope, const Output& x, const Input& training,
                          const BatchNormalizationOptions& options = {});

struct NormalizationOptions {
  std::string name;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
};
/// x [..., channels] to mean 0 and variance 1 along the last axis, then times gamma plus beta.
/// Statistics of 16 bits are in float. (Ba et al. 2016.)
Output LayerNormalization(const Scope& scope, const Output& x,
                          const NormalizationOptions& options = {});
/// The same over space and each of `groups` groups of channels. (Wu and He 2018.)
Output GroupNormalization(const Scope& scope, const Output& x, int64_t groups,
                          const NormalizationOptions& options = {});

struct EmbeddingOptions {
  std::string name;
  Initializer initializer = nullptr;  ///< Null: uniform in [-0.05, 0.05).
  Regularizer regularizer = nullptr;
  bool trainable = true;
};
/// The rows of a table [rows, size] that `ids` (int32 or int64, any shape) name: ids.shape +
/// [size]. The table is in parts if the variable scope has a partitioner.
Output Embedding(const Scope& scope, const Input& ids, int64_t rows, int64_t size,
                 const EmbeddingOptions& options = {});

struct AttentionOptions {
  std::string name;
  int64_t key_size = 0;       ///< Of one head; 0: channels of the query / heads.
  double dropout = 0.0;       ///< Of the weights, when `training` holds.
  bool causal = false;        ///< No position looks at later ones.
  std::optional<Input> mask;  ///< bool, to be broadcast to [batch, heads, queries, keys]: may look.
  std::optional<Input> training;  ///< A scalar bool; absent: false.
};
/// `heads` times: each of `query` [batch, queries, channels] looks at all of `memory` [batch, keys,
/// channels'] (the same tensor: self-attention); the heads' results, side by side, are projected to
/// query's channels. (Vaswani et al. 2017.)
Output MultiHeadAttention(const Scope& scope, const Output& query, const Output& memory,
                          int64_t heads, const AttentionOptions& options = {});

/// Applies `layer` to each step of x [batch, time, ...] as if it were an element of a batch
/// [batch * time, ...]: [batch, time, ...]. The layer's result has that many rows, of a known rank.
Output TimeDistributed(const Scope& scope, const Output& x,
                       const std::function<Output(const Scope& scope, const Output& x)>& layer);

/// A table of the variables that have been made so far in the scope's graph: name, shape, number of
/// parameters, and by how many multiplications with additions they go into products of matrices and
/// convolutions of the graph, gradients aside; and the sums. Sizes that are not known, as of a
/// batch, count as 1; so does what is in a loop.
std::string Summary(const Graph& graph);

}  // namespace troupe::layers
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_LAYERS_H_

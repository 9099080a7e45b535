/// Layers of networks, with TensorFlow 1.x's names of variables (`tf.layers`), so that checkpoints
/// of either are read by the other: "dense/kernel", "conv2d/bias", "batch_normalization/gamma".
///
///     Output h = layers::Conv2D(s, images, 32, {3, 3}, {.activation = layers::Relu});
///     h = layers::MaxPooling2D(s, h, {2, 2}, {2, 2});
///     h = layers::Dense(s, layers::Flatten(s, h), 10);
///
/// A layer finds its variables by `GetVariable` (`api/variable_scope.h`): without a name it is
/// called after its kind, "dense", "dense_1" and so on; with a name, in a variable scope that
/// reuses variables, it shares those of an earlier call. Sizes that variables depend on must be
/// known when the graph is built. Errors are the scope's: InvalidArgument says which layer and what
/// shape.
#ifndef TROUPE_API_LAYERS_LAYERS_H_
#define TROUPE_API_LAYERS_LAYERS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/scope.h"
#include "api/variable_scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::layers {

/// Of a layer's result, element by element; null: none.
using Activation = std::function<Output(const Scope& scope, const Output& x)>;
Output Relu(const Scope& scope, const Output& x);
Output Sigmoid(const Scope& scope, const Output& x);
Output Tanh(const Scope& scope, const Output& x);
Output Elu(const Scope& scope, const Output& x);
Output Softmax(const Scope& scope, const Output& x);
/// x * P(X <= x) of a normal X, by the error function. (Hendrycks and Gimpel 2016.)
Output Gelu(const Scope& scope, const Output& x);

/// What layers with weights have in common. Null and unset members: as `GetVariable` and the
/// variable scope say; biases are zeros.
struct WeightOptions {
  std::string name;
  Activation activation = nullptr;
  bool use_bias = true;
  Initializer kernel_initializer = nullptr;
  Initializer bias_initializer = nullptr;
  Regularizer kernel_regularizer = nullptr;
  Regularizer bias_regularizer = nullptr;
  /// Of the result; its loss is among the regularization losses.
  Regularizer activity_regularizer = nullptr;
  Constraint kernel_constraint = nullptr;
  Constraint bias_constraint = nullptr;
  bool trainable = true;
};

/// x [..., inputs] times a kernel [inputs, units]: [..., units].
Output Dense(const Scope& scope, const Output& x, int64_t units, const WeightOptions& options = {});

/// `padding`: "VALID" or "SAME". Strides and dilations are 1 unless said otherwise; not both may be
/// above 1. `N` axes of space; x is [batch, space..., channels].
template <size_t N>
struct ConvOptions : WeightOptions {
  std::array<int64_t, N> strides = Ones();
  std::array<int64_t, N> dilations = Ones();
  std::string padding = "VALID";

  static constexpr std::array<int64_t, N> Ones() {
    std::array<int64_t, N> ones{};
    ones.fill(1);
    return ones;
  }
};

/// Convolutions over one or two axes: [batch, space..., filters]. Kernel: [size..., channels,
/// filters].
Output Conv1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
              const ConvOptions<1>& options = {});
Output Conv2D(const Scope& scope, const Output& x, int64_t filters, std::array<int64_t, 2> size,
              const ConvOptions<2>& options = {});
/// The transpose of a convolution: space grows by the strides. Kernel: [size..., filters,
/// channels]. Dilations are not supported.
Output Conv2DTranspose(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 2> size, const ConvOptions<2>& options = {});

/// The largest or mean element of windows of [batch, space..., channels], per channel.
Output MaxPooling1D(const Scope& scope, const Output& x, int64_t size, int64_t stride,
                    const std::string& padding = "VALID");
Output AveragePooling1D(const Scope& scope, const Output& x, int64_t size, int64_t stride,
                        const std::string& padding = "VALID");
Output MaxPooling2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                    std::array<int64_t, 2> strides, const std::string& padding = "VALID");
Output AveragePooling2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                        std::array<int64_t, 2> strides, const std::string& padding = "VALID");
/// The mean over the axes between batch and channels: [batch, channels].
Output GlobalAveragePooling(const Scope& scope, const Output& x);

/// [batch, ...] as [batch, product of the rest].
Output Flatten(const Scope& scope, const Output& x);

/// Drops each element with probability `rate` when `training` (a scalar bool, of the graph or a
/// constant) holds, else gives x. The others are scaled by 1 / (1 - rate).
Output DropoutLayer(const Scope& scope, const Output& x, double rate, const Input& training,
                    std::optional<int64_t> seed = std::nullopt);

struct BatchNormalizationOptions {
  std::string name;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  bool trainable = true;
  Regularizer gamma_regularizer = nullptr;
  Regularizer beta_regularizer = nullptr;
};
/// x [..., channels] to mean 0 and variance 1 per channel, then times gamma plus beta. In training
/// (`training`: a scalar bool) by the batch, whose mean and variance also move the averages
/// "moving_mean" and "moving_variance": by nodes of the collection "update_ops", which the training
/// op should depend on (`UpdateOps`). Else by the averages. (Ioffe and Szegedy 2015.)
Output BatchNormalization(const Scope& scope, const Output& x, const Input& training,
                          const BatchNormalizationOptions& options = {});

struct NormalizationOptions {
  std::string name;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
};
/// x [..., channels] to mean 0 and variance 1 along the last axis, then times gamma plus beta.
/// (Ba et al. 2016.)
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

/// A table of the variables that have been made so far in the scope's graph: name, shape, number of
/// parameters; and the sums of trainable and other ones.
std::string Summary(const Graph& graph);

}  // namespace troupe::layers
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_LAYERS_H_

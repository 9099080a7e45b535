#include "api/layers/layers.h"

#include <cmath>
#include <utility>

#include "api/control_flow.h"
#include "api/internal/layer_parts.h"
#include "api/nn.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe::layers {

namespace {

/// By the value, if it is known while the graph is built; else when it runs.
std::vector<Output> Choose(const Scope& scope, const Input& predicate, const BranchFunction& yes,
                           const BranchFunction& no) {
  if (!predicate.is_value()) return Cond(scope, predicate, yes, no);
  const absl::StatusOr<bool> value = predicate.value().scalar<bool>();
  if (!value.ok()) {
    scope.UpdateStatus(value.status());
    return {};
  }
  return *value ? yes(scope) : no(scope);
}

/// To mean 0 and variance 1 over `axes`. Computed in float if x is of 16 bits: half has no squares
/// of deviations above 256.
Output Normalize(const Scope& scope, const Output& x, const Tensor& axes, double epsilon) {
  if (!scope.ok() || !x.valid()) return Output();
  if (x.type() == ElementType::kHalf || x.type() == ElementType::kBfloat16) {
    const Output wide = ops::Cast(scope, x, ElementType::kFloat);
    return ops::Cast(scope, Normalize(scope, wide, axes, epsilon), x.type());
  }
  const Output mean = ops::Mean(scope, x, axes, {.keep_dims = true});
  const Output variance =
      ops::Mean(scope, ops::SquaredDifference(scope, x, ops::StopGradient(scope, mean)), axes,
                {.keep_dims = true});
  const Output inverse = ops::Rsqrt(scope, ops::Add(scope, variance, epsilon));
  return ops::Mul(scope, ops::Sub(scope, x, mean), inverse);
}

/// A batch after batch normalization, and its statistics as the moving averages want them.
struct NormalizedBatch {
  Output y, mean, variance;
};

/// What batch normalization of `rows` [rows, 1, 1, channels] depends on, each [channels], and of
/// double if they are, else of float. `is_fused`: as TensorFlow's fused op, whose variance of a
/// batch is the unbiased one.
struct BatchNormalizationParts {
  Output rows, gamma, beta;
  double epsilon;
  bool is_fused;
};

/// By the statistics that are given; invalid ones: by the batch's.
NormalizedBatch NormalizeBatch(const Scope& s, const BatchNormalizationParts& parts, Output mean,
                               Output variance) {
  const bool by_batch = !mean.valid();
  if (parts.rows.type() != ElementType::kDouble) {
    if (by_batch) mean = variance = Const(s, Tensor::Vector<float>({}));
    const auto norm = ops::FusedBatchNormV3(
        s, parts.rows, parts.gamma, parts.beta, mean, variance,
        {.epsilon = static_cast<float>(parts.epsilon), .is_training = by_batch});
    if (!by_batch || parts.is_fused) return {norm.y, norm.batch_mean, norm.batch_variance};
    const Output n = ops::Cast(s, Dim(s, parts.rows, 0), ElementType::kFloat);
    const Output biased = ops::RealDiv(s, ops::Sub(s, n, 1.0f), n);
    return {norm.y, norm.batch_mean, ops::Mul(s, norm.batch_variance, biased)};
  }
  if (by_batch) {
    mean = ops::Mean(s, parts.rows, {0, 1, 2});
    variance =
        ops::Mean(s, ops::SquaredDifference(s, parts.rows, ops::StopGradient(s, mean)), {0, 1, 2});
  }
  const Output inverse = ops::Rsqrt(s, ops::Add(s, variance, parts.epsilon));
  const Output scale = ops::Mul(s, inverse, parts.gamma);
  const Output shift = ops::Sub(s, parts.beta, ops::Mul(s, mean, scale));
  return {ops::Add(s, ops::Mul(s, parts.rows, scale), shift), mean, variance};
}

/// Times gamma plus beta, of the size of the last axis.
Output ScaleAndShift(const Scope& scope, Output y, int64_t channels,
                     const NormalizationOptions& options) {
  const auto weights = [&](const char* name, const Initializer& initializer) {
    return Weights(scope, name, {channels}, {.initializer = initializer, .type = y.type()});
  };
  if (options.scale) y = ops::Mul(scope, y, weights("gamma", OnesInitializer()));
  if (options.center) y = ops::Add(scope, y, weights("beta", ZerosInitializer()));
  return scope.ok() ? y : Output();
}

}  // namespace

Output Relu(const Scope& scope, const Output& x) { return ops::Relu(scope, x); }
Output Sigmoid(const Scope& scope, const Output& x) { return ops::Sigmoid(scope, x); }
Output Tanh(const Scope& scope, const Output& x) { return ops::Tanh(scope, x); }
Output Elu(const Scope& scope, const Output& x) { return ops::Elu(scope, x); }
Output Softmax(const Scope& scope, const Output& x) { return ops::Softmax(scope, x); }
Output Gelu(const Scope& scope, const Output& x) {
  if (!x.valid()) return Output();
  const Output erf = ops::Erf(scope, ops::Mul(scope, x, std::sqrt(0.5)));
  const Output half = ops::Mul(scope, x, 0.5);
  return ops::Mul(scope, half, ops::Add(scope, erf, 1.0));
}

Output Dense(const Scope& scope, const Output& x, int64_t units, const WeightOptions& options) {
  const Scope own = LayerScope(scope, options.name, "dense");
  const int64_t inputs = KnownDim(own, "dense", x, -1, 2);
  if (!own.ok()) return Output();
  const Output kernel = Kernel(own, {inputs, units}, x.type(), options);
  if (!own.ok()) return Output();
  const int rank = x.shape().rank();
  if (rank == 2) return Finish(own, ops::MatMul(own, x, kernel), {units}, options);
  const Output rows = ops::Reshape(own, x, {-1, static_cast<int32_t>(inputs)});
  const Output y = Finish(own, ops::MatMul(own, rows, kernel), {units}, options);
  if (!own.ok()) return Output();
  return ReshapeLike(own, y, x, rank - 1, {static_cast<int32_t>(units)});
}

Output Flatten(const Scope& scope, const Output& x) {
  const Scope own = scope.NewSubScope("flatten");
  if (!own.ok() || !x.valid()) return Output();
  int64_t size = x.shape().unknown_rank() ? -1 : 1;
  for (int i = 1; size >= 0 && i < x.shape().rank(); ++i) {
    size = x.shape().dim(i) < 0 ? -1 : size * x.shape().dim(i);
  }
  if (size > 0 && size <= INT32_MAX) {
    return ops::Reshape(own, x, {-1, static_cast<int32_t>(size)});
  }
  return ops::Reshape(own, x, ops::Pack(own, {Dim(own, x, 0), -1}));
}

Output DropoutLayer(const Scope& scope, const Output& x, double rate, const Input& training,
                    std::optional<int64_t> seed, const std::optional<Input>& noise_shape) {
  if (!(rate >= 0 && rate < 1)) {
    scope.UpdateStatus(InvalidArgument("dropout: the rate must be in [0, 1), not ", rate));
  }
  if (!scope.ok() || rate == 0) return x;
  const std::vector<Output> result = Choose(
      scope, training,
      [&](const Scope& s) {
        return std::vector<Output>{Dropout(s, x, 1.0 - rate, seed, noise_shape)};
      },
      [&](const Scope& s) { return std::vector<Output>{ops::Identity(s, x)}; });
  return result.empty() ? Output() : result[0];
}

Output BatchNormalization(const Scope& scope, const Output& x, const Input& training,
                          const BatchNormalizationOptions& options) {
  const Scope own = LayerScope(scope, options.name, "batch_normalization");
  const int64_t channels = KnownDim(own, "batch_normalization", x, -1, 2);
  if (!own.ok()) return Output();
  // Statistics of 16 bits are in float.
  const ElementType type =
      x.type() == ElementType::kDouble ? ElementType::kDouble : ElementType::kFloat;
  const auto number = [type](const Scope& s, double value) {
    return type == ElementType::kDouble ? Const(s, value) : Const(s, static_cast<float>(value));
  };
  const auto weights = [&](const char* name, double without, bool is_used,
                           VariableOptions variable) {
    if (!is_used) {
      return ops::Fill(own, {static_cast<int32_t>(channels)}, number(own, without));
    }
    if (variable.initializer == nullptr) variable.initializer = ConstantInitializer(without);
    variable.trainable = options.trainable;
    variable.type = type;
    return GetVariable(own, name, {channels}, variable).value();
  };
  const Output gamma = weights("gamma", 1.0, options.scale,
                               {.initializer = options.gamma_initializer,
                                .regularizer = options.gamma_regularizer,
                                .constraint = options.gamma_constraint});
  const Output beta = weights("beta", 0.0, options.center,
                              {.initializer = options.beta_initializer,
                               .regularizer = options.beta_regularizer,
                               .constraint = options.beta_constraint});
  const auto average = [&](const char* name, const Initializer& given, double initial) {
    return GetVariable(own, name, {channels},
                       {.initializer = given != nullptr ? given : ConstantInitializer(initial),
                        .regularizer = [](const Scope&, const Output&) { return Output(); },
                        .trainable = false,
                        .type = type});
  };
  const ModelVariable mean = average("moving_mean", options.moving_mean_initializer, 0.0);
  const ModelVariable variance =
      average("moving_variance", options.moving_variance_initializer, 1.0);
  if (!own.ok()) return Output();
  const BatchNormalizationParts parts = {
      ops::Reshape(own, x, {-1, 1, 1, static_cast<int32_t>(channels)}), gamma, beta,
      options.epsilon, x.shape().rank() == 4};
  // The result, and by how much of what the averages move.
  const auto normalize = [&](const Scope& s, const Output& m, const Output& v, double step) {
    const NormalizedBatch batch = NormalizeBatch(s, parts, m, v);
    return std::vector<Output>{batch.y, batch.mean, batch.variance, number(s, step)};
  };
  const std::vector<Output> chosen = Choose(
      own, training, [&](const Scope& s) { return normalize(s, {}, {}, 1.0 - options.momentum); },
      [&](const Scope& s) { return normalize(s, mean.value(), variance.value(), 0.0); });
  if (!own.ok() || chosen.size() != 4) return Output();
  const bool never = training.is_value() && !training.value().unchecked_scalar<bool>();
  for (int i = 0; i < 2 && !never; ++i) {
    const ModelVariable& moving = i == 0 ? mean : variance;
    const Scope move = own.NewSubScope(i == 0 ? "AssignMovingAvg" : "AssignMovingAvg_1");
    const Output way = ops::Sub(move, moving.value(), chosen[static_cast<size_t>(i) + 1]);
    Node* update = moving.AssignSub(move, ops::Mul(move, way, chosen[3]));
    if (update != nullptr) own.graph()->AddToCollection(collections::kUpdateOps, update->name());
  }
  return ReshapeLike(own, chosen[0], x, x.shape().rank() - 1, {static_cast<int32_t>(channels)});
}

Output LayerNormalization(const Scope& scope, const Output& x,
                          const NormalizationOptions& options) {
  const Scope own = LayerScope(scope, options.name, "layer_normalization");
  const int64_t channels = KnownDim(own, "layer_normalization", x, -1, 2);
  if (!own.ok()) return Output();
  const Output y =
      Normalize(own, x, Tensor::Vector<int32_t>({x.shape().rank() - 1}), options.epsilon);
  return ScaleAndShift(own, y, channels, options);
}

Output GroupNormalization(const Scope& scope, const Output& x, int64_t groups,
                          const NormalizationOptions& options) {
  const Scope own = LayerScope(scope, options.name, "group_normalization");
  const int64_t channels = KnownDim(own, "group_normalization", x, -1, 3);
  if (own.ok() && (groups < 1 || channels % groups != 0)) {
    own.UpdateStatus(InvalidArgument("group_normalization: ", channels, " channels cannot be in ",
                                     groups, " groups"));
  }
  if (!own.ok()) return Output();
  const Output split =
      ops::Reshape(own, x,
                   ops::Pack(own, {Dim(own, x, 0), -1, static_cast<int32_t>(groups),
                                   static_cast<int32_t>(channels / groups)}));
  const Output y =
      ops::Reshape(own, Normalize(own, split, Tensor::Vector<int32_t>({1, 3}), options.epsilon),
                   ops::Shape(own, x));
  return ScaleAndShift(own, y, channels, options);
}

Output Embedding(const Scope& scope, const Input& ids, int64_t rows, int64_t size,
                 const EmbeddingOptions& options) {
  const Scope own = LayerScope(scope, options.name, "embedding");
  const absl::StatusOr<Shape> shape = Shape::Create({rows, size});
  own.UpdateStatus(shape.status());
  if (!own.ok()) return Output();
  const PartitionedModelVariable table = GetPartitionedVariable(
      own, "embeddings", *shape,
      {.initializer = options.initializer != nullptr ? options.initializer
                                                     : RandomUniformInitializer(-0.05, 0.05),
       .regularizer = options.regularizer,
       .trainable = options.trainable});
  return own.ok() ? table.Lookup(own, ids) : Output();
}

Output MultiHeadAttention(const Scope& scope, const Output& query, const Output& memory,
                          int64_t heads, const AttentionOptions& options) {
  const Scope own = LayerScope(scope, options.name, "multi_head_attention");
  if (!HasRank(own, "multi_head_attention", query, 3) ||
      !HasRank(own, "multi_head_attention", memory, 3)) {
    return Output();
  }
  const int64_t channels = KnownDim(own, "multi_head_attention", query, 2, 3);
  const int64_t key_size = options.key_size > 0 || heads < 1 ? options.key_size : channels / heads;
  if (own.ok() && (heads < 1 || key_size < 1)) {
    own.UpdateStatus(InvalidArgument("multi_head_attention: ", channels, " channels and ", heads,
                                     " heads with keys of ", key_size));
  }
  if (!own.ok()) return Output();
  const int32_t head_count = static_cast<int32_t>(heads), key = static_cast<int32_t>(key_size);
  // [batch, heads, positions, key_size]
  const auto project = [&](const Output& x, const char* name) {
    const Output y = Dense(own, x, heads * key_size, {.name = name});
    if (!own.ok()) return Output();
    return ops::Transpose(own, ReshapeLike(own, y, y, 2, {head_count, key}), {0, 2, 1, 3});
  };
  const Output q = project(query, "query");
  const Output k = project(memory, "key");
  const Output v = project(memory, "value");
  if (!own.ok()) return Output();
  const double scale = 1.0 / std::sqrt(static_cast<double>(key_size));
  Output scores = ops::BatchMatMulV2(own, ops::Mul(own, q, scale), k, {.adj_y = true});
  const double never = query.type() == ElementType::kHalf ? -6e4 : -1e9;
  if (options.causal) {
    const Output ones =
        ops::Fill(own, ops::Pack(own, {Dim(own, query, 1), Dim(own, memory, 1)}), Const(own, 1.0f));
    const Output seen = ops::Greater(
        own, ops::MatrixBandPart(own, ones, Const(own, int64_t{-1}), Const(own, int64_t{0})), 0.0f);
    scores = ops::SelectV2(own, seen, scores, never);
  }
  if (options.mask) scores = ops::SelectV2(own, *options.mask, scores, never);
  Output weights = ops::Softmax(own, scores);
  if (options.training && own.ok()) {
    weights = DropoutLayer(own, weights, options.dropout, *options.training);
  }
  if (!own.ok()) return Output();
  const Output seen = ops::Transpose(own, ops::BatchMatMulV2(own, weights, v), {0, 2, 1, 3});
  if (!own.ok()) return Output();
  const Output together = ReshapeLike(own, seen, seen, 2, {head_count * key});
  return own.ok() ? Dense(own, together, channels, {.name = "output"}) : Output();
}

Output TimeDistributed(const Scope& scope, const Output& x,
                       const std::function<Output(const Scope& scope, const Output& x)>& layer) {
  if (layer == nullptr) {
    scope.UpdateStatus(InvalidArgument("time_distributed: there is no layer"));
  }
  if (!scope.ok() || !x.valid()) return Output();
  const PartialShape& shape = x.shape();
  if (shape.unknown_rank() || shape.rank() < 2) {
    scope.UpdateStatus(
        InvalidArgument("time_distributed: the input must have 2 axes at least, not ", "the shape ",
                        shape.ToString()));
    return Output();
  }
  const auto join = [&](std::vector<Input> sizes, const Output& of, int from) {
    for (int i = from; i < of.shape().rank(); ++i) sizes.push_back(Dim(scope, of, i));
    return ops::Pack(scope, sizes);
  };
  const Output y = layer(scope, ops::Reshape(scope, x, join({-1}, x, 2)));
  if (!scope.ok() || !y.valid()) return Output();
  if (y.shape().unknown_rank() || y.shape().rank() < 1) {
    scope.UpdateStatus(InvalidArgument("time_distributed: the layer's result must have rows, not ",
                                       "the shape ", y.shape().ToString()));
    return Output();
  }
  return ops::Reshape(scope, y, join({Dim(scope, x, 0), Dim(scope, x, 1)}, y, 1));
}

}  // namespace troupe::layers

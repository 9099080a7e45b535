#include "api/layers/layers.h"

#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

#include "api/control_flow.h"
#include "api/nn.h"
#include "api/ops.h"
#include "devices/status_macros.h"
#include "graph/collection_records.h"

namespace troupe::layers {

namespace {

/// Size `axis` of x as a scalar int32, a constant if it is known.
Output Dim(const Scope& scope, const Output& x, int axis) {
  const PartialShape& shape = x.shape();
  if (!shape.unknown_rank() && shape.dim(axis) >= 0 && shape.dim(axis) <= INT32_MAX) {
    return Const(scope, static_cast<int32_t>(shape.dim(axis)));
  }
  return ops::StridedSlice(scope, ops::Shape(scope, x), {axis}, {axis + 1}, {1},
                           {.shrink_axis_mask = 1});
}

/// Size `axis`, counted from the back if it is negative; -1, with an error in the scope, unless x
/// has at least `rank` axes and that one is known.
int64_t KnownDim(const Scope& scope, const char* layer, const Output& x, int axis, int rank) {
  if (!scope.ok()) return -1;
  const PartialShape& shape = x.shape();
  const int at = axis < 0 && !shape.unknown_rank() ? shape.rank() + axis : axis;
  if (!shape.unknown_rank() && shape.rank() >= rank && shape.dim(at) > 0) return shape.dim(at);
  scope.UpdateStatus(InvalidArgument(layer, ": the input's shape ", shape.ToString(),
                                     " must have at least ", rank, " axes, and axis ", axis,
                                     " of a known size above 0"));
  return -1;
}

bool HasRank(const Scope& scope, const char* layer, const Output& x, int rank) {
  if (!scope.ok()) return false;
  if (!x.shape().unknown_rank() && x.shape().rank() == rank) return true;
  scope.UpdateStatus(InvalidArgument(layer, ": the input must have ", rank, " axes, not the shape ",
                                     x.shape().ToString()));
  return false;
}

/// y in the shape of `like` up to `axis`, and then `sizes`.
Output ReshapeLike(const Scope& scope, const Output& y, const Output& like, int axis,
                   const std::vector<int32_t>& sizes) {
  std::vector<int32_t> dims;
  int unknown = 0;
  for (int i = 0; i < axis; ++i) {
    const int64_t size = like.shape().dim(i);
    const bool is_known = size >= 0 && size <= INT32_MAX;
    unknown += is_known ? 0 : 1;
    dims.push_back(is_known ? static_cast<int32_t>(size) : -1);
  }
  if (unknown <= 1) {
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    return ops::Reshape(scope, y, Tensor::Vector<int32_t>(dims));
  }
  const Output front = ops::StridedSlice(scope, ops::Shape(scope, like), {0}, {axis}, {1});
  return ops::Reshape(scope, y, ops::ConcatV2(scope, {front, Tensor::Vector<int32_t>(sizes)}, 0));
}

Scope LayerScope(const Scope& scope, const std::string& name, const char* base) {
  return name.empty() ? UniqueVariableScope(scope, base) : VariableScope(scope, name);
}

/// A variable's value, put together if it is in parts.
Output Weights(const Scope& scope, const char* name, const Shape& shape,
               const VariableOptions& options) {
  return GetPartitionedVariable(scope, name, shape, options).Value(scope);
}

Output Kernel(const Scope& scope, const Shape& shape, ElementType type,
              const WeightOptions& options) {
  return Weights(scope, "kernel", shape,
                 {.initializer = options.kernel_initializer,
                  .regularizer = options.kernel_regularizer,
                  .constraint = options.kernel_constraint,
                  .trainable = options.trainable,
                  .type = type});
}

/// Adds the bias, and what comes after it.
Output Finish(const Scope& scope, Output y, int64_t units, const WeightOptions& options) {
  if (options.use_bias) {
    const Output bias =
        Weights(scope, "bias", {units},
                {.initializer = options.bias_initializer != nullptr ? options.bias_initializer
                                                                    : ZerosInitializer(),
                 .regularizer = options.bias_regularizer,
                 .constraint = options.bias_constraint,
                 .trainable = options.trainable,
                 .type = y.type()});
    if (!scope.ok()) return Output();
    y = ops::BiasAdd(scope, y, bias);
  }
  if (options.activation != nullptr) y = options.activation(scope, y);
  if (options.activity_regularizer != nullptr && scope.ok()) {
    const Output loss = options.activity_regularizer(scope.NewSubScope("ActivityRegularizer"), y);
    if (loss.valid()) {
      scope.graph()->AddToCollection(collections::kRegularizationLosses, loss.name());
    }
  }
  return y;
}

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

std::vector<int64_t> OfSpace(absl::Span<const int64_t> space) {
  std::vector<int64_t> all = {1};
  all.insert(all.end(), space.begin(), space.end());
  all.push_back(1);
  return all;
}

/// A pooling op over two axes of space, of which a single one is the second.
template <typename Pool>
Output Pool1D(const Scope& scope, const char* layer, const Output& x, int64_t size, int64_t stride,
              const std::string& padding, Pool pool) {
  const Scope own = scope.NewSubScope(layer);
  if (!HasRank(own, layer, x, 3)) return Output();
  const Output wide = ops::ExpandDims(own, x, 1);
  return ops::Squeeze(own, pool(own, wide, {1, 1, size, 1}, {1, 1, stride, 1}, padding),
                      {.squeeze_dims = {1}});
}

Output Max(const Scope& scope, const Output& x, const std::vector<int64_t>& size,
           const std::vector<int64_t>& strides, const std::string& padding) {
  return ops::MaxPool(scope, x, size, strides, padding);
}
Output Average(const Scope& scope, const Output& x, const std::vector<int64_t>& size,
               const std::vector<int64_t>& strides, const std::string& padding) {
  return ops::AvgPool(scope, x, size, strides, padding);
}

/// To mean 0 and variance 1 over `axes`.
Output Normalize(const Scope& scope, const Output& x, const Tensor& axes, double epsilon) {
  const Output mean = ops::Mean(scope, x, axes, {.keep_dims = true});
  const Output variance =
      ops::Mean(scope, ops::SquaredDifference(scope, x, ops::StopGradient(scope, mean)), axes,
                {.keep_dims = true});
  const Output inverse = ops::Rsqrt(scope, ops::Add(scope, variance, epsilon));
  return ops::Mul(scope, ops::Sub(scope, x, mean), inverse);
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
  const absl::StatusOr<Shape> shape = Shape::Create({inputs, units});
  own.UpdateStatus(shape.status());
  if (!own.ok()) return Output();
  const Output kernel = Kernel(own, *shape, x.type(), options);
  const int rank = x.shape().rank();
  if (rank == 2) return Finish(own, ops::MatMul(own, x, kernel), units, options);
  const Output rows = ops::Reshape(own, x, {-1, static_cast<int32_t>(inputs)});
  const Output y = Finish(own, ops::MatMul(own, rows, kernel), units, options);
  if (!own.ok()) return Output();
  return ReshapeLike(own, y, x, rank - 1, {static_cast<int32_t>(units)});
}

Output Conv2D(const Scope& scope, const Output& x, int64_t filters, std::array<int64_t, 2> size,
              const ConvOptions<2>& options) {
  const Scope own = LayerScope(scope, options.name, "conv2d");
  if (!HasRank(own, "conv2d", x, 4)) return Output();
  const int64_t channels = KnownDim(own, "conv2d", x, 3, 4);
  const absl::StatusOr<Shape> shape = Shape::Create({size[0], size[1], channels, filters});
  own.UpdateStatus(shape.status());
  if (!own.ok()) return Output();
  const Output kernel = Kernel(own, *shape, x.type(), options);
  const Output y = ops::Conv2D(own, x, kernel, OfSpace(options.strides), options.padding,
                               {.dilations = OfSpace(options.dilations)});
  return own.ok() ? Finish(own, y, filters, options) : Output();
}

Output Conv1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
              const ConvOptions<1>& options) {
  const Scope own = LayerScope(scope, options.name, "conv1d");
  if (!HasRank(own, "conv1d", x, 3)) return Output();
  const int64_t channels = KnownDim(own, "conv1d", x, 2, 3);
  const absl::StatusOr<Shape> shape = Shape::Create({size, channels, filters});
  own.UpdateStatus(shape.status());
  if (!own.ok()) return Output();
  const Output kernel = ops::ExpandDims(own, Kernel(own, *shape, x.type(), options), 0);
  const Output wide =
      ops::Conv2D(own, ops::ExpandDims(own, x, 1), kernel, {1, 1, options.strides[0], 1},
                  options.padding, {.dilations = {1, 1, options.dilations[0], 1}});
  const Output y = ops::Squeeze(own, wide, {.squeeze_dims = {1}});
  return own.ok() ? Finish(own, y, filters, options) : Output();
}

Output Conv2DTranspose(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 2> size, const ConvOptions<2>& options) {
  const Scope own = LayerScope(scope, options.name, "conv2d_transpose");
  if (!HasRank(own, "conv2d_transpose", x, 4)) return Output();
  const int64_t channels = KnownDim(own, "conv2d_transpose", x, 3, 4);
  const absl::StatusOr<Shape> shape = Shape::Create({size[0], size[1], filters, channels});
  own.UpdateStatus(shape.status());
  if (options.dilations != ConvOptions<2>::Ones()) {
    own.UpdateStatus(InvalidArgument("conv2d_transpose: dilations are not supported"));
  }
  if (!own.ok()) return Output();
  std::vector<Input> sizes = {Dim(own, x, 0)};
  for (int i = 0; i < 2; ++i) {
    const int64_t more =
        options.padding == "VALID" ? std::max<int64_t>(size[i] - options.strides[i], 0) : 0;
    const int64_t known = x.shape().dim(i + 1);
    if (known >= 0) {
      sizes.push_back(static_cast<int32_t>(known * options.strides[i] + more));
    } else {
      const Output grown =
          ops::Mul(own, Dim(own, x, i + 1), static_cast<int32_t>(options.strides[i]));
      sizes.push_back(ops::Add(own, grown, static_cast<int32_t>(more)));
    }
  }
  sizes.push_back(static_cast<int32_t>(filters));
  const bool is_known = x.shape().dim(0) >= 0 && x.shape().dim(1) >= 0 && x.shape().dim(2) >= 0;
  Output output_shape;
  if (is_known) {
    std::vector<int32_t> dims = {static_cast<int32_t>(x.shape().dim(0))};
    for (int i = 1; i < 4; ++i) {
      dims.push_back(sizes[static_cast<size_t>(i)].value().unchecked_scalar<int32_t>());
    }
    output_shape = Const(own, Tensor::Vector<int32_t>(dims));
  } else {
    output_shape = ops::Pack(own, sizes);
  }
  const Output kernel = Kernel(own, *shape, x.type(), options);
  const Output y = ops::Conv2DBackpropInput(own, output_shape, kernel, x, OfSpace(options.strides),
                                            options.padding);
  return own.ok() ? Finish(own, y, filters, options) : Output();
}

Output MaxPooling1D(const Scope& scope, const Output& x, int64_t size, int64_t stride,
                    const std::string& padding) {
  return Pool1D(scope, "max_pooling1d", x, size, stride, padding, Max);
}
Output AveragePooling1D(const Scope& scope, const Output& x, int64_t size, int64_t stride,
                        const std::string& padding) {
  return Pool1D(scope, "average_pooling1d", x, size, stride, padding, Average);
}
Output MaxPooling2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                    std::array<int64_t, 2> strides, const std::string& padding) {
  return Max(scope.WithOpName("max_pooling2d"), x, OfSpace(size), OfSpace(strides), padding);
}
Output AveragePooling2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                        std::array<int64_t, 2> strides, const std::string& padding) {
  return Average(scope.WithOpName("average_pooling2d"), x, OfSpace(size), OfSpace(strides),
                 padding);
}

Output GlobalAveragePooling(const Scope& scope, const Output& x) {
  const Scope own = scope.NewSubScope("global_average_pooling");
  KnownDim(own, "global_average_pooling", x, -1, 3);
  if (!own.ok()) return Output();
  std::vector<int32_t> axes;
  for (int i = 1; i + 1 < x.shape().rank(); ++i) axes.push_back(i);
  return ops::Mean(own, x, Tensor::Vector<int32_t>(axes));
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
                    std::optional<int64_t> seed) {
  if (!(rate >= 0 && rate < 1)) {
    scope.UpdateStatus(InvalidArgument("dropout: the rate must be in [0, 1), not ", rate));
  }
  if (!scope.ok() || rate == 0) return x;
  const std::vector<Output> result = Choose(
      scope, training,
      [&](const Scope& s) { return std::vector<Output>{Dropout(s, x, 1.0 - rate, seed)}; },
      [&](const Scope& s) { return std::vector<Output>{ops::Identity(s, x)}; });
  return result.empty() ? Output() : result[0];
}

Output BatchNormalization(const Scope& scope, const Output& x, const Input& training,
                          const BatchNormalizationOptions& options) {
  const Scope own = LayerScope(scope, options.name, "batch_normalization");
  const int64_t channels = KnownDim(own, "batch_normalization", x, -1, 2);
  if (!own.ok()) return Output();
  // Statistics are in float, whatever x is.
  const auto weights = [&](const char* name, double initial, bool is_used, bool trainable,
                           const Regularizer& regularizer) {
    if (!is_used) {
      return ops::Fill(own, {static_cast<int32_t>(channels)}, static_cast<float>(initial));
    }
    return GetVariable(own, name, {channels},
                       {.initializer = ConstantInitializer(initial),
                        .regularizer = regularizer,
                        .trainable = trainable,
                        .type = ElementType::kFloat})
        .value();
  };
  const auto none = [](const Scope&, const Output&) { return Output(); };
  const auto given = [&](const Regularizer& r) { return r != nullptr ? r : Regularizer(none); };
  const Output gamma =
      weights("gamma", 1.0, options.scale, options.trainable, given(options.gamma_regularizer));
  const Output beta =
      weights("beta", 0.0, options.center, options.trainable, given(options.beta_regularizer));
  const auto average = [&](const char* name, double initial) {
    return GetVariable(own, name, {channels},
                       {.initializer = ConstantInitializer(initial),
                        .regularizer = none,
                        .trainable = false,
                        .type = ElementType::kFloat});
  };
  const ModelVariable mean = average("moving_mean", 0.0);
  const ModelVariable variance = average("moving_variance", 1.0);
  if (!own.ok()) return Output();
  const Output rows = ops::Reshape(own, x, {-1, 1, 1, static_cast<int32_t>(channels)});
  ops::FusedBatchNormV3Attrs attrs{.epsilon = static_cast<float>(options.epsilon)};
  const float step = static_cast<float>(1.0 - options.momentum);
  // The result, and by how much of what the averages move.
  const std::vector<Output> chosen = Choose(
      own, training,
      [&](const Scope& s) {
        attrs.is_training = true;
        const Output empty = Const(s, Tensor::Vector<float>({}));
        const auto norm = ops::FusedBatchNormV3(s, rows, gamma, beta, empty, empty, attrs);
        return std::vector<Output>{norm.y, norm.batch_mean, norm.batch_variance, Const(s, step)};
      },
      [&](const Scope& s) {
        attrs.is_training = false;
        const auto norm =
            ops::FusedBatchNormV3(s, rows, gamma, beta, mean.value(), variance.value(), attrs);
        return std::vector<Output>{norm.y, norm.batch_mean, norm.batch_variance, Const(s, 0.0f)};
      });
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
      {.initializer =
           options.initializer != nullptr ? options.initializer : RandomUniformInitializer(),
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

std::string Summary(const Graph& graph) {
  std::vector<std::string> trainable = graph.Collection(collections::kTrainableVariables);
  std::ostringstream text;
  int64_t sums[2] = {0, 0};
  for (const std::string& handle : graph.Collection(collections::kVariables)) {
    const ModelVariable variable = ModelVariable::FromHandle(graph, handle);
    if (!variable.valid()) continue;
    const absl::StatusOr<Shape> shape = variable.shape().ToShape();
    const bool is_trainable =
        std::find(trainable.begin(), trainable.end(), handle) != trainable.end();
    text << std::left << std::setw(40) << variable.name() << ' ' << std::setw(20)
         << variable.shape().ToString() << ' ' << std::right << std::setw(12);
    if (shape.ok()) {
      text << shape->num_elements();
      sums[is_trainable ? 0 : 1] += shape->num_elements();
    } else {
      text << '?';
    }
    text << (is_trainable ? "" : "  not trained") << '\n';
  }
  text << sums[0] << " parameters are trained, " << sums[1] << " are not\n";
  return text.str();
}

}  // namespace troupe::layers

#include "api/internal/layer_parts.h"

#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe::layers {

Output Dim(const Scope& scope, const Output& x, int axis) {
  if (!scope.ok() || !x.valid()) return Output();
  const PartialShape& shape = x.shape();
  if (!shape.unknown_rank() && shape.dim(axis) >= 0 && shape.dim(axis) <= INT32_MAX) {
    return Const(scope, static_cast<int32_t>(shape.dim(axis)));
  }
  return ops::StridedSlice(scope, ops::Shape(scope, x), {axis}, {axis + 1}, {1},
                           {.shrink_axis_mask = 1});
}

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
  return name.empty() ? DefaultVariableScope(scope, base) : VariableScope(scope, name);
}

Output Weights(const Scope& scope, std::string_view name, absl::Span<const int64_t> sizes,
               const VariableOptions& options) {
  const absl::StatusOr<Shape> shape = Shape::Create(sizes);
  scope.UpdateStatus(shape.status());
  if (!scope.ok()) return Output();
  const auto weights = GetPartitionedVariable(scope, name, *shape, options);
  // A loop takes the whole as an invariant.
  return weights.Value(scope.WithFlowContext(nullptr).WithNoControlDependencies());
}

Output Kernel(const Scope& scope, absl::Span<const int64_t> sizes, ElementType type,
              const WeightOptions& options, const char* name) {
  return Weights(scope, name, sizes,
                 {.initializer = options.kernel_initializer,
                  .regularizer = options.kernel_regularizer,
                  .constraint = options.kernel_constraint,
                  .trainable = options.trainable,
                  .type = type});
}

Output Finish(const Scope& scope, Output y, absl::Span<const int64_t> bias_sizes,
              const WeightOptions& options) {
  if (!scope.ok()) return Output();
  if (options.use_bias) {
    const Output bias =
        Weights(scope, "bias", bias_sizes,
                {.initializer = options.bias_initializer != nullptr ? options.bias_initializer
                                                                    : ZerosInitializer(),
                 .regularizer = options.bias_regularizer,
                 .constraint = options.bias_constraint,
                 .trainable = options.trainable,
                 .type = y.type()});
    if (!scope.ok()) return Output();
    y = bias_sizes.size() == 1 ? ops::BiasAdd(scope, y, bias) : ops::Add(scope, y, bias);
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

std::vector<int64_t> OfSpace(absl::Span<const int64_t> space) {
  std::vector<int64_t> all = {1};
  all.insert(all.end(), space.begin(), space.end());
  all.push_back(1);
  return all;
}

}  // namespace troupe::layers

#include "api/layers/pooling.h"

#include "api/internal/layer_parts.h"
#include "api/nn.h"
#include "api/ops.h"

namespace troupe::layers {

namespace {

Output Max(const Scope& scope, const Output& x, const std::vector<int64_t>& size,
           const std::vector<int64_t>& strides, const std::string& padding) {
  return ops::MaxPool(scope, x, size, strides, padding);
}
Output Average(const Scope& scope, const Output& x, const std::vector<int64_t>& size,
               const std::vector<int64_t>& strides, const std::string& padding) {
  return ops::AvgPool(scope, x, size, strides, padding);
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

/// The axes between batch and channels; none, with an error in the scope, unless there are.
std::vector<int32_t> SpaceAxes(const Scope& scope, const char* layer, const Output& x) {
  KnownDim(scope, layer, x, -1, 3);
  std::vector<int32_t> axes;
  for (int i = 1; scope.ok() && i + 1 < x.shape().rank(); ++i) axes.push_back(i);
  return axes;
}

}  // namespace

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
Output MaxPooling3D(const Scope& scope, const Output& x, std::array<int64_t, 3> size,
                    std::array<int64_t, 3> strides, const std::string& padding) {
  return ops::MaxPool3D(scope.WithOpName("max_pooling3d"), x, OfSpace(size), OfSpace(strides),
                        padding);
}
Output AveragePooling3D(const Scope& scope, const Output& x, std::array<int64_t, 3> size,
                        std::array<int64_t, 3> strides, const std::string& padding) {
  return ops::AvgPool3D(scope.WithOpName("average_pooling3d"), x, OfSpace(size), OfSpace(strides),
                        padding);
}

Output GlobalAveragePooling(const Scope& scope, const Output& x) {
  const Scope own = scope.NewSubScope("global_average_pooling");
  return ReduceMean(own, x, {.axes = SpaceAxes(own, "global_average_pooling", x)});
}
Output GlobalMaxPooling(const Scope& scope, const Output& x) {
  const Scope own = scope.NewSubScope("global_max_pooling");
  return ReduceMax(own, x, {.axes = SpaceAxes(own, "global_max_pooling", x)});
}

}  // namespace troupe::layers

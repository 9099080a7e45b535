#include "api/layers/convolution.h"

#include <algorithm>
#include <vector>

#include "api/internal/layer_parts.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe::layers {

namespace {

template <size_t N>
std::vector<int64_t> KernelSizes(const std::array<int64_t, N>& size, int64_t inputs,
                                 int64_t outputs) {
  std::vector<int64_t> sizes(size.begin(), size.end());
  sizes.insert(sizes.end(), {inputs, outputs});
  return sizes;
}

/// The shape of the transpose's result: in "SAME" padding `strides` times as large, else as large
/// as is needed to have x's size again.
template <size_t N>
Output GrownShape(const Scope& scope, const Output& x, int64_t filters,
                  const std::array<int64_t, N>& size, const ConvOptions<N>& options) {
  std::vector<Input> sizes = {Dim(scope, x, 0)};
  std::vector<int32_t> known = {static_cast<int32_t>(x.shape().dim(0))};
  for (size_t i = 0; i < N; ++i) {
    const int axis = static_cast<int>(i) + 1;
    const int32_t stride = static_cast<int32_t>(options.strides[i]);
    const int32_t more =
        options.padding == "VALID"
            ? static_cast<int32_t>(std::max<int64_t>(size[i] - options.strides[i], 0))
            : 0;
    const int64_t now = x.shape().dim(axis);
    known.push_back(now < 0 ? -1 : static_cast<int32_t>(now * stride + more));
    if (now < 0) {
      sizes.push_back(ops::Add(scope, ops::Mul(scope, Dim(scope, x, axis), stride), more));
    } else {
      sizes.push_back(known.back());
    }
  }
  sizes.push_back(static_cast<int32_t>(filters));
  known.push_back(static_cast<int32_t>(filters));
  if (std::find(known.begin(), known.end(), -1) != known.end()) return ops::Pack(scope, sizes);
  return Const(scope, Tensor::Vector<int32_t>(known));
}

/// `op` has the arguments of Conv2DBackpropInput.
template <size_t N, typename Op>
Output Transposed(const Scope& scope, const char* layer, const Output& x, int64_t filters,
                  const std::array<int64_t, N>& size, const ConvOptions<N>& options, Op op) {
  const Scope own = LayerScope(scope, options.name, layer);
  if (!HasRank(own, layer, x, N + 2)) return Output();
  const int64_t channels = KnownDim(own, layer, x, N + 1, N + 2);
  if (options.dilations != ConvOptions<N>::Ones()) {
    own.UpdateStatus(InvalidArgument(layer, ": dilations are not supported"));
  }
  const Output kernel = Kernel(own, KernelSizes(size, filters, channels), x.type(), options);
  if (!own.ok()) return Output();
  const Output y = op(own, GrownShape(own, x, filters, size, options), kernel, x,
                      OfSpace(options.strides), options.padding);
  return Finish(own, y, {filters}, options);
}

/// `op` has the arguments of Conv2D.
template <size_t N, typename Op>
Output Convolved(const Scope& scope, const char* layer, const Output& x, int64_t filters,
                 const std::array<int64_t, N>& size, const ConvOptions<N>& options, Op op) {
  const Scope own = LayerScope(scope, options.name, layer);
  if (!HasRank(own, layer, x, N + 2)) return Output();
  const int64_t channels = KnownDim(own, layer, x, N + 1, N + 2);
  const Output kernel = Kernel(own, KernelSizes(size, channels, filters), x.type(), options);
  if (!own.ok()) return Output();
  return Finish(own, op(own, kernel, OfSpace(options.strides), OfSpace(options.dilations)),
                {filters}, options);
}

/// `convolve(x, padding)` with dilations, for ops that have none: elements that are a dilation
/// apart become batches of their own. (As `tf.nn.with_space_to_batch`.)
template <size_t N, typename Convolve>
Output Dilated(const Scope& scope, const Output& x, const std::array<int64_t, N>& size,
               const ConvOptions<N>& options, Convolve convolve) {
  if (options.dilations == ConvOptions<N>::Ones()) return convolve(x, options.padding);
  const bool is_positive =
      *std::min_element(options.dilations.begin(), options.dilations.end()) > 0;
  if (!is_positive || options.strides != ConvOptions<N>::Ones()) {
    scope.UpdateStatus(
        InvalidArgument("a convolution's dilations must be positive, and its strides 1 with them"));
  }
  if (!scope.ok()) return Output();
  // What the convolution pads, and what is needed to divide the rest by the dilation.
  std::vector<int32_t> blocks, before;
  std::vector<Input> after, extra;
  for (size_t i = 0; i < N; ++i) {
    const int axis = static_cast<int>(i) + 1;
    const int64_t all = options.padding == "SAME" ? options.dilations[i] * (size[i] - 1) : 0;
    const int32_t block = static_cast<int32_t>(options.dilations[i]);
    const int32_t pad = static_cast<int32_t>(all);
    blocks.push_back(block);
    before.push_back(pad / 2);
    const Output length = ops::Add(scope, Dim(scope, x, axis), pad);
    const Output more = ops::FloorMod(scope, ops::Neg(scope, length), block);
    extra.push_back(more);
    after.push_back(ops::Add(scope, more, pad - pad / 2));
  }
  const auto pairs = [&](const Output& first, const Output& second) {
    return ops::Pack(scope, {first, second}, {.axis = 1});
  };
  const Output ahead = Const(scope, Tensor::Vector<int32_t>(before));
  const Output none = Const(scope, Tensor::Vector<int32_t>(std::vector<int32_t>(N, 0)));
  const Output block = Const(scope, Tensor::Vector<int32_t>(blocks));
  const Output apart = ops::SpaceToBatchND(scope, x, block, pairs(ahead, ops::Pack(scope, after)));
  return ops::BatchToSpaceND(scope, convolve(apart, "VALID"), block,
                             pairs(none, ops::Pack(scope, extra)));
}

/// x of one axis of space as one of two, the first of size 1.
Output Widened(const Scope& scope, const Output& x) { return ops::ExpandDims(scope, x, 1); }
Output Narrowed(const Scope& scope, const Output& x) {
  return ops::Squeeze(scope, x, {.squeeze_dims = {1}});
}

/// The depthwise convolution of `x`, [batch, space..., channels * multiplier], without a bias.
template <size_t N>
Output Depthwise(const Scope& scope, const Output& x, int64_t channels,
                 const std::array<int64_t, N>& size, const DepthwiseConvOptions<N>& options) {
  const Output kernel = Kernel(scope, KernelSizes(size, channels, options.depth_multiplier),
                               x.type(), options, "depthwise_kernel");
  if (!scope.ok()) return Output();
  return Dilated<N>(scope, x, size, options, [&](const Output& in, const std::string& padding) {
    if constexpr (N == 2) {
      return ops::DepthwiseConv2dNative(scope, in, kernel, OfSpace(options.strides), padding);
    } else {
      // The stride along the axis of size 1 changes nothing; the op wants equal ones.
      const int64_t stride = options.strides[0];
      return Narrowed(scope, ops::DepthwiseConv2dNative(scope, Widened(scope, in),
                                                        ops::ExpandDims(scope, kernel, 0),
                                                        {1, stride, stride, 1}, padding));
    }
  });
}

template <size_t N>
Output Separable(const Scope& scope, const char* layer, const Output& x, int64_t filters,
                 const std::array<int64_t, N>& size, const SeparableConvOptions<N>& options) {
  const Scope own = LayerScope(scope, options.name, layer);
  if (!HasRank(own, layer, x, N + 2)) return Output();
  const int64_t channels = KnownDim(own, layer, x, N + 1, N + 2);
  const Output deep = Depthwise<N>(own, x, channels, size, options);
  WeightOptions pointwise = options;
  pointwise.kernel_initializer = options.pointwise_initializer;
  pointwise.kernel_regularizer = options.pointwise_regularizer;
  pointwise.kernel_constraint = options.pointwise_constraint;
  const std::array<int64_t, N> one = ConvOptions<N>::Ones();
  const Output kernel = Kernel(own, KernelSizes(one, channels * options.depth_multiplier, filters),
                               x.type(), pointwise, "pointwise_kernel");
  if (!own.ok()) return Output();
  Output y;
  if constexpr (N == 1) {
    const Output wide = ops::ExpandDims(own, kernel, 0);
    y = Narrowed(own, ops::Conv2D(own, Widened(own, deep), wide, {1, 1, 1, 1}, "VALID"));
  } else {
    y = ops::Conv2D(own, deep, kernel, {1, 1, 1, 1}, "VALID");
  }
  return Finish(own, y, {filters}, options);
}

/// Positions of windows along an axis of a known size.
absl::StatusOr<int64_t> Positions(const char* layer, const Output& x, int axis, int64_t size,
                                  int64_t stride) {
  const int64_t length = x.shape().dim(axis);
  if (length >= size && size >= 1 && stride >= 1) return (length - size) / stride + 1;
  return InvalidArgument(layer, ": axis ", axis, " of the input's shape ", x.shape().ToString(),
                         " must have a known size of at least the window's, ", size,
                         ", and the stride ", stride, " must be positive");
}

template <size_t N>
Output LocallyConnected(const Scope& scope, const char* layer, const Output& x, int64_t filters,
                        const std::array<int64_t, N>& size, const ConvOptions<N>& options) {
  const Scope own = LayerScope(scope, options.name, layer);
  if (!HasRank(own, layer, x, N + 2)) return Output();
  int64_t inputs = KnownDim(own, layer, x, N + 1, N + 2);
  if (options.padding != "VALID" || options.dilations != ConvOptions<N>::Ones()) {
    own.UpdateStatus(InvalidArgument(layer, ": padding must be VALID, and dilations 1"));
  }
  std::vector<int64_t> sizes;  // Of the bias: those of the result.
  int64_t positions = 1;
  for (size_t i = 0; i < N && own.ok(); ++i) {
    const auto count = Positions(layer, x, static_cast<int>(i) + 1, size[i], options.strides[i]);
    own.UpdateStatus(count.status());
    if (!count.ok()) return Output();
    sizes.push_back(*count);
    positions *= *count;
    inputs *= size[i];
  }
  sizes.push_back(filters);
  const Output kernel = Kernel(own, {positions, inputs, filters}, x.type(), options);
  if (!own.ok()) return Output();
  std::vector<int64_t> window = OfSpace(size), strides = OfSpace(options.strides);
  if constexpr (N == 1) {
    window.insert(window.begin() + 1, 1);
    strides.insert(strides.begin() + 1, 1);
  }
  const Output patches = ops::ExtractImagePatches(own, N == 1 ? Widened(own, x) : x, window,
                                                  strides, {1, 1, 1, 1}, "VALID");
  const Output rows = ops::Reshape(
      own, patches, {-1, static_cast<int32_t>(positions), static_cast<int32_t>(inputs)});
  // One product of matrices for each position.
  const Output products = ops::BatchMatMulV2(own, ops::Transpose(own, rows, {1, 0, 2}), kernel);
  std::vector<int32_t> shape = {-1};
  for (const int64_t s : sizes) shape.push_back(static_cast<int32_t>(s));
  const Output y =
      ops::Reshape(own, ops::Transpose(own, products, {1, 0, 2}), Tensor::Vector<int32_t>(shape));
  return Finish(own, y, sizes, options);
}

}  // namespace

Output Conv1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
              const ConvOptions<1>& options) {
  return Convolved<1>(scope, "conv1d", x, filters, {size}, options,
                      [&](const Scope& s, const Output& kernel, const std::vector<int64_t>&,
                          const std::vector<int64_t>&) {
                        return Narrowed(
                            s, ops::Conv2D(s, Widened(s, x), ops::ExpandDims(s, kernel, 0),
                                           {1, 1, options.strides[0], 1}, options.padding,
                                           {.dilations = {1, 1, options.dilations[0], 1}}));
                      });
}

Output Conv2D(const Scope& scope, const Output& x, int64_t filters, std::array<int64_t, 2> size,
              const ConvOptions<2>& options) {
  return Convolved<2>(
      scope, "conv2d", x, filters, size, options,
      [&](const Scope& s, const Output& kernel, const auto& strides, const auto& dilations) {
        return ops::Conv2D(s, x, kernel, strides, options.padding, {.dilations = dilations});
      });
}

Output Conv3D(const Scope& scope, const Output& x, int64_t filters, std::array<int64_t, 3> size,
              const ConvOptions<3>& options) {
  return Convolved<3>(scope, "conv3d", x, filters, size, options,
                      [&](const Scope& s, const Output& kernel, const auto& strides, const auto&) {
                        return Dilated<3>(s, x, size, options,
                                          [&](const Output& in, const std::string& padding) {
                                            return ops::Conv3D(s, in, kernel, strides, padding);
                                          });
                      });
}

Output Conv2DTranspose(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 2> size, const ConvOptions<2>& options) {
  return Transposed(
      scope, "conv2d_transpose", x, filters, size, options,
      [](const auto&... arguments) { return ops::Conv2DBackpropInput(arguments...); });
}

Output Conv3DTranspose(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 3> size, const ConvOptions<3>& options) {
  return Transposed(
      scope, "conv3d_transpose", x, filters, size, options,
      [](const auto&... arguments) { return ops::Conv3DBackpropInputV2(arguments...); });
}

Output DepthwiseConv2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                       const DepthwiseConvOptions<2>& options) {
  const Scope own = LayerScope(scope, options.name, "depthwise_conv2d");
  if (!HasRank(own, "depthwise_conv2d", x, 4)) return Output();
  const int64_t channels = KnownDim(own, "depthwise_conv2d", x, 3, 4);
  const Output y = Depthwise<2>(own, x, channels, size, options);
  return Finish(own, y, {channels * options.depth_multiplier}, options);
}

Output SeparableConv1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
                       const SeparableConvOptions<1>& options) {
  return Separable<1>(scope, "separable_conv1d", x, filters, {size}, options);
}
Output SeparableConv2D(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 2> size, const SeparableConvOptions<2>& options) {
  return Separable<2>(scope, "separable_conv2d", x, filters, size, options);
}

Output LocallyConnected1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
                          const ConvOptions<1>& options) {
  return LocallyConnected<1>(scope, "locally_connected1d", x, filters, {size}, options);
}
Output LocallyConnected2D(const Scope& scope, const Output& x, int64_t filters,
                          std::array<int64_t, 2> size, const ConvOptions<2>& options) {
  return LocallyConnected<2>(scope, "locally_connected2d", x, filters, size, options);
}

}  // namespace troupe::layers

/// Convolutions. Part of `api/layers/layers.h`.
#ifndef TROUPE_API_LAYERS_CONVOLUTION_H_
#define TROUPE_API_LAYERS_CONVOLUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "api/layers/weight_options.h"
#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::layers {

/// `padding`: "VALID" or "SAME". Strides and dilations are 1 unless said otherwise; not both may be
/// above 1. `N` axes of space; x is [batch, space..., channels]. A value.
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

/// Convolutions over one, two or three axes: [batch, space..., filters]. Kernel: [size...,
/// channels, filters].
Output Conv1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
              const ConvOptions<1>& options = {});
Output Conv2D(const Scope& scope, const Output& x, int64_t filters, std::array<int64_t, 2> size,
              const ConvOptions<2>& options = {});
Output Conv3D(const Scope& scope, const Output& x, int64_t filters, std::array<int64_t, 3> size,
              const ConvOptions<3>& options = {});

/// The transpose of a convolution: space grows by the strides. Kernel: [size..., filters,
/// channels]. Dilations are not supported.
Output Conv2DTranspose(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 2> size, const ConvOptions<2>& options = {});
Output Conv3DTranspose(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 3> size, const ConvOptions<3>& options = {});

/// The members "kernel_..." are of "depthwise_kernel". Strides along all axes are equal. A value.
template <size_t N>
struct DepthwiseConvOptions : ConvOptions<N> {
  int64_t depth_multiplier = 1;  ///< Results of each channel.
};
/// Each channel by filters of its own: [batch, space..., channels * depth_multiplier], those of one
/// channel side by side. "depthwise_kernel": [size..., channels, depth_multiplier].
Output DepthwiseConv2D(const Scope& scope, const Output& x, std::array<int64_t, 2> size,
                       const DepthwiseConvOptions<2>& options = {});

template <size_t N>
struct SeparableConvOptions : DepthwiseConvOptions<N> {
  Initializer pointwise_initializer = nullptr;
  Regularizer pointwise_regularizer = nullptr;
  Constraint pointwise_constraint = nullptr;
};
/// A depthwise convolution, and then a convolution of size 1 over all channels: [batch, space...,
/// filters]. "pointwise_kernel": [1..., channels * depth_multiplier, filters]. (Chollet 2017.)
Output SeparableConv1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
                       const SeparableConvOptions<1>& options = {});
Output SeparableConv2D(const Scope& scope, const Output& x, int64_t filters,
                       std::array<int64_t, 2> size, const SeparableConvOptions<2>& options = {});

/// As convolutions, with a kernel of its own at each position; sizes of space must be known.
/// Kernel: [positions, product of size * channels, filters]; bias: [positions along each axis...,
/// filters]. InvalidArgument for padding other than "VALID", and for dilations.
Output LocallyConnected1D(const Scope& scope, const Output& x, int64_t filters, int64_t size,
                          const ConvOptions<1>& options = {});
Output LocallyConnected2D(const Scope& scope, const Output& x, int64_t filters,
                          std::array<int64_t, 2> size, const ConvOptions<2>& options = {});

}  // namespace troupe::layers
TROUPE_EXPORT_END

#endif  // TROUPE_API_LAYERS_CONVOLUTION_H_

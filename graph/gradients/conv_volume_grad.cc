// Gradients of depthwise convolutions and of convolutions of volumes, and of those gradients.
#include <string_view>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// The three ops of a convolution: forward, of the input and of the filter.
struct ConvOps {
  std::string_view forward, input, filter;
  bool is_depthwise;

  Output Add(GradientContext& g, std::string_view op, std::initializer_list<Output> inputs) const {
    return g.Op(op, inputs, [&](NodeSpec& spec) {
      CopyAttrs(g.node(), {"strides", "padding", "data_format", "dilations"}, spec);
      if (is_depthwise) CopyAttrs(g.node(), {"explicit_paddings"}, spec);
    });
  }
  Output Forward(GradientContext& g, Output x, Output f) const { return Add(g, forward, {x, f}); }
  Output Input(GradientContext& g, Output x, Output f, Output dy) const {
    return Add(g, input, {g.Shape(x), f, dy});
  }
  Output Filter(GradientContext& g, Output x, Output f, Output dy) const {
    return Add(g, filter, {x, g.Shape(f), dy});
  }
};

constexpr ConvOps kDepthwise = {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
                                "DepthwiseConv2dNativeBackpropFilter", true};
constexpr ConvOps kVolume = {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", false};

template <const ConvOps& kOps>
void ForwardGrad(GradientContext& g) {
  if (g.wanted(0)) g.set(0, kOps.Input(g, g.input(0), g.input(1), g.grad()));
  if (g.wanted(1)) g.set(1, kOps.Filter(g, g.input(0), g.input(1), g.grad()));
}
REGISTER_GRADIENT("DepthwiseConv2dNative", ForwardGrad<kDepthwise>);
REGISTER_GRADIENT("Conv3D", ForwardGrad<kVolume>);

// f(sizes, filter, dy).
template <const ConvOps& kOps>
void BackpropInputGrad(GradientContext& g) {
  if (g.wanted(1)) g.set(1, kOps.Filter(g, g.grad(), g.input(1), g.input(2)));
  if (g.wanted(2)) g.set(2, kOps.Forward(g, g.grad(), g.input(1)));
}
REGISTER_GRADIENT("DepthwiseConv2dNativeBackpropInput", BackpropInputGrad<kDepthwise>);
REGISTER_GRADIENT("Conv3DBackpropInputV2", BackpropInputGrad<kVolume>);

// f(x, sizes, dy).
template <const ConvOps& kOps>
void BackpropFilterGrad(GradientContext& g) {
  if (g.wanted(0)) g.set(0, kOps.Input(g, g.input(0), g.grad(), g.input(2)));
  if (g.wanted(2)) g.set(2, kOps.Forward(g, g.input(0), g.grad()));
}
REGISTER_GRADIENT("DepthwiseConv2dNativeBackpropFilter", BackpropFilterGrad<kDepthwise>);
REGISTER_GRADIENT("Conv3DBackpropFilterV2", BackpropFilterGrad<kVolume>);

}  // namespace
}  // namespace troupe::gradients

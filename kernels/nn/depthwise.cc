// DepthwiseConv2dNative and its gradients: convolutions with one group for each channel.
#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_shape.h"
#include "kernels/nn/depthwise_shape.h"

namespace troupe {
namespace {

class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(KernelConstruction& construction, ConvOp op, absl::Status* status) : engine_(op) {
    *status = attributes_.Read(construction, /*only_nhwc=*/true);
  }

 protected:
  DepthwiseAttributes attributes_;
  ConvEngine engine_;
};

class DepthwiseConvKernel final : public DepthwiseKernel {
 public:
  DepthwiseConvKernel(KernelConstruction& construction, absl::Status* status)
      : DepthwiseKernel(construction, ConvOp::kForward, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape,
                            attributes_.Resolve(input.shape(), filter.shape()));
    return engine_.Run(ctx, shape, input, filter, shape.output_shape(), ctx.InputIsConstant(1));
  }
};

class DepthwiseBackpropInputKernel final : public DepthwiseKernel {
 public:
  DepthwiseBackpropInputKernel(KernelConstruction& construction, absl::Status* status)
      : DepthwiseKernel(construction, ConvOp::kBackwardInput, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape input, ReadShapeVector(ctx.input(0), "input_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input, filter.shape()));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return engine_.Run(ctx, shape, filter, gradient, input, ctx.InputIsConstant(1));
  }
};

class DepthwiseBackpropFilterKernel final : public DepthwiseKernel {
 public:
  DepthwiseBackpropFilterKernel(KernelConstruction& construction, absl::Status* status)
      : DepthwiseKernel(construction, ConvOp::kBackwardFilter, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape filter, ReadShapeVector(ctx.input(1), "filter_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input.shape(), filter));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return engine_.Run(ctx, shape, input, gradient, filter, false);
  }
};

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types("T", FloatTypes()).Cost(KernelCost::kExpensive);
}

REGISTER_KERNEL(Spec("DepthwiseConv2dNative"), MakeKernel<DepthwiseConvKernel>);
REGISTER_KERNEL(Spec("DepthwiseConv2dNativeBackpropInput"),
                MakeKernel<DepthwiseBackpropInputKernel>);
REGISTER_KERNEL(Spec("DepthwiseConv2dNativeBackpropFilter"),
                MakeKernel<DepthwiseBackpropFilterKernel>);

}  // namespace
}  // namespace troupe

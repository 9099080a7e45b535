// Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter.
#include <utility>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

class ConvKernel : public Kernel {
 public:
  ConvKernel(KernelConstruction& construction, ConvOp op, absl::Status* status) : engine_(op) {
    *status = attributes_.Read(construction, op, /*only_nhwc=*/true);
  }

 protected:
  ConvAttributes attributes_;
  ConvEngine engine_;
};

class Conv2DKernel final : public ConvKernel {
 public:
  Conv2DKernel(KernelConstruction& construction, absl::Status* status)
      : ConvKernel(construction, ConvOp::kForward, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape,
                            attributes_.Resolve(input.shape(), filter.shape()));
    return engine_.Run(ctx, shape, input, filter, shape.output_shape(), ctx.InputIsConstant(1));
  }
};

// Checks the gradient of a convolution's output against what the convolution gives.
absl::Status CheckGradient(const ConvShape& shape, const Shape& gradient) {
  if (shape.groups != 1) {
    return InvalidArgument("gradients of grouped convolutions are not supported on the CPU (depth ",
                           shape.in_depth, ", filter's depth ", shape.filter_depth(), ")");
  }
  return CheckConvGradient(shape, gradient);
}

class Conv2DBackpropInputKernel final : public ConvKernel {
 public:
  Conv2DBackpropInputKernel(KernelConstruction& construction, absl::Status* status)
      : ConvKernel(construction, ConvOp::kBackwardInput, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& filter = ctx.input(1);
    const Tensor& gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape input, ReadConvInputSizes(ctx.input(0), filter.shape(),
                                                                  gradient.shape(), false));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input, filter.shape()));
    TROUPE_RETURN_IF_ERROR(CheckGradient(shape, gradient.shape()));
    return engine_.Run(ctx, shape, filter, gradient, input, ctx.InputIsConstant(1));
  }
};

class Conv2DBackpropFilterKernel final : public ConvKernel {
 public:
  Conv2DBackpropFilterKernel(KernelConstruction& construction, absl::Status* status)
      : ConvKernel(construction, ConvOp::kBackwardFilter, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape filter, ReadShapeVector(ctx.input(1), "filter_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input.shape(), filter));
    TROUPE_RETURN_IF_ERROR(CheckGradient(shape, gradient.shape()));
    return engine_.Run(ctx, shape, input, gradient, filter, false);
  }
};

KernelSpec ConvSpec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Cost(KernelCost::kExpensive);
}

std::vector<ElementType> FloatAndInt32Types() {
  std::vector<ElementType> types = FloatTypes();
  types.push_back(ElementType::kInt32);
  return types;
}

REGISTER_KERNEL(ConvSpec("Conv2D", FloatAndInt32Types()), MakeKernel<Conv2DKernel>);
REGISTER_KERNEL(ConvSpec("Conv2DBackpropInput", FloatAndInt32Types()),
                MakeKernel<Conv2DBackpropInputKernel>);
REGISTER_KERNEL(ConvSpec("Conv2DBackpropFilter", FloatTypes()),
                MakeKernel<Conv2DBackpropFilterKernel>);

}  // namespace
}  // namespace troupe

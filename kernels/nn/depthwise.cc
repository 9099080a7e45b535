// DepthwiseConv2dNative and its gradients: convolutions with one group for each channel.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(KernelConstruction& construction, ConvOp op, absl::Status* status) : engine_(op) {
    *status = Read(construction);
  }

 protected:
  absl::StatusOr<ConvShape> Resolve(const Shape& input, const Shape& filter) const {
    if (input.rank() != 4 || filter.rank() != 4) {
      return InvalidArgument("the input and the filter must be of rank 4, got shapes ",
                             input.ToString(), " and ", filter.ToString());
    }
    ConvShape s;
    s.batch = input.dim(0);
    s.in_depth = input.dim(3);
    if (filter.dim(2) != s.in_depth) {
      return InvalidArgument("the input of shape ", input.ToString(), " and the filter of shape ",
                             filter.ToString(), " must have the same depth");
    }
    s.out_depth = MultiplyWithoutOverflow(s.in_depth, filter.dim(3));
    if (s.out_depth < 0) {
      return InvalidArgument("the filter of shape ", filter.ToString(), " is too large");
    }
    s.groups = std::max<int64_t>(1, s.in_depth);
    s.rows = {
        .input = input.dim(1), .size = filter.dim(0), .stride = stride_, .dilation = row_dilation_};
    s.columns = {.input = input.dim(2),
                 .size = filter.dim(1),
                 .stride = stride_,
                 .dilation = column_dilation_};
    TROUPE_RETURN_IF_ERROR(
        SlideBoth(padding_, paddings_, s.batch, s.out_depth, &s.rows, &s.columns));
    return s;
  }

  ConvEngine engine_;

 private:
  absl::Status Read(const KernelConstruction& construction) {
    if (construction.Attr<std::string>("data_format") != "NHWC") {
      return absl::UnimplementedError(
          absl::StrCat(construction.op(), " takes the data format NHWC only on this device"));
    }
    std::vector<int64_t> strides, dilations;
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &strides));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("dilations", &dilations));
    if (strides.size() != 4 || dilations.size() != 4) {
      return InvalidArgument("strides and dilations must have 4 elements, got ", strides.size(),
                             " and ", dilations.size());
    }
    for (const std::vector<int64_t>& steps : {strides, dilations}) {
      if (steps[0] != 1 || steps[3] != 1) {
        return InvalidArgument("strides and dilations of batch and depth must be 1");
      }
    }
    if (strides[1] != strides[2]) {
      return InvalidArgument("the strides of rows and columns must be equal, got ", strides[1],
                             " and ", strides[2]);
    }
    stride_ = strides[1];
    row_dilation_ = dilations[1];
    column_dilation_ = dilations[2];
    if (stride_ <= 0 || row_dilation_ <= 0 || column_dilation_ <= 0) {
      return InvalidArgument("strides and dilations must be positive, got ", stride_, ", ",
                             row_dilation_, " and ", column_dilation_);
    }
    return ReadPadding(construction, &padding_, &paddings_);
  }

  int64_t stride_ = 1, row_dilation_ = 1, column_dilation_ = 1;
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> paddings_;
};

class DepthwiseConvKernel final : public DepthwiseKernel {
 public:
  DepthwiseConvKernel(KernelConstruction& construction, absl::Status* status)
      : DepthwiseKernel(construction, ConvOp::kForward, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, Resolve(input.shape(), filter.shape()));
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
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, Resolve(input, filter.shape()));
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
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, Resolve(input.shape(), filter));
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

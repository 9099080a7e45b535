// Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter.
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/widen.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

class ConvKernel : public Kernel {
 public:
  ConvKernel(KernelConstruction& construction, ConvOp op, absl::Status* status) : op_(op) {
    *status = attributes_.Read(construction, op, /*only_nhwc=*/true);
  }

 protected:
  // Output 0 from two tensors (input and filter, or filter and gradient, or input and gradient).
  absl::Status Run(KernelContext& ctx, const ConvShape& shape, const Tensor& a, const Tensor& b,
                   const Shape& result) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), result));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (a.num_elements() == 0 || b.num_elements() == 0) {
      std::memset(out->mutable_raw_data(), 0, out->bytes());
      return absl::OkStatus();
    }
    switch (a.type()) {
      case ElementType::kFloat:
        return RunFloat(ctx, shape, a, b, out, FilterIsConstant(ctx));
      case ElementType::kDouble:
        RunDirect<double>(ctx, shape, a, b, out);
        return absl::OkStatus();
      case ElementType::kInt32:
        RunDirect<int32_t>(ctx, shape, a, b, out);
        return absl::OkStatus();
      default: {
        TROUPE_ASSIGN_OR_RETURN(const Tensor wide_a, Widened(ctx, a));
        TROUPE_ASSIGN_OR_RETURN(const Tensor wide_b, Widened(ctx, b));
        TROUPE_ASSIGN_OR_RETURN(Tensor wide_out, ctx.AllocateTemp(ElementType::kFloat, result));
        TROUPE_RETURN_IF_ERROR(RunFloat(ctx, shape, wide_a, wide_b, &wide_out, false));
        NarrowTo(ctx, wide_out, out);
        return absl::OkStatus();
      }
    }
  }

  ConvAttributes attributes_;

 private:
  // The filter is input 1 of the convolution and of the gradient of its input.
  bool FilterIsConstant(KernelContext& ctx) const {
    return op_ != ConvOp::kBackwardFilter && ctx.InputIsConstant(1);
  }

  absl::Status RunFloat(KernelContext& ctx, const ConvShape& shape, const Tensor& a,
                        const Tensor& b, Tensor* out, bool filter_is_constant) {
    const Tensor& filter_tensor = op_ == ConvOp::kForward ? b : a;
    const ConvFilter filter{filter_tensor.unchecked_data<float>(),
                            filter_is_constant ? &filter_tensor : nullptr};
    const float* x = a.unchecked_data<float>();
    const float* y = b.unchecked_data<float>();
    float* z = out->mutable_data<float>();
    const bool narrow = NarrowConvPays(op_, shape);
    switch (op_) {
      case ConvOp::kForward:
        return narrow ? NarrowConvForward(ctx, shape, x, filter, &narrow_filter_, z)
                      : onednn_.Forward(ctx, shape, x, filter, z);
      case ConvOp::kBackwardInput:
        return narrow ? NarrowConvBackwardInput(ctx, shape, x, y, z)
                      : onednn_.BackwardInput(ctx, shape, filter, y, z);
      case ConvOp::kBackwardFilter:
        return narrow ? NarrowConvBackwardFilter(ctx, shape, x, y, z)
                      : onednn_.BackwardFilter(ctx, shape, x, y, z);
    }
    return absl::OkStatus();
  }

  template <typename T>
  void RunDirect(KernelContext& ctx, const ConvShape& shape, const Tensor& a, const Tensor& b,
                 Tensor* out) {
    const T* x = a.unchecked_data<T>();
    const T* y = b.unchecked_data<T>();
    T* z = out->mutable_data<T>();
    switch (op_) {
      case ConvOp::kForward:
        return DirectConvForward(ctx, shape, x, y, z);
      case ConvOp::kBackwardInput:
        return DirectConvBackwardInput(ctx, shape, x, y, z);
      case ConvOp::kBackwardFilter:
        return DirectConvBackwardFilter(ctx, shape, x, y, z);
    }
  }

  const ConvOp op_;
  OneDnnConv onednn_;
  PackedFilters<NarrowLayout> narrow_filter_;
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
    return Run(ctx, shape, input, filter, shape.output_shape());
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
    return Run(ctx, shape, filter, gradient, input);
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
    return Run(ctx, shape, input, gradient, filter);
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

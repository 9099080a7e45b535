// Conv3D and its gradients, both versions: the second takes the size of what it gives as a vector,
// the first as the shape of a tensor.
#include <utility>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_windows.h"

namespace troupe {
namespace {

class VolumeConvKernel : public Kernel {
 public:
  VolumeConvKernel(KernelConstruction& construction, ConvOp op, absl::Status* status)
      : engine_(op), sizes_are_shape_(!construction.attrs().Has("data_format")) {
    *status = windows_.ReadVolume(construction, /*is_cpu=*/true);
  }

 protected:
  /// The shape of what a gradient kernel gives, which its input `i` tells.
  absl::StatusOr<Shape> ReadSizes(const KernelContext& ctx, int i, const char* name) const {
    if (sizes_are_shape_) return ctx.input(i).shape();
    return ReadShapeVector(ctx.input(i), name);
  }

  ConvWindows windows_;
  ConvEngine engine_;

 private:
  const bool sizes_are_shape_;
};

class Conv3DKernel final : public VolumeConvKernel {
 public:
  Conv3DKernel(KernelConstruction& construction, absl::Status* status)
      : VolumeConvKernel(construction, ConvOp::kForward, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, windows_.Resolve(input.shape(), filter.shape()));
    if (filter.num_elements() == 0) {
      return InvalidArgument("the filter must have elements, got shape ",
                             filter.shape().ToString());
    }
    return engine_.Run(ctx, shape, input, filter, shape.output_shape(), ctx.InputIsConstant(1));
  }
};

class Conv3DBackpropInputKernel final : public VolumeConvKernel {
 public:
  Conv3DBackpropInputKernel(KernelConstruction& construction, absl::Status* status)
      : VolumeConvKernel(construction, ConvOp::kBackwardInput, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape input, ReadSizes(ctx, 0, "input_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, windows_.Resolve(input, filter.shape()));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return engine_.Run(ctx, shape, filter, gradient, input, ctx.InputIsConstant(1));
  }
};

class Conv3DBackpropFilterKernel final : public VolumeConvKernel {
 public:
  Conv3DBackpropFilterKernel(KernelConstruction& construction, absl::Status* status)
      : VolumeConvKernel(construction, ConvOp::kBackwardFilter, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape filter, ReadSizes(ctx, 1, "filter_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, windows_.Resolve(input.shape(), filter));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return engine_.Run(ctx, shape, input, gradient, filter, false);
  }
};

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Cost(KernelCost::kExpensive);
}
const std::vector<ElementType>& OldTypes() {
  static const auto* types =
      new std::vector<ElementType>{ElementType::kHalf, ElementType::kFloat, ElementType::kDouble};
  return *types;
}

REGISTER_KERNEL(Spec("Conv3D", FloatTypes()), MakeKernel<Conv3DKernel>);
REGISTER_KERNEL(Spec("Conv3DBackpropInput", OldTypes()), MakeKernel<Conv3DBackpropInputKernel>);
REGISTER_KERNEL(Spec("Conv3DBackpropInputV2", FloatTypes()), MakeKernel<Conv3DBackpropInputKernel>);
REGISTER_KERNEL(Spec("Conv3DBackpropFilter", OldTypes()), MakeKernel<Conv3DBackpropFilterKernel>);
REGISTER_KERNEL(Spec("Conv3DBackpropFilterV2", FloatTypes()),
                MakeKernel<Conv3DBackpropFilterKernel>);

}  // namespace
}  // namespace troupe

/// Conv3D and its gradients, both versions, for every type of device: the second version takes the
/// size of what it gives as a vector, the first as the shape of a tensor.
#ifndef TROUPE_KERNELS_NN_VOLUME_CONV_H_
#define TROUPE_KERNELS_NN_VOLUME_CONV_H_

#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"
#include "kernels/nn/conv_windows.h"

namespace troupe {

/// `Base`, a kernel made of a ConvOp, computes: `Prepare` says whether it can, `Run` makes output 0
/// of two tensors (input and filter, filter and gradient, or input and gradient).
template <typename Base, bool kIsCpu>
class VolumeConvKernel : public Base {
 public:
  VolumeConvKernel(KernelConstruction& construction, ConvOp op, absl::Status* status)
      : Base(op), sizes_are_shape_(!construction.attrs().Has("data_format")) {
    *status = windows_.ReadVolume(construction, kIsCpu);
    if (status->ok()) *status = this->Prepare();
  }

 protected:
  /// The shape of what a gradient kernel gives, which its input `i` tells.
  absl::StatusOr<Shape> ReadSizes(const KernelContext& ctx, int i, const char* name) const {
    if (sizes_are_shape_) return ctx.input(i).shape();
    return ReadShapeVector(ctx.input(i), name);
  }

  ConvWindows windows_;

 private:
  const bool sizes_are_shape_;
};

template <typename Base, bool kIsCpu>
class Conv3DKernel final : public VolumeConvKernel<Base, kIsCpu> {
 public:
  Conv3DKernel(KernelConstruction& construction, absl::Status* status)
      : VolumeConvKernel<Base, kIsCpu>(construction, ConvOp::kForward, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape,
                            this->windows_.Resolve(input.shape(), filter.shape()));
    if (filter.num_elements() == 0) {
      return InvalidArgument("the filter must have elements, got shape ",
                             filter.shape().ToString());
    }
    return this->Run(ctx, shape, input, filter, shape.output_shape());
  }
};

template <typename Base, bool kIsCpu>
class Conv3DBackpropInputKernel final : public VolumeConvKernel<Base, kIsCpu> {
 public:
  Conv3DBackpropInputKernel(KernelConstruction& construction, absl::Status* status)
      : VolumeConvKernel<Base, kIsCpu>(construction, ConvOp::kBackwardInput, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape input, this->ReadSizes(ctx, 0, "input_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, this->windows_.Resolve(input, filter.shape()));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return this->Run(ctx, shape, filter, gradient, input);
  }
};

template <typename Base, bool kIsCpu>
class Conv3DBackpropFilterKernel final : public VolumeConvKernel<Base, kIsCpu> {
 public:
  Conv3DBackpropFilterKernel(KernelConstruction& construction, absl::Status* status)
      : VolumeConvKernel<Base, kIsCpu>(construction, ConvOp::kBackwardFilter, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape filter, this->ReadSizes(ctx, 1, "filter_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, this->windows_.Resolve(input.shape(), filter));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return this->Run(ctx, shape, input, gradient, filter);
  }
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_VOLUME_CONV_H_

// Ops that make tensors of equal elements: Fill, ZerosLike, OnesLike.
#include <complex>

#include "kernels/array/layout_ops.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe::layout {

absl::Status Fill(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  if (value.rank() > 1 || value.num_elements() != 1) {
    return InvalidArgument("value must be a scalar, got shape ", value.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "dims"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, value.type(), shape));
  FillElements(ctx, value.type(), out->mutable_raw_data(), out->num_elements(), value.raw_data());
  return absl::OkStatus();
}

absl::Status ZerosLike(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
  return absl::OkStatus();
}

namespace {

class OnesLikeKernel final : public Kernel {
 public:
  OnesLikeKernel(KernelConstruction& construction, absl::Status* status) {
    const ElementType type = construction.input_type(0);
    one_ = Tensor::Uninitialized(type, Shape());
    *status = SwitchNumber<bool>(type, [&]<typename T>() {
      *one_.mutable_data<T>() = T(1.0f);
      return absl::OkStatus();
    });
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
    FillElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements(), one_.raw_data());
    return absl::OkStatus();
  }

 private:
  Tensor one_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> OnesLike(KernelConstruction& construction) {
  return MakeKernel<OnesLikeKernel>(construction);
}

}  // namespace troupe::layout

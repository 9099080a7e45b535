// LRN and LRNGrad of GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/lrn.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/nn/lrn_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a local response normalization";

class LrnKernel : public OneTypeKernel {
 public:
  LrnKernel(KernelConstruction& construction, absl::Status* status)
      : OneTypeKernel(construction, status) {
    if (status->ok()) *status = attributes_.Read(construction);
  }

 protected:
  LrnAttributes attributes_;
};

class LrnForwardKernel final : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_RETURN_IF_ERROR(CheckLrnShape(x.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), x.shape()));
    if (y->num_elements() == 0) return absl::OkStatus();
    return CudaStatus(LaunchLrn(type_, attributes_.FormFor(x.dim(3)), x.num_elements() / x.dim(3),
                                x.raw_data(), y->mutable_raw_data(), StreamOf(ctx)),
                      kWhat);
  }
};

class LrnGradKernel final : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
    TROUPE_RETURN_IF_ERROR(CheckLrnGradShapes(dy.shape(), x.shape(), y.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.type(), x.shape()));
    const int64_t n = dx->num_elements();
    if (n == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(Tensor scratch, ctx.AllocateTemp(ElementType::kFloat, Shape({2 * n})));
    return CudaStatus(
        LaunchLrnGrad(type_, attributes_.FormFor(x.dim(3)), n / x.dim(3), dy.raw_data(),
                      x.raw_data(), y.raw_data(), scratch.mutable_data<float>(),
                      dx->mutable_raw_data(), StreamOf(ctx)),
        kWhat);
  }
};

}  // namespace

void RegisterLrn(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types(
        "T", {ElementType::kHalf, ElementType::kBfloat16, ElementType::kFloat});
  };
  extension.Kernel(spec("LRN"), MakeKernel<LrnForwardKernel>);
  extension.Kernel(spec("LRNGrad"), MakeKernel<LrnGradKernel>);
}

}  // namespace troupe::cuda

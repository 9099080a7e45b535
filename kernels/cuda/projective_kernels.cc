// ImageProjectiveTransformV2 and V3 on GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/projective.h"
#include "kernels/image/projective.h"

namespace troupe::cuda {
namespace {

class CudaProjectiveKernel final : public ProjectiveKernel {
 public:
  using ProjectiveKernel::ProjectiveKernel;

 private:
  absl::Status Project(KernelContext& ctx, const Sizes& sizes, Tensor* out) override {
    const Tensor& images = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(images.type()));
    const Projection projection{images.dim(0),
                                images.dim(1),
                                images.dim(2),
                                images.dim(3),
                                sizes.height,
                                sizes.width,
                                ctx.input(1).unchecked_data<float>(),
                                sizes.one_transform ? 0 : 8,
                                bilinear_,
                                outside_,
                                sizes.fill_value};
    return CudaStatus(LaunchProjection(type, projection, images.raw_data(), out->mutable_raw_data(),
                                       StreamOf(ctx)),
                      "transforming images");
  }
};

}  // namespace

void RegisterProjective(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op)
        .Device("GPU")
        .Types("dtype", {ElementType::kUint8, ElementType::kInt32, ElementType::kInt64,
                         ElementType::kHalf, ElementType::kFloat, ElementType::kDouble})
        .HostMemory("output_shape");
  };
  extension.Kernel(spec("ImageProjectiveTransformV2"), MakeKernel<CudaProjectiveKernel>);
  extension.Kernel(spec("ImageProjectiveTransformV3").HostMemory("fill_value"),
                   MakeKernel<CudaProjectiveKernel>);
}

}  // namespace troupe::cuda

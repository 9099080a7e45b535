// CropAndResize and its gradients on GPUs.
#include <string>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/crop.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/image/crop_shape.h"

namespace troupe::cuda {
namespace {

absl::Status BadBox(const int64_t* values) {
  return values[2] < 0 ? InfiniteCropBox(values[0]) : BadCropIndex(values[0], values[1], values[2]);
}

class CropKernelBase : public Kernel {
 public:
  CropKernelBase(KernelConstruction& construction, ElementType type, absl::Status* status)
      : type_(type),
        nearest_(construction.attrs().GetOr<std::string>("method", "bilinear") == "nearest") {
    const absl::StatusOr<Number> number = NumberOf(type);
    *status = number.status();
    if (number.ok()) number_ = *number;
  }

 protected:
  /// Has the boxes checked.
  absl::StatusOr<Crops> CropsOf(const KernelContext& ctx, const CropShape& s,
                                const CropBoxes& boxes) const {
    const Crops crops{s.batch,
                      s.height,
                      s.width,
                      s.channels,
                      s.boxes,
                      s.crop_height,
                      s.crop_width,
                      boxes.boxes.unchecked_data<float>(),
                      boxes.indices.unchecked_data<int32_t>(),
                      nearest_};
    TROUPE_ASSIGN_OR_RETURN(const LateCheck check, CheckLate(ctx, BadBox));
    TROUPE_RETURN_IF_ERROR(Launched(LaunchCheckCrops(crops, check, StreamOf(ctx))));
    return crops;
  }
  static absl::Status Launched(cudaError_t error) { return CudaStatus(error, "crops of images"); }

  const ElementType type_;
  const bool nearest_;
  Number number_ = Number::kFloat;
};

class CropKernel final : public CropKernelBase {
 public:
  CropKernel(KernelConstruction& construction, absl::Status* status)
      : CropKernelBase(construction, construction.input_type(0), status),
        outside_(construction.Attr<float>("extrapolation_value")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const CropBoxes boxes{ctx.input(1), ctx.input(2)};
    TROUPE_ASSIGN_OR_RETURN(const CropShape s, CropShapeOf(ctx.input(0), boxes, ctx.input(3)));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kFloat, s.crops_shape()));
    TROUPE_ASSIGN_OR_RETURN(const Crops crops, CropsOf(ctx, s, boxes));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(LaunchCrop(number_, crops, ctx.input(0).raw_data(), outside_,
                               out->mutable_data<float>(), StreamOf(ctx)));
  }

 private:
  const float outside_;
};

class CropGradImageKernel final : public CropKernelBase {
 public:
  CropGradImageKernel(KernelConstruction& construction, absl::Status* status)
      : CropKernelBase(construction, construction.output_type(0), status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    const CropBoxes boxes{ctx.input(1), ctx.input(2)};
    TROUPE_ASSIGN_OR_RETURN(const CropShape s, CropGradImageShapeOf(grads, boxes, ctx.input(3)));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, s.image_shape()));
    TROUPE_ASSIGN_OR_RETURN(const Crops crops, CropsOf(ctx, s, boxes));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(LaunchCropGradImage(number_, crops, grads.unchecked_data<float>(),
                                        out->mutable_raw_data(), StreamOf(ctx)));
  }
};

class CropGradBoxesKernel final : public CropKernelBase {
 public:
  CropGradBoxesKernel(KernelConstruction& construction, absl::Status* status)
      : CropKernelBase(construction, construction.input_type(1), status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &grads = ctx.input(0), &image = ctx.input(1);
    const CropBoxes boxes{ctx.input(2), ctx.input(3)};
    TROUPE_ASSIGN_OR_RETURN(const CropShape s, CropGradBoxesShapeOf(grads, image, boxes));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kFloat, Shape({s.boxes, 4})));
    TROUPE_ASSIGN_OR_RETURN(const Crops crops, CropsOf(ctx, s, boxes));
    if (out->num_elements() == 0) return absl::OkStatus();
    return Launched(LaunchCropGradBoxes(number_, crops, grads.unchecked_data<float>(),
                                        image.raw_data(), out->mutable_data<float>(),
                                        StreamOf(ctx)));
  }
};

}  // namespace

void RegisterCrop(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types(
        "T", {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble});
  };
  extension.Kernel(spec("CropAndResize").HostMemory("crop_size"), MakeKernel<CropKernel>);
  extension.Kernel(spec("CropAndResizeGradImage").HostMemory("image_size"),
                   MakeKernel<CropGradImageKernel>);
  extension.Kernel(spec("CropAndResizeGradBoxes"), MakeKernel<CropGradBoxesKernel>);
}

}  // namespace troupe::cuda

// ResizeBilinear, ResizeNearestNeighbor and their gradients on GPUs.
#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/resize.h"
#include "kernels/image/resize_shape.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "resizing images";

class ResizeKernel : public Kernel {
 public:
  ResizeKernel(KernelConstruction& construction, absl::Status* status)
      : mode_(ResizeModeOf(construction)), out_type_(construction.output_type(0)) {
    const absl::StatusOr<Number> in = NumberOf(construction.input_type(0));
    const absl::StatusOr<Number> out = NumberOf(out_type_);
    *status = in.ok() ? out.status() : in.status();
    if (status->ok()) in_ = *in, out_ = *out;
  }

 protected:
  Resizing ResizingOf(const ResizeShape& s, bool nearest) const {
    const auto axis = [&](int64_t from, int64_t to) {
      return ResizedAxis{from,
                         to,
                         ResizeScale(from, to, mode_.align_corners),
                         mode_.align_corners,
                         mode_.half_pixel_centers,
                         nearest};
    };
    return {s.batch, s.channels, axis(s.from_height, s.height), axis(s.from_width, s.width)};
  }

  /// Fills output 0 from the gradients in input 0.
  absl::Status Back(KernelContext& ctx, const ResizeShape& s, bool nearest) const {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out, ctx.AllocateOutput(
                          0, out_type_, Shape({s.batch, s.from_height, s.from_width, s.channels})));
    if (out->num_elements() == 0) return absl::OkStatus();
    const ElementType sum_type =
        in_ == Number::kDouble ? ElementType::kDouble : ElementType::kFloat;
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch,
        ctx.AllocateTemp(sum_type, Shape({s.batch, s.height, s.from_width, s.channels})));
    return CudaStatus(
        LaunchResizeGrad(in_, out_, ResizingOf(s, nearest), ctx.input(0).raw_data(),
                         scratch.mutable_raw_data(), out->mutable_raw_data(), StreamOf(ctx)),
        kWhat);
  }

  const ResizeMode mode_;
  const ElementType out_type_;
  Number in_ = Number::kFloat, out_ = Number::kFloat;
};

class BilinearKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, ResizeShapeOf(images, ctx.input(1), mode_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kFloat,
                                               Shape({s.batch, s.height, s.width, s.channels})));
    if (out->num_elements() == 0) return absl::OkStatus();
    return CudaStatus(LaunchResizeBilinear(in_, ResizingOf(s, /*nearest=*/false), images.raw_data(),
                                           out->mutable_data<float>(), StreamOf(ctx)),
                      kWhat);
  }
};

class BilinearGradKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s,
                            ResizeGradShapeOf(ctx.input(0), ctx.input(1), mode_));
    return Back(ctx, s, /*nearest=*/false);
  }
};

class NearestKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, NearestShapeOf(images, ctx.input(1), mode_));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out,
        ctx.AllocateOutput(0, images.type(), Shape({s.batch, s.height, s.width, s.channels})));
    if (out->num_elements() == 0) return absl::OkStatus();
    return CudaStatus(LaunchResizeNearest(static_cast<int64_t>(ElementSize(images.type())),
                                          ResizingOf(s, /*nearest=*/true), images.raw_data(),
                                          out->mutable_raw_data(), StreamOf(ctx)),
                      kWhat);
  }
};

class NearestGradKernel final : public ResizeKernel {
 public:
  using ResizeKernel::ResizeKernel;

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, NearestGradShapeOf(ctx.input(0), ctx.input(1)));
    return Back(ctx, s, /*nearest=*/true);
  }
};

}  // namespace

void RegisterResize(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types("T", FloatTypes());
  };
  extension.Kernel(spec("ResizeBilinear").HostMemory("size"), MakeKernel<BilinearKernel>);
  extension.Kernel(spec("ResizeBilinearGrad"), MakeKernel<BilinearGradKernel>);
  extension.Kernel(spec("ResizeNearestNeighbor").HostMemory("size"), MakeKernel<NearestKernel>);
  extension.Kernel(spec("ResizeNearestNeighborGrad").HostMemory("size"),
                   MakeKernel<NearestGradKernel>);
}

}  // namespace troupe::cuda

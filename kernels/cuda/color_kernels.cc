// RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation, AdjustContrast and AdjustContrastv2 of GPUs.
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cast.h"
#include "kernels/cuda/colors.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"
#include "kernels/image/color_shape.h"

namespace troupe::cuda {
namespace {

absl::Status Launched(cudaError_t error) { return CudaStatus(error, "colors of pixels"); }

template <ColorOp kOp>
absl::Status Convert(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  TROUPE_RETURN_IF_ERROR(CheckPixels(in.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(in.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
  return Launched(LaunchConvertColors(kOp, type, in.raw_data(), out->num_elements() / kRgb,
                                      out->mutable_raw_data(), StreamOf(ctx)));
}

template <ColorChange kChange>
absl::Status Change(KernelContext& ctx) {
  const Tensor &images = ctx.input(0), &by = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckAdjusted(images.shape(), by.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(images.type()));
  const void* const in = images.raw_data();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  return Launched(LaunchChangeColors(kChange, type, in, by.unchecked_data<float>(),
                                     out->num_elements() / kRgb, out->mutable_raw_data(),
                                     StreamOf(ctx)));
}

/// The mean of each channel of each image.
absl::StatusOr<Tensor> Means(KernelContext& ctx, const ImagePixels& s, const float* in) {
  constexpr int64_t kSize = sizeof(float);
  const bool aligned = reinterpret_cast<uintptr_t>(in) % 16 == 0;
  const ReducePlan plan =
      PlanReduce({{s.images, false}, {s.pixels, true}, {s.channels, false}},
                 aligned ? ReducePack(kSize, AccSize(Number::kFloat, kSize)) : 1);
  TROUPE_ASSIGN_OR_RETURN(Tensor means,
                          ctx.AllocateTemp(ElementType::kFloat, Shape({s.images, s.channels})));
  TROUPE_ASSIGN_OR_RETURN(Tensor scratch,
                          ctx.AllocateTemp(ElementType::kFloat, Shape({plan.scratch})));
  const ReduceCall call{Number::kFloat, in, means.mutable_raw_data(), scratch.mutable_raw_data(),
                        /*divisor=*/s.pixels};
  TROUPE_RETURN_IF_ERROR(Launched(LaunchReduce(ReduceOp::kSum, call, plan, StreamOf(ctx))));
  return means;
}

absl::Status AdjustContrastV2(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ImagePixels s, PixelsOf(images.shape()));
  TROUPE_RETURN_IF_ERROR(CheckScalar(ctx.input(1).shape(), "contrast_factor"));
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(images.type()));
  const void* const in = images.raw_data();
  const int64_t n = images.num_elements();
  Tensor wide;
  const auto* floats = static_cast<const float*>(in);
  if (type != Number::kFloat) {
    TROUPE_ASSIGN_OR_RETURN(wide, ctx.AllocateTemp(ElementType::kFloat, images.shape()));
    TROUPE_RETURN_IF_ERROR(Launched(LaunchCast(type, Number::kFloat, /*truncate=*/false, in,
                                               wide.mutable_raw_data(), n, StreamOf(ctx))));
    floats = wide.unchecked_data<float>();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  if (n == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Tensor means, Means(ctx, s, floats));
  const Contrast contrast{s.images, s.pixels, s.channels, means.unchecked_data<float>(),
                          ctx.input(1).unchecked_data<float>()};
  return Launched(LaunchContrast(type, contrast, in, out->mutable_raw_data(), StreamOf(ctx)));
}

absl::Status AdjustContrast(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ImagePixels s, PixelsOf(images.shape()));
  const char* const names[] = {"contrast_factor", "min_value", "max_value"};
  for (int k = 0; k < 3; ++k) {
    TROUPE_RETURN_IF_ERROR(CheckScalar(ctx.input(k + 1).shape(), names[k]));
  }
  TROUPE_ASSIGN_OR_RETURN(const Number type, NumberOf(images.type()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kFloat, images.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  auto* const values = out->mutable_data<float>();
  TROUPE_RETURN_IF_ERROR(
      Launched(LaunchCast(type, Number::kFloat, /*truncate=*/false, images.raw_data(), values,
                          out->num_elements(), StreamOf(ctx))));
  TROUPE_ASSIGN_OR_RETURN(const Tensor means, Means(ctx, s, values));
  const Contrast contrast{s.images,
                          s.pixels,
                          s.channels,
                          means.unchecked_data<float>(),
                          ctx.input(1).unchecked_data<float>(),
                          ctx.input(2).unchecked_data<float>(),
                          ctx.input(3).unchecked_data<float>()};
  return Launched(LaunchContrast(Number::kFloat, contrast, values, values, StreamOf(ctx)));
}

}  // namespace

void RegisterColors(Extension& extension) {
  using enum ElementType;
  const auto add = [&extension](const char* op, std::vector<ElementType> types,
                                KernelFactory factory) {
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", std::move(types)), factory);
  };
  add("RGBToHSV", {kFloat, kDouble}, MakeKernel<Convert<ColorOp::kToHsv>>);
  add("HSVToRGB", {kFloat, kDouble}, MakeKernel<Convert<ColorOp::kToRgb>>);
  add("AdjustHue", {kHalf, kFloat}, MakeKernel<Change<ColorChange::kTurnHue>>);
  add("AdjustSaturation", {kHalf, kFloat}, MakeKernel<Change<ColorChange::kScaleSaturation>>);
  add("AdjustContrastv2", {kHalf, kFloat}, MakeKernel<AdjustContrastV2>);
  add("AdjustContrast", {kUint8, kInt8, kInt16, kInt32, kFloat, kDouble},
      MakeKernel<AdjustContrast>);
}

}  // namespace troupe::cuda

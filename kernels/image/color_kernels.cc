// AdjustContrast, AdjustHue, AdjustSaturation, HSVToRGB, RGBToHSV.
#include <algorithm>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/common/widen.h"
#include "kernels/image/color_shape.h"
#include "kernels/kernel.h"
#include "kernels/simd/color_loops.h"
#include "kernels/simd/colors.h"

namespace troupe {
namespace {

constexpr double kPixelNs = 2;

// --- from one color to another -------------------------------------------------------------------

/// Calls convert(in, n, out) for pieces of pixels of three channels.
template <typename T, typename Convert>
void ForPixels(KernelContext& ctx, const Tensor& from, Tensor* to, const Convert& convert) {
  const T* in = from.unchecked_data<T>();
  T* out = to->mutable_data<T>();
  ctx.ParallelFor(to->num_elements() / kRgb, KernelContext::GrainFor(kPixelNs),
                  [&](int64_t begin, int64_t end) {
                    convert(in + begin * kRgb, end - begin, out + begin * kRgb);
                  });
}

/// Output 0 by `floats`, or for doubles by `doubles`, of each pixel of input 0.
template <typename Doubles>
absl::Status Convert(KernelContext& ctx, void (*floats)(const float*, int64_t, float*),
                     const Doubles& doubles) {
  const Tensor& in = ctx.input(0);
  TROUPE_RETURN_IF_ERROR(CheckPixels(in.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
  if (in.type() == ElementType::kDouble) {
    ForPixels<double>(ctx, in, out, [&](const double* from, int64_t n, double* to) {
      ForColors(from, n, to, doubles);
    });
  } else if (in.type() == ElementType::kFloat) {
    ForPixels<float>(ctx, in, out, floats);
  } else {
    TROUPE_ASSIGN_OR_RETURN(Tensor wide, Widened(ctx, in));
    ForPixels<float>(ctx, wide, &wide, floats);
    NarrowTo(ctx, wide, out);
  }
  return absl::OkStatus();
}

absl::Status RgbToHsv(KernelContext& ctx) {
  return Convert(ctx, Colors().rgb_to_hsv, [](Color<double> c) { return ToHsv(c); });
}
absl::Status HsvToRgb(KernelContext& ctx) {
  return Convert(ctx, Colors().hsv_to_rgb, [](Color<double> c) { return ToRgb(c); });
}
REGISTER_KERNEL(KernelSpec("RGBToHSV"), MakeKernel<RgbToHsv>);
REGISTER_KERNEL(KernelSpec("HSVToRGB"), MakeKernel<HsvToRgb>);

using AdjustFn = void (*)(const float* in, float by, int64_t n, float* out);

/// Output 0: the pixels of input 0, each changed by the number that is input 1.
absl::Status Adjust(KernelContext& ctx, AdjustFn adjust) {
  const Tensor& images = ctx.input(0);
  const Tensor& by = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckAdjusted(images.shape(), by.shape()));
  const float amount = by.unchecked_scalar<float>();
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  ForPixels<float>(ctx, images, out,
                   [&](const float* from, int64_t n, float* to) { adjust(from, amount, n, to); });
  return absl::OkStatus();
}

absl::Status AdjustHue(KernelContext& ctx) { return Adjust(ctx, Colors().turn_hue); }
absl::Status AdjustSaturation(KernelContext& ctx) { return Adjust(ctx, Colors().scale_saturation); }
REGISTER_KERNEL(KernelSpec("AdjustHue").Types("T", {ElementType::kFloat}), MakeKernel<AdjustHue>);
REGISTER_KERNEL(KernelSpec("AdjustSaturation").Types("T", {ElementType::kFloat}),
                MakeKernel<AdjustSaturation>);

// --- contrast ------------------------------------------------------------------------------------

/// Images are cut into pieces of so many pixels.
constexpr int64_t kPiece = 16384;

/// means[image * channels + c]: of channel c. Sums are added up in the order of the pieces.
std::vector<float> ChannelMeans(KernelContext& ctx, const ImagePixels& s, const float* in) {
  const int64_t pieces = (s.pixels + kPiece - 1) / kPiece;
  std::vector<double> sums(static_cast<size_t>(s.images * pieces * s.channels), 0.0);
  ctx.ParallelFor(s.images * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPiece;
      const float* from = in + (i / pieces * s.pixels + first) * s.channels;
      const int64_t count = std::min(kPiece, s.pixels - first);
      double* sum = sums.data() + i * s.channels;
      if (s.channels <= kMaxColorChannels) {
        Colors().add_channels(from, count, s.channels, sum);
        continue;
      }
      for (int64_t p = 0; p < count; ++p) {
        for (int64_t c = 0; c < s.channels; ++c) sum[c] += static_cast<double>(*from++);
      }
    }
  });
  std::vector<float> means(static_cast<size_t>(s.images * s.channels));
  for (int64_t i = 0; i < s.images; ++i) {
    for (int64_t c = 0; c < s.channels; ++c) {
      double sum = 0;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        sum += sums[(i * pieces + piece) * s.channels + c];
      }
      means[i * s.channels + c] = static_cast<float>(sum / static_cast<double>(s.pixels));
    }
  }
  return means;
}

void MoveFromMeans(KernelContext& ctx, const ImagePixels& s, const float* in, float factor,
                   float* out) {
  const std::vector<float> means = ChannelMeans(ctx, s, in);
  const int64_t pieces = (s.pixels + kPiece - 1) / kPiece;
  ctx.ParallelFor(s.images * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPiece;
      const int64_t at = (i / pieces * s.pixels + first) * s.channels;
      const int64_t count = std::min(kPiece, s.pixels - first);
      const float* mean = means.data() + i / pieces * s.channels;
      if (s.channels <= kMaxColorChannels) {
        Colors().move_from_means(in + at, count, s.channels, mean, factor, out + at);
        continue;
      }
      for (int64_t j = 0; j < count * s.channels; ++j) {
        const float m = mean[j % s.channels];
        out[at + j] = (in[at + j] - m) * factor + m;
      }
    }
  });
}

absl::StatusOr<float> ScalarInput(KernelContext& ctx, int i, const char* what) {
  const Tensor& scalar = ctx.input(i);
  TROUPE_RETURN_IF_ERROR(CheckScalar(scalar.shape(), what));
  return scalar.unchecked_scalar<float>();
}

absl::Status AdjustContrastV2(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ImagePixels s, PixelsOf(images.shape()));
  TROUPE_ASSIGN_OR_RETURN(const float factor, ScalarInput(ctx, 1, "contrast_factor"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
  if (out->num_elements() == 0) return absl::OkStatus();
  MoveFromMeans(ctx, s, images.unchecked_data<float>(), factor, out->mutable_data<float>());
  return absl::OkStatus();
}
REGISTER_KERNEL(KernelSpec("AdjustContrastv2").Types("T", {ElementType::kFloat}),
                MakeKernel<AdjustContrastV2>);

absl::Status AdjustContrast(KernelContext& ctx) {
  const Tensor& images = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const ImagePixels s, PixelsOf(images.shape()));
  TROUPE_ASSIGN_OR_RETURN(const float factor, ScalarInput(ctx, 1, "contrast_factor"));
  TROUPE_ASSIGN_OR_RETURN(const float low, ScalarInput(ctx, 2, "min_value"));
  TROUPE_ASSIGN_OR_RETURN(const float high, ScalarInput(ctx, 3, "max_value"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kFloat, images.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  auto values = out->mutable_values<float>();
  TROUPE_RETURN_IF_ERROR(SwitchReal(images.type(), [&]<typename T>() {
    const T* in = images.unchecked_data<T>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(in[i]);
    return absl::OkStatus();
  }));
  MoveFromMeans(ctx, s, values.data(), factor, values.data());
  for (float& value : values) value = std::max(std::min(value, high), low);
  return absl::OkStatus();
}
REGISTER_KERNEL(KernelSpec("AdjustContrast"), MakeKernel<AdjustContrast>);

}  // namespace
}  // namespace troupe

// ExtractImagePatches, ExtractGlimpse (and V2).
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/common/registration.h"
#include "kernels/image/extract_patches.h"
#include "kernels/image/resize_shape.h"
#include "kernels/kernel.h"
#include "kernels/random/draws.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// The patches of row `i`, counted over all images.
template <typename T>
void FillRow(const Window& rows, const Window& columns, int64_t channels, const T* images,
             int64_t i, T* out) {
  const T* image = images + i / rows.output * rows.input * columns.input * channels;
  const int64_t top = i % rows.output * rows.stride - rows.pad_before;
  for (int64_t column = 0; column < columns.output; ++column) {
    const int64_t left = column * columns.stride - columns.pad_before;
    for (int64_t r = 0; r < rows.size; ++r) {
      const int64_t y = top + r * rows.dilation;
      for (int64_t k = 0; k < columns.size; ++k) {
        const int64_t x = left + k * columns.dilation;
        if (y >= 0 && y < rows.input && x >= 0 && x < columns.input) {
          out = std::copy_n(image + (y * columns.input + x) * channels, channels, out);
        } else {
          out = std::fill_n(out, channels, T());
        }
      }
    }
  }
}

REGISTER_KERNEL(KernelSpec("ExtractImagePatches").Types("T", PlainTypes()), ExtractImagePatches);

// --- glimpses ------------------------------------------------------------------------------------

enum class Noise { kUniform, kGaussian, kZero };

/// A batch of images, and the size of their glimpses.
struct GlimpseShape {
  int64_t height, width, channels;
  int64_t rows, columns;
  int64_t image_size() const { return height * width * channels; }
  int64_t glimpse_size() const { return rows * columns * channels; }
};

/// Of `n` numbers, at least one, that are not NaN.
std::pair<float, float> LeastAndMost(const float* in, int64_t n) {
  constexpr int kLanes = 8;  // Of each the extremes are kept apart, for vectors.
  float low[kLanes], high[kLanes];
  std::fill_n(low, kLanes, in[0]);
  std::fill_n(high, kLanes, in[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      low[k] = in[i + k] < low[k] ? in[i + k] : low[k];
      high[k] = in[i + k] > high[k] ? in[i + k] : high[k];
    }
  }
  for (; i < n; ++i) {
    low[0] = std::min(low[0], in[i]);
    high[0] = std::max(high[0], in[i]);
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

class GlimpseKernel final : public Kernel {
 public:
  GlimpseKernel(KernelConstruction& c, absl::Status* status)
      : is_v2_(c.op() == "ExtractGlimpseV2"),
        centered_(c.Attr<bool>("centered")),
        normalized_(c.Attr<bool>("normalized")),
        stream_(0, 0) {
    const bool uniform = c.Attr<bool>("uniform_noise");
    const auto noise = c.Attr<std::string>("noise");
    if (uniform && !noise.empty() && noise != "uniform") {
      *status =
          InvalidArgument("`uniform_noise` and `noise` = '", noise, "' contradict each other");
    } else if (noise.empty()) {
      noise_ = uniform ? Noise::kUniform : Noise::kGaussian;
    } else if (noise == "uniform" || noise == "gaussian" || noise == "zero") {
      noise_ = noise == "uniform"    ? Noise::kUniform
               : noise == "gaussian" ? Noise::kGaussian
                                     : Noise::kZero;
    } else {
      *status = InvalidArgument("`noise` must be uniform, gaussian or zero, got '", noise, "'");
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Tensor& offsets = ctx.input(2);
    if (input.rank() != 4) {
      return InvalidArgument("`input` must be [batch, height, width, channels], got shape ",
                             input.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const HeightAndWidth size, ReadImageSize(ctx.input(1), "size"));
    if (offsets.rank() != 2 || offsets.dim(0) != input.dim(0) || offsets.dim(1) != 2) {
      return InvalidArgument("`offsets` must be [", input.dim(0), ", 2], got shape ",
                             offsets.shape().ToString());
    }
    const GlimpseShape s{input.dim(1), input.dim(2), input.dim(3), size.height, size.width};
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out, ctx.AllocateOutput(0, ElementType::kFloat,
                                         Shape({input.dim(0), s.rows, s.columns, s.channels})));
    const float* offset = offsets.unchecked_data<float>();
    for (int64_t i = 0; i < input.dim(0) && out->num_elements() > 0; ++i, offset += 2) {
      if (!std::isfinite(offset[0]) || !std::isfinite(offset[1])) {
        return InvalidArgument("offset ", i, " is not finite");
      }
      Take(s, input.unchecked_data<float>() + i * s.image_size(),
           Begin(offset[0], s.height, s.rows), Begin(offset[1], s.width, s.columns),
           out->mutable_data<float>() + i * s.glimpse_size());
    }
    return absl::OkStatus();
  }

 private:
  /// Where a glimpse of `window` pixels begins, along an axis.
  int64_t Begin(float offset, int64_t size, int64_t window) const {
    const auto pixels = static_cast<float>(size);
    if (normalized_) offset *= pixels;
    // V2 takes an offset for that of the glimpse's center only where it has these two, and for a
    // half only there.
    const bool both = centered_ && normalized_;
    if (centered_) offset = (is_v2_ && !both ? offset : offset / 2) + pixels / 2;
    if (!is_v2_ || both) offset -= static_cast<float>(window) / 2;
    constexpr float kFar = 1 << 30;
    return static_cast<int64_t>(std::clamp(offset, -kFar, kFar));
  }

  void Take(const GlimpseShape& s, const float* image, int64_t top, int64_t left, float* out) {
    const bool inside =
        top >= 0 && left >= 0 && top + s.rows <= s.height && left + s.columns <= s.width;
    if (!inside) FillNoise(s, image, out);
    const int64_t x0 = std::max<int64_t>(0, -left);
    const int64_t x1 = std::min(s.columns, s.width - left);
    for (int64_t y = std::max<int64_t>(0, -top); y < std::min(s.rows, s.height - top); ++y) {
      if (x0 >= x1) break;
      std::copy_n(image + ((top + y) * s.width + left + x0) * s.channels, (x1 - x0) * s.channels,
                  out + (y * s.columns + x0) * s.channels);
    }
  }

  void FillNoise(const GlimpseShape& s, const float* image, float* out) {
    if (noise_ == Noise::kZero || s.image_size() == 0) {
      std::fill_n(out, s.glimpse_size(), 0.0f);
      return;
    }
    // Two words for each value.
    PhiloxWords words(stream_.Reserve(static_cast<uint64_t>(s.glimpse_size() + 1) / 2));
    if (noise_ == Noise::kUniform) {
      const auto [low, high] = LeastAndMost(image, s.image_size());
      for (int64_t i = 0; i < s.glimpse_size(); ++i) {
        out[i] = low + UniformFloat(words) * (high - low);
      }
      return;
    }
    for (int64_t c = 0; c < s.channels; ++c) FillGaussian(s, image, c, words, out);
  }

  /// With the mean and the deviation of the channel, and within its values.
  static void FillGaussian(const GlimpseShape& s, const float* image, int64_t c, PhiloxWords& words,
                           float* out) {
    double sum = 0, squares = 0;
    float low = std::numeric_limits<float>::infinity(), high = -low;
    const int64_t pixels = s.height * s.width;
    for (int64_t i = 0; i < pixels; ++i) {
      const float value = image[i * s.channels + c];
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const double mean = sum / static_cast<double>(pixels);
    const double deviation =
        std::sqrt(std::max(0.0, squares / static_cast<double>(pixels) - mean * mean));
    constexpr double kTwoPi = 6.283185307179586;
    for (int64_t i = 0; i < s.rows * s.columns; ++i) {
      const double u = std::max(static_cast<double>(UniformFloat(words)), 1e-7);
      const double normal =
          std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * static_cast<double>(UniformFloat(words)));
      const auto value = static_cast<float>(mean + deviation * normal);
      out[i * s.channels + c] = std::max(std::min(value, high), low);
    }
  }

  const bool is_v2_, centered_, normalized_;
  Noise noise_ = Noise::kZero;
  PhiloxStream stream_;
};
REGISTER_KERNELS(KernelSpec("ExtractGlimpse").HostMemory("size"), MakeKernel<GlimpseKernel>,
                 "ExtractGlimpseV2");

}  // namespace

absl::Status FillPatches(KernelContext& ctx, const Window& rows, const Window& columns,
                         const Tensor& images, Tensor* out) {
  const int64_t channels = images.dim(3), depth = out->dim(3);
  return SwitchBySize(images.type(), [&]<typename T>() {
    const auto* from = static_cast<const T*>(images.raw_data());
    auto* to = static_cast<T*>(out->mutable_raw_data());
    const int64_t row_size = columns.output * depth;
    ctx.ParallelFor(images.dim(0) * rows.output,
                    KernelContext::GrainFor(0.5 * static_cast<double>(row_size)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        FillRow(rows, columns, channels, from, i, to + i * row_size);
                      }
                    });
    return absl::OkStatus();
  });
}

}  // namespace troupe

// ImageProjectiveTransform, V2 and V3.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/common/registration.h"
#include "kernels/image/resize_shape.h"
#include "kernels/kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

enum class Outside { kConstant, kReflect, kWrap, kNearest };

/// The coordinate in an image of `size` pixels that stands for one that may be outside of it.
float Inside(Outside outside, float at, int64_t size) {
  const auto pixels = static_cast<float>(size);
  const float last = pixels - 1;
  switch (outside) {
    case Outside::kConstant:
      return at;
    case Outside::kNearest:
      break;
    case Outside::kReflect: {  // [abcd]: dcba abcd dcba
      const float period = 2 * pixels;
      if (size <= 1) return 0;
      if (at < 0) {
        at += period * std::trunc(-at / period);
        at = at < -pixels ? at + period : -at - 1;
      } else if (at > last) {
        at -= period * std::trunc(at / period);
        if (at >= pixels) at = period - at - 1;
      }
      break;
    }
    case Outside::kWrap: {  // [abcd]: abcd abcd abcd
      if (size <= 1) return 0;
      if (at < 0) {
        at += pixels * (std::trunc(-at / last) + 1);
      } else if (at > last) {
        at -= pixels * std::trunc(at / last);
      }
      break;
    }
  }
  return std::min(std::max(at, 0.0f), last);
}

/// What a mean of pixels becomes as a pixel: integers are cut off.
template <typename T>
T ToPixel(float value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr T kMost = std::numeric_limits<T>::max(), kLeast = std::numeric_limits<T>::min();
    if (value >= static_cast<float>(kMost)) return kMost;
    if (!(value > static_cast<float>(kLeast))) return kLeast;
  }
  return static_cast<T>(value);
}

class ProjectiveKernel final : public Kernel {
 public:
  ProjectiveKernel(KernelConstruction& c, absl::Status* status) {
    const auto interpolation = c.Attr<std::string>("interpolation");
    const auto fill_mode = c.Attr<std::string>("fill_mode");
    bilinear_ = interpolation == "BILINEAR";
    outside_ = fill_mode == "REFLECT"   ? Outside::kReflect
               : fill_mode == "WRAP"    ? Outside::kWrap
               : fill_mode == "NEAREST" ? Outside::kNearest
                                        : Outside::kConstant;
    if (!bilinear_ && interpolation != "NEAREST") {
      *status =
          InvalidArgument("`interpolation` must be NEAREST or BILINEAR, got '", interpolation, "'");
    } else if (outside_ == Outside::kConstant && fill_mode != "CONSTANT") {
      *status = InvalidArgument("`fill_mode` must be REFLECT, WRAP, CONSTANT or NEAREST, got '",
                                fill_mode, "'");
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    const Tensor& transforms = ctx.input(1);
    if (images.rank() != 4) {
      return InvalidArgument("`images` must be [batch, height, width, channels], got shape ",
                             images.shape().ToString());
    }
    if (transforms.rank() != 2 || transforms.dim(1) != 8 ||
        (transforms.dim(0) != 1 && transforms.dim(0) != images.dim(0))) {
      return InvalidArgument("`transforms` must be [1, 8] or [", images.dim(0), ", 8], got shape ",
                             transforms.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const HeightAndWidth size, ReadImageSize(ctx.input(2), "output_shape"));
    float fill_value = 0;
    if (ctx.num_inputs() > 3) {
      if (ctx.input(3).rank() != 0) {
        return InvalidArgument("`fill_value` must be a scalar, got shape ",
                               ctx.input(3).shape().ToString());
      }
      fill_value = ctx.input(3).unchecked_scalar<float>();
    }
    const Shape shape({images.dim(0), size.height, size.width, images.dim(3)});
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, images.type(), shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const int64_t step = transforms.dim(0) == 1 ? 0 : 8;
    const double row_ns =
        static_cast<double>(size.width) * (10 + 2 * static_cast<double>(images.dim(3)));
    return SwitchType<float, double, half, bfloat16, uint8_t, int32_t, int64_t>(
        images.type(), [&]<typename T>() {
          const T fill = ToPixel<T>(fill_value);
          ctx.ParallelFor(shape.dim(0) * size.height, KernelContext::GrainFor(row_ns),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const int64_t image = i / size.height;
                              FillRow(images, image,
                                      transforms.unchecked_data<float>() + image * step,
                                      i % size.height, size.width, fill,
                                      out->mutable_data<T>() + i * size.width * images.dim(3));
                            }
                          });
          return absl::OkStatus();
        });
  }

 private:
  /// An image, with `fill` around it.
  template <typename T>
  struct Pixels {
    const T* values;
    int64_t height, width, channels;
    T fill;
    /// At whole numbers.
    T At(float y, float x, int64_t c) const {
      const auto row = static_cast<int64_t>(y), column = static_cast<int64_t>(x);
      if (row < 0 || row >= height || column < 0 || column >= width) return fill;
      return values[(row * width + column) * channels + c];
    }
  };

  template <typename T>
  void FillRow(const Tensor& images, int64_t image, const float* t, int64_t row, int64_t width,
               T fill, T* out) const {
    const Pixels<T> pixels{
        images.unchecked_data<T>() + image * images.dim(1) * images.dim(2) * images.dim(3),
        images.dim(1), images.dim(2), images.dim(3), fill};
    const auto v = static_cast<float>(row);
    for (int64_t column = 0; column < width; ++column, out += pixels.channels) {
      const auto u = static_cast<float>(column);
      const float k = t[6] * u + t[7] * v + 1;
      const float x = Inside(outside_, (t[0] * u + t[1] * v + t[2]) / k, pixels.width);
      const float y = Inside(outside_, (t[3] * u + t[4] * v + t[5]) / k, pixels.height);
      // Up to a pixel outside, those inside have a part.
      const bool there = k != 0 && x > -1 && x < static_cast<float>(pixels.width) && y > -1 &&
                         y < static_cast<float>(pixels.height);
      if (!there) {
        std::fill_n(out, pixels.channels, fill);
      } else if (bilinear_) {
        Interpolate(pixels, y, x, out);
      } else {
        for (int64_t c = 0; c < pixels.channels; ++c) {
          out[c] = pixels.At(std::round(y), std::round(x), c);
        }
      }
    }
  }

  template <typename T>
  static void Interpolate(const Pixels<T>& pixels, float y, float x, T* out) {
    const float y0 = std::floor(y), x0 = std::floor(x), y1 = y0 + 1, x1 = x0 + 1;
    for (int64_t c = 0; c < pixels.channels; ++c) {
      const auto row = [&](float at) {
        return (x1 - x) * static_cast<float>(pixels.At(at, x0, c)) +
               (x - x0) * static_cast<float>(pixels.At(at, x1, c));
      };
      out[c] = ToPixel<T>((y1 - y) * row(y0) + (y - y0) * row(y1));
    }
  }

  bool bilinear_ = false;
  Outside outside_ = Outside::kConstant;
};

std::vector<ElementType> ProjectedTypes() {
  return {ElementType::kUint8,    ElementType::kInt32, ElementType::kInt64, ElementType::kHalf,
          ElementType::kBfloat16, ElementType::kFloat, ElementType::kDouble};
}
REGISTER_KERNELS(KernelSpec("ImageProjectiveTransformV2")
                     .Types("dtype", ProjectedTypes())
                     .HostMemory("output_shape"),
                 MakeKernel<ProjectiveKernel>, "ImageProjectiveTransformV3");

}  // namespace
}  // namespace troupe

// ImageProjectiveTransform, V2 and V3, on the CPU.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/image/projective.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class CpuProjectiveKernel final : public ProjectiveKernel {
 public:
  using ProjectiveKernel::ProjectiveKernel;

 private:
  absl::Status Project(KernelContext& ctx, const Sizes& sizes, Tensor* out) override {
    const Tensor& images = ctx.input(0);
    const float* transforms = ctx.input(1).unchecked_data<float>();
    const int64_t step = sizes.one_transform ? 0 : 8;
    const double row_ns =
        static_cast<double>(sizes.width) * (10 + 2 * static_cast<double>(images.dim(3)));
    return SwitchType<float, double, half, bfloat16, uint8_t, int32_t, int64_t>(
        images.type(), [&]<typename T>() {
          const T fill = ToPixel<T>(sizes.fill_value);
          ctx.ParallelFor(images.dim(0) * sizes.height, KernelContext::GrainFor(row_ns),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              const int64_t image = i / sizes.height;
                              FillRow(images, image, transforms + image * step, i % sizes.height,
                                      sizes.width, fill,
                                      out->mutable_data<T>() + i * sizes.width * images.dim(3));
                            }
                          });
          return absl::OkStatus();
        });
  }

  template <typename T>
  void FillRow(const Tensor& images, int64_t image, const float* t, int64_t row, int64_t width,
               T fill, T* out) const {
    const ProjectedPixels<T> pixels{
        images.unchecked_data<T>() + image * images.dim(1) * images.dim(2) * images.dim(3),
        images.dim(1), images.dim(2), images.dim(3), fill};
    for (int64_t column = 0; column < width; ++column, out += pixels.channels) {
      const Projected at = Projected::Of(t, row, column, pixels.height, pixels.width, outside_);
      if (!at.there) {
        std::fill_n(out, pixels.channels, fill);
        continue;
      }
      if (bilinear_) {
        Blend(pixels, at, out);
      } else {
        for (int64_t c = 0; c < pixels.channels; ++c) out[c] = pixels.Nearest(at.y, at.x, c);
      }
    }
  }

  // `ProjectedPixels::Between` of all channels.
  template <typename T>
  static void Blend(const ProjectedPixels<T>& pixels, const Projected& at, T* out) {
    const float y0 = std::floor(at.y), x0 = std::floor(at.x), y1 = y0 + 1, x1 = x0 + 1;
    const auto row = static_cast<int64_t>(y0), column = static_cast<int64_t>(x0);
    const T* first = pixels.values + (row * pixels.width + column) * pixels.channels;
    const bool inside =
        row >= 0 && row + 1 < pixels.height && column >= 0 && column + 1 < pixels.width;
    if (!inside) {
      for (int64_t c = 0; c < pixels.channels; ++c) out[c] = pixels.Between(at.y, at.x, c);
      return;
    }
    const T* below = first + pixels.width * pixels.channels;
    for (int64_t c = 0; c < pixels.channels; ++c) {
      const int64_t next = c + pixels.channels;
      const float top = (x1 - at.x) * static_cast<float>(first[c]) +
                        (at.x - x0) * static_cast<float>(first[next]);
      const float bottom = (x1 - at.x) * static_cast<float>(below[c]) +
                           (at.x - x0) * static_cast<float>(below[next]);
      out[c] = ToPixel<T>((y1 - at.y) * top + (at.y - y0) * bottom);
    }
  }
};

std::vector<ElementType> ProjectedTypes() {
  return {ElementType::kUint8,    ElementType::kInt32, ElementType::kInt64, ElementType::kHalf,
          ElementType::kBfloat16, ElementType::kFloat, ElementType::kDouble};
}
REGISTER_KERNELS(KernelSpec("ImageProjectiveTransformV2")
                     .Types("dtype", ProjectedTypes())
                     .HostMemory("output_shape"),
                 MakeKernel<CpuProjectiveKernel>, "ImageProjectiveTransformV3");

}  // namespace
}  // namespace troupe

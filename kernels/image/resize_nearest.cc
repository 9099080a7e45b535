// ResizeNearestNeighbor and its gradient.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/image/resize_axis.h"
#include "kernels/image/resize_shape.h"
#include "kernels/kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class NearestKernel final : public Kernel {
 public:
  NearestKernel(KernelConstruction& c, absl::Status*) : mode_(ResizeModeOf(c)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, NearestShapeOf(images, ctx.input(1), mode_));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out,
        ctx.AllocateOutput(0, images.type(), Shape({s.batch, s.height, s.width, s.channels})));
    if (out->num_elements() == 0) return absl::OkStatus();
    const std::vector<int32_t> rows = NearestIndices(s.from_height, s.height, mode_);
    const std::vector<int32_t> columns = NearestIndices(s.from_width, s.width, mode_);
    const int64_t from_size = s.from_width * s.channels, size = s.width * s.channels;
    return SwitchBySize(images.type(), [&]<typename T>() {
      const auto* from = static_cast<const T*>(images.raw_data());
      auto* to = static_cast<T*>(out->mutable_raw_data());
      ctx.ParallelFor(
          s.batch * s.height, KernelContext::GrainFor(static_cast<double>(size)),
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const T* row = from + (i / s.height * s.from_height + rows[i % s.height]) * from_size;
              T* pixel = to + i * size;
              for (const int32_t x : columns) {
                pixel = std::copy_n(row + x * s.channels, s.channels, pixel);
              }
            }
          });
      return absl::OkStatus();
    });
  }

 private:
  const ResizeMode mode_;
};

/// What gradients are summed up in.
template <typename T>
using SumType = std::conditional_t<std::is_integral_v<T>, int32_t,
                                   std::conditional_t<std::is_same_v<T, double>, double, float>>;

class NearestGradKernel final : public Kernel {
 public:
  NearestGradKernel(KernelConstruction& c, absl::Status*) : mode_(ResizeModeOf(c)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, NearestGradShapeOf(grads, ctx.input(1)));
    TROUPE_ASSIGN_OR_RETURN(
        Tensor * out,
        ctx.AllocateOutput(0, grads.type(),
                           Shape({s.batch, s.from_height, s.from_width, s.channels})));
    if (grads.num_elements() == 0) std::memset(out->mutable_raw_data(), 0, out->bytes());
    if (grads.num_elements() == 0 || out->num_elements() == 0) return absl::OkStatus();
    const std::vector<int32_t> rows = NearestIndices(s.from_height, s.height, mode_);
    const std::vector<int32_t> columns = NearestIndices(s.from_width, s.width, mode_);
    const int64_t size = s.from_width * s.channels, grads_size = s.width * s.channels;
    return SwitchType<float, double, half, bfloat16, int32_t, int8_t, uint8_t>(
        grads.type(), [&]<typename T>() {
          ctx.ParallelFor(
              s.batch * s.from_height,
              KernelContext::GrainFor(static_cast<double>(grads_size + size)),
              [&](int64_t begin, int64_t end) {
                std::vector<SumType<T>> sum(static_cast<size_t>(size));
                for (int64_t i = begin; i < end; ++i) {
                  std::fill(sum.begin(), sum.end(), SumType<T>(0));
                  // New rows of an old one lie together.
                  const auto [first, last] = std::equal_range(
                      rows.begin(), rows.end(), static_cast<int32_t>(i % s.from_height));
                  for (auto y = first; y != last; ++y) {
                    const int64_t row = i / s.from_height * s.height + (y - rows.begin());
                    AddRow(grads.unchecked_data<T>() + row * grads_size, columns, s.channels,
                           sum.data());
                  }
                  T* to = out->mutable_data<T>() + i * size;
                  for (int64_t x = 0; x < size; ++x) to[x] = static_cast<T>(sum[x]);
                }
              });
          return absl::OkStatus();
        });
  }

 private:
  template <typename T>
  static void AddRow(const T* row, const std::vector<int32_t>& columns, int64_t channels,
                     SumType<T>* sum) {
    for (const int32_t x : columns) {
      SumType<T>* to = sum + x * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] += static_cast<SumType<T>>(row[c]);
      row += channels;
    }
  }

  const ResizeMode mode_;
};

REGISTER_KERNEL(KernelSpec("ResizeNearestNeighbor").HostMemory("size"), MakeKernel<NearestKernel>);
REGISTER_KERNEL(KernelSpec("ResizeNearestNeighborGrad").HostMemory("size"),
                MakeKernel<NearestGradKernel>);

}  // namespace
}  // namespace troupe

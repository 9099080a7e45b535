// MaxPoolWithArgmax and its gradient.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel.h"
#include "kernels/nn/plus.h"
#include "kernels/nn/pool_argmax.h"

namespace troupe {
namespace {

class MaxPoolWithArgmaxKernel final : public ArgmaxPoolKernel {
 public:
  MaxPoolWithArgmaxKernel(KernelConstruction& construction, absl::Status* status)
      : ArgmaxPoolKernel(construction, status), index_type_(construction.output_type(1)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx));
    const int64_t indices = in.num_elements() / (include_batch_ ? 1 : s.batch);
    if (index_type_ == ElementType::kInt32 && indices > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("the indices of an input of shape ", in.shape().ToString(),
                             " do not fit int32");
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * argmax, ctx.AllocateOutput(1, index_type_, s.output_shape()));
    const double pixel_ns = static_cast<double>(s.depth) * static_cast<double>(s.rows.size) *
                            static_cast<double>(s.columns.size);
    const int64_t pixels = s.batch * s.rows.output * s.columns.output;
    return SwitchReal(in.type(), [&]<typename T>() {
      return SwitchType<int32_t, int64_t>(index_type_, [&]<typename Index>() {
        ctx.ParallelFor(pixels, KernelContext::GrainFor(pixel_ns), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            Pixel(s, i, in.unchecked_data<T>(), out->mutable_data<T>() + i * s.depth,
                  argmax->mutable_data<Index>() + i * s.depth);
          }
        });
        return absl::OkStatus();
      });
    });
  }

 private:
  // Output pixel `i` of all images.
  template <typename T, typename Index>
  void Pixel(const PoolShape& s, int64_t i, const T* in, T* best, Index* index) const {
    const int64_t image_size = s.rows.input * s.columns.input * s.depth;
    const int64_t batch = i / s.columns.output / s.rows.output;
    const T* image = in + batch * image_size;
    const int64_t base = include_batch_ ? batch * image_size : 0;
    const int64_t y0 = i / s.columns.output % s.rows.output * s.rows.stride - s.rows.pad_before;
    const int64_t x0 = i % s.columns.output * s.columns.stride - s.columns.pad_before;
    const int64_t y_begin = std::max<int64_t>(0, y0), x_begin = std::max<int64_t>(0, x0);
    const int64_t first = (y_begin * s.columns.input + x_begin) * s.depth;
    const int64_t rows = std::min(s.rows.input, y0 + s.rows.size) - y_begin;
    const int64_t columns = std::min(s.columns.input, x0 + s.columns.size) - x_begin;
    int64_t c = 0;
    if (rows * s.columns.input * s.depth <= std::numeric_limits<int32_t>::max()) {
      for (; c + 8 <= s.depth; c += 8) {
        Largest<8, int32_t>(s, image, first + c, rows, columns, base, best + c, index + c);
      }
    }
    for (; c < s.depth; ++c) {
      Largest<1, int64_t>(s, image, first + c, rows, columns, base, best + c, index + c);
    }
  }

  // Of `kCount` channels, in vectors: the first of the largest elements of a window that begins at
  // element `first` of the image. Places in it, from there, are numbers of type Place.
  template <int kCount, typename Place, typename T, typename Index>
  static void Largest(const PoolShape& s, const T* image, int64_t first, int64_t rows,
                      int64_t columns, int64_t base, T* best_out, Index* index_out) {
    T best[kCount];
    Place places[kCount] = {};
    for (int k = 0; k < kCount; ++k) best[k] = image[first + k];
    for (int64_t y = 0; y < rows; ++y) {
      for (int64_t x = 0; x < columns; ++x) {
        const int64_t at = (y * s.columns.input + x) * s.depth;
        const T* pixel = image + first + at;
        const auto place = static_cast<Place>(at);
        for (int k = 0; k < kCount; ++k) {
          const T value = pixel[k];
          const bool more = value > best[k];
          best[k] = more ? value : best[k];
          places[k] ^= (places[k] ^ place) & -static_cast<Place>(more);  // no branch
        }
      }
    }
    for (int k = 0; k < kCount; ++k) {
      best_out[k] = best[k];
      index_out[k] = static_cast<Index>(base + first + places[k] + k);
    }
  }

  const ElementType index_type_;
};

// Inputs: the pooled tensor, the gradient, where the largest elements were.
class MaxPoolGradWithArgmaxKernel final : public ArgmaxPoolKernel {
 public:
  using ArgmaxPoolKernel::ArgmaxPoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &gradient = ctx.input(1), &argmax = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, ResolveGradient(ctx));
    const int64_t in_size = in.num_elements() / s.batch,
                  out_size = gradient.num_elements() / s.batch;
    const int64_t* at = argmax.unchecked_data<int64_t>();
    for (int64_t i = 0; i < argmax.num_elements(); ++i) {
      // Indices that count over the batch must stay within their image all the same.
      const int64_t first = include_batch_ ? i / out_size * in_size : 0;
      if (at[i] < first || at[i] >= first + in_size) {
        return BadArgmax(i, at[i], first, in_size);
      }
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    std::memset(out->mutable_raw_data(), 0, out->bytes());
    return SwitchReal(in.type(), [&]<typename T>() {
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(2.0 * static_cast<double>(out_size)),
                      [&](int64_t begin, int64_t end) {
                        const T* dy = gradient.unchecked_data<T>();
                        for (int64_t b = begin; b < end; ++b) {
                          T* image = out->mutable_data<T>() + (include_batch_ ? 0 : b * in_size);
                          for (int64_t i = b * out_size; i < (b + 1) * out_size; ++i) {
                            image[at[i]] = Plus(image[at[i]], dy[i]);
                          }
                        }
                      });
      return absl::OkStatus();
    });
  }
};

REGISTER_KERNEL(
    KernelSpec("MaxPoolWithArgmax").Types("T", RealNumberTypes()).Types("Targmax", IndexTypes()),
    MakeKernel<MaxPoolWithArgmaxKernel>);
REGISTER_KERNEL(KernelSpec("MaxPoolGradWithArgmax")
                    .Types("T", RealNumberTypes())
                    .Types("Targmax", {ElementType::kInt64}),
                MakeKernel<MaxPoolGradWithArgmaxKernel>);

}  // namespace
}  // namespace troupe

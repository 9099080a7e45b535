// MaxPool, AvgPool and their gradients, all versions.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "devices/half.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel.h"
#include "kernels/nn/pool_shape.h"
#include "kernels/simd/dispatch.h"
#include "kernels/simd/pool.h"
#include "kernels/simd/pool_loops.h"

namespace troupe {
namespace {

// 16-bit floating types are summed as floats.
template <>
struct PoolType<half> {
  typedef float Type;
};
template <>
struct PoolType<bfloat16> {
  typedef float Type;
};

template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, half>) {
    return half::FromBits(0xfbff);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return bfloat16::FromBits(0xff7f);
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

PoolForm FormOf(const PoolShape& s) {
  const auto axis = [](const Window& w) {
    return PoolAxis{w.input, w.output, w.size, w.stride, w.pad_before};
  };
  return {axis(s.rows), axis(s.columns), s.depth, nullptr};
}

class PoolKernel : public Kernel {
 public:
  PoolKernel(KernelConstruction& construction, absl::Status* status)
      : attributes_(construction.num_inputs()) {
    *status = attributes_.Read(construction, /*takes_nchw=*/false);
  }

 protected:
  absl::StatusOr<PoolShape> Resolve(KernelContext& ctx, const Shape& input,
                                    bool allows_depth) const {
    return attributes_.Resolve(ctx, input, allows_depth);
  }

 private:
  PoolAttributes attributes_;
};

// Nanoseconds that `elements` elements take when each is looked at `times` times.
double NanosecondsFor(int64_t elements, int64_t times) {
  return 0.3 * static_cast<double>(elements) * static_cast<double>(times);
}

class MaxPoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), true));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return SwitchReal(in.type(), [&]<typename T>() {
      const T* from = in.unchecked_data<T>();
      T* to = out->mutable_data<T>();
      if (s.depth_window > 1) {
        OverDepth(ctx, s.depth_window, out->num_elements(), from, to);
        return absl::OkStatus();
      }
      const T lowest = Lowest<T>();
      PoolForm form = FormOf(s);
      form.lowest = &lowest;
      const double row_ns =
          NanosecondsFor(s.columns.output * s.depth, s.rows.size * s.columns.size);
      ctx.ParallelFor(s.batch * s.rows.output, KernelContext::GrainFor(row_ns),
                      [&](int64_t begin, int64_t end) {
                        if constexpr (std::is_integral_v<T>) {
                          MaxPoolRows(form, from, to, begin, end);
                        } else {
                          Pool(simd::TypeOf(in.type())).max_rows(form, from, to, begin, end);
                        }
                      });
      return absl::OkStatus();
    });
  }

 private:
  template <typename T>
  static void OverDepth(KernelContext& ctx, int64_t window, int64_t outputs, const T* from, T* to) {
    ctx.ParallelFor(outputs, KernelContext::GrainFor(static_cast<double>(window)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        T best = Lowest<T>();
                        for (int64_t d = 0; d < window; ++d) {
                          const T x = from[i * window + d];
                          best = x > best ? x : best;
                        }
                        to[i] = best;
                      }
                    });
  }
};

class MaxPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", ctx.input(1).shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const PoolForm form = FormOf(s);
    const double image_ns = NanosecondsFor(s.rows.output * s.columns.output * s.depth,
                                           2 * s.rows.size * s.columns.size);
    return SwitchReal(in.type(), [&]<typename T>() {
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(image_ns), [&](int64_t begin, int64_t end) {
        const T* x = in.unchecked_data<T>();
        const T* dy = gradient.unchecked_data<T>();
        T* dx = out->mutable_data<T>();
        if constexpr (std::is_floating_point_v<T>) {
          Pool(simd::TypeOf(in.type())).max_gradient_images(form, x, dy, dx, begin, end);
        } else {
          MaxPoolGradImages<T, int32_t>(form, x, dy, dx, begin, end);
        }
      });
      return absl::OkStatus();
    });
  }
};

class MaxPoolGradGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& pooled = ctx.input(1);
    const Tensor& gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", pooled.shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), in.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const double row_ns =
        NanosecondsFor(s.columns.output * s.depth, 2 * s.rows.size * s.columns.size);
    return SwitchReal(in.type(), [&]<typename T>() {
      ctx.ParallelFor(s.batch * s.rows.output, KernelContext::GrainFor(row_ns),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          Row(s, i, in.unchecked_data<T>(), pooled.unchecked_data<T>(),
                              gradient.unchecked_data<T>(), out->mutable_data<T>());
                        }
                      });
      return absl::OkStatus();
    });
  }

 private:
  // Every output takes the gradient at the first element of its window that equals the pooled
  // value.
  template <typename T>
  static void Row(const PoolShape& s, int64_t i, const T* in, const T* pooled, const T* gradient,
                  T* out) {
    const int64_t image = i / s.rows.output * s.rows.input * s.columns.input;
    const PoolForm form = FormOf(s);
    for (int64_t column = 0; column < s.columns.output; ++column) {
      const PoolWindow w = WindowAt(form, i % s.rows.output, column);
      for (int64_t c = 0; c < s.depth; ++c) {
        const int64_t at = (i * s.columns.output + column) * s.depth + c;
        const T wanted = pooled[at];
        out[at] = T(0.0f);
        bool found = false;
        for (int64_t y = w.y0; y < w.y1 && !found; ++y) {
          for (int64_t x = w.x0; x < w.x1 && !found; ++x) {
            const int64_t from = (image + y * s.columns.input + x) * s.depth + c;
            found = in[from] == wanted;
            if (found) out[at] = gradient[from];
          }
        }
      }
    }
  }
};

class AvgPoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const PoolForm form = FormOf(s);
    const double row_ns = NanosecondsFor(s.columns.output * s.depth, s.rows.size * s.columns.size);
    const PoolFunctions& functions = Pool(simd::TypeOf(in.type()));
    ctx.ParallelFor(
        s.batch * s.rows.output, KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
          functions.average_rows(form, in.raw_data(), out->mutable_raw_data(), begin, end);
        });
    return absl::OkStatus();
  }
};

class AvgPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(1);
    std::array<int64_t, 4> dims;
    TROUPE_RETURN_IF_ERROR(ReadPoolSizes(ctx.input(0), "orig_input_shape", &dims));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, shape, false));
    TROUPE_RETURN_IF_ERROR(CheckPoolShape("grad", gradient.shape(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const int64_t in_size = s.rows.input * s.columns.input * s.depth;
    const int64_t out_size = s.rows.output * s.columns.output * s.depth;
    const PoolForm form = FormOf(s);
    const double image_ns = NanosecondsFor(out_size, s.rows.size * s.columns.size);
    return SwitchType<float, double, half, bfloat16>(gradient.type(), [&]<typename T>() {
      using Sum = typename PoolType<T>::Type;
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(image_ns), [&](int64_t begin, int64_t end) {
        std::vector<Sum> sums(std::is_same_v<T, Sum> ? 0 : in_size);
        for (int64_t n = begin; n < end; ++n) {
          const T* dy = gradient.unchecked_data<T>() + n * out_size;
          T* dx = out->mutable_data<T>() + n * in_size;
          if constexpr (std::is_same_v<T, Sum>) {
            Pool(simd::TypeOf(gradient.type())).average_gradient_image(form, dy, dx);
          } else {
            AvgPoolGradImage(form, dy, sums.data());
            for (int64_t i = 0; i < in_size; ++i) dx[i] = T(sums[i]);
          }
        }
      });
      return absl::OkStatus();
    });
  }
};

KernelSpec MaxSpec(const char* op) { return KernelSpec(op).Types("T", RealNumberTypes()); }
KernelSpec AvgSpec(const char* op) { return KernelSpec(op).Types("T", FloatTypes()); }

REGISTER_KERNELS(MaxSpec("MaxPool"), MakeKernel<MaxPoolKernel>, "MaxPoolV2");
REGISTER_KERNELS(MaxSpec("MaxPoolGrad"), MakeKernel<MaxPoolGradKernel>, "MaxPoolGradV2");
REGISTER_KERNELS(MaxSpec("MaxPoolGradGrad"), MakeKernel<MaxPoolGradGradKernel>,
                 "MaxPoolGradGradV2");
REGISTER_KERNEL(AvgSpec("AvgPool"), MakeKernel<AvgPoolKernel>);
REGISTER_KERNEL(AvgSpec("AvgPoolGrad"), MakeKernel<AvgPoolGradKernel>);

}  // namespace
}  // namespace troupe

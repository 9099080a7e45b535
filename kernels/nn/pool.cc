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
#include "kernels/nn/window.h"
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

// The sizes of one pooling.
struct PoolShape {
  int64_t batch = 0, depth = 0;
  Window rows, columns;
  int64_t depth_window = 1;

  Shape output_shape() const { return {batch, rows.output, columns.output, depth / depth_window}; }
  PoolForm Form() const {
    const auto axis = [](const Window& w) {
      return PoolAxis{w.input, w.output, w.size, w.stride, w.pad_before};
    };
    return {axis(rows), axis(columns), depth, nullptr};
  }
};

// What all pooling kernels share: windows from attributes, or from inputs (the versions V2).
class PoolKernel : public Kernel {
 public:
  PoolKernel(KernelConstruction& construction, absl::Status* status)
      : first_input_(construction.attrs().Has("ksize") ? -1 : construction.num_inputs() - 2) {
    *status = Read(construction);
  }

 protected:
  // The sizes for an input of shape `input`.
  absl::StatusOr<PoolShape> Resolve(KernelContext& ctx, const Shape& input,
                                    bool allows_depth) const {
    if (input.rank() != 4) {
      return InvalidArgument("pooling takes tensors of rank 4, got shape ", input.ToString());
    }
    std::array<int64_t, 4> window = window_, stride = stride_;
    if (first_input_ >= 0) {
      TROUPE_RETURN_IF_ERROR(ReadSizes(ctx.input(first_input_), "ksize", &window));
      TROUPE_RETURN_IF_ERROR(ReadSizes(ctx.input(first_input_ + 1), "strides", &stride));
      TROUPE_RETURN_IF_ERROR(Check(window, stride));
    }
    PoolShape s;
    s.batch = input.dim(0);
    s.depth = input.dim(3);
    s.rows = {.input = input.dim(1), .size = window[1], .stride = stride[1]};
    s.columns = {.input = input.dim(2), .size = window[2], .stride = stride[2]};
    if (padding_ == PaddingMode::kExplicit) {
      for (int d = 1; d < 3; ++d) {
        if (paddings_[2 * d] >= window[d] || paddings_[2 * d + 1] >= window[d]) {
          return InvalidArgument("explicit paddings must be smaller than the window, got ",
                                 paddings_[2 * d], " and ", paddings_[2 * d + 1],
                                 " for a window of ", window[d]);
        }
      }
    }
    if (window[3] != 1) {
      const char* wrong =
          !allows_depth ? "this op does not pool over depth on the CPU"
          : window[1] != 1 || window[2] != 1
              ? "pooling over depth and space at once is not supported"
          : s.depth % window[3] != 0 ? "the depth must be a multiple of the window's"
          : stride[3] != window[3]   ? "the stride of pooling over depth must be the window's depth"
                                     : nullptr;
      if (wrong != nullptr) {
        return absl::UnimplementedError(absl::StrCat(wrong, " (ksize [", window[0], ",", window[1],
                                                     ",", window[2], ",", window[3], "], input ",
                                                     input.ToString(), ")"));
      }
      s.depth_window = window[3];
    }
    TROUPE_RETURN_IF_ERROR(SlideBoth(padding_, paddings_, s.batch, s.depth, &s.rows, &s.columns));
    return s;
  }

  static absl::Status ReadSizes(const Tensor& sizes, const char* name,
                                std::array<int64_t, 4>* out) {
    if (sizes.rank() != 1 || sizes.dim(0) != 4) {
      return InvalidArgument(name, " must be a vector of 4 elements, got shape ",
                             sizes.shape().ToString());
    }
    std::copy_n(sizes.unchecked_data<int32_t>(), 4, out->begin());
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& construction) {
    const std::string format = construction.attrs().GetOr<std::string>("data_format", "NHWC");
    if (format != "NHWC") {
      return InvalidArgument(construction.op(), " on the CPU takes the data format NHWC only, got ",
                             format);
    }
    TROUPE_RETURN_IF_ERROR(ReadPadding(construction, &padding_, &paddings_));
    if (first_input_ >= 0) return absl::OkStatus();
    std::vector<int64_t> window, stride;
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("ksize", &window));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &stride));
    if (window.size() != 4 || stride.size() != 4) {
      return InvalidArgument("ksize and strides must have 4 elements, got ", window.size(), " and ",
                             stride.size());
    }
    std::copy_n(window.begin(), 4, window_.begin());
    std::copy_n(stride.begin(), 4, stride_.begin());
    return Check(window_, stride_);
  }

  static absl::Status Check(const std::array<int64_t, 4>& window,
                            const std::array<int64_t, 4>& stride) {
    if (window[0] != 1 || stride[0] != 1) {
      return absl::UnimplementedError("pooling over the batch is not supported");
    }
    for (int d = 0; d < 4; ++d) {
      if (window[d] <= 0 || stride[d] <= 0) {
        return InvalidArgument("ksize and strides must be positive, got ", window[d], " and ",
                               stride[d], " for dimension ", d);
      }
    }
    return absl::OkStatus();
  }

  // The input that holds ksize, before strides; -1 if they are attributes.
  const int first_input_;
  std::array<int64_t, 4> window_ = {}, stride_ = {};
  PaddingMode padding_ = PaddingMode::kValid;
  std::vector<int64_t> paddings_;
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
      PoolForm form = s.Form();
      form.lowest = &lowest;
      const double row_ns =
          NanosecondsFor(s.columns.output * s.depth, s.rows.size * s.columns.size);
      ctx.ParallelFor(s.batch * s.rows.output, KernelContext::GrainFor(row_ns),
                      [&](int64_t begin, int64_t end) {
                        if constexpr (std::is_same_v<T, float>) {
                          Pool().max_rows(form, from, to, begin, end);
                        } else {
                          MaxPoolRows(form, from, to, begin, end);
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

absl::Status CheckShape(const char* name, const Shape& got, const Shape& want) {
  if (got == want) return absl::OkStatus();
  return InvalidArgument(name, " has shape ", got.ToString(), ", expected ", want.ToString());
}

class MaxPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, in.shape(), false));
    TROUPE_RETURN_IF_ERROR(CheckShape("orig_output", ctx.input(1).shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckShape("grad", gradient.shape(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const PoolForm form = s.Form();
    const double image_ns = NanosecondsFor(s.rows.output * s.columns.output * s.depth,
                                           2 * s.rows.size * s.columns.size);
    return SwitchReal(in.type(), [&]<typename T>() {
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(image_ns), [&](int64_t begin, int64_t end) {
        const T* x = in.unchecked_data<T>();
        const T* dy = gradient.unchecked_data<T>();
        T* dx = out->mutable_data<T>();
        if constexpr (std::is_same_v<T, float>) {
          Pool().max_gradient_images(form, x, dy, dx, begin, end);
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
    TROUPE_RETURN_IF_ERROR(CheckShape("orig_output", pooled.shape(), s.output_shape()));
    TROUPE_RETURN_IF_ERROR(CheckShape("grad", gradient.shape(), in.shape()));
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
    const PoolForm form = s.Form();
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
    const PoolForm form = s.Form();
    const double row_ns = NanosecondsFor(s.columns.output * s.depth, s.rows.size * s.columns.size);
    return SwitchType<float, double, half, bfloat16>(in.type(), [&]<typename T>() {
      ctx.ParallelFor(
          s.batch * s.rows.output, KernelContext::GrainFor(row_ns),
          [&](int64_t begin, int64_t end) {
            if constexpr (std::is_same_v<T, float>) {
              Pool().average_rows(form, in.unchecked_data<T>(), out->mutable_data<T>(), begin, end);
            } else {
              AvgPoolRows(form, in.unchecked_data<T>(), out->mutable_data<T>(), begin, end);
            }
          });
      return absl::OkStatus();
    });
  }
};

class AvgPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& gradient = ctx.input(1);
    std::array<int64_t, 4> dims;
    TROUPE_RETURN_IF_ERROR(ReadSizes(ctx.input(0), "orig_input_shape", &dims));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, Resolve(ctx, shape, false));
    TROUPE_RETURN_IF_ERROR(CheckShape("grad", gradient.shape(), s.output_shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const int64_t in_size = s.rows.input * s.columns.input * s.depth;
    const int64_t out_size = s.rows.output * s.columns.output * s.depth;
    const PoolForm form = s.Form();
    const double image_ns = NanosecondsFor(out_size, s.rows.size * s.columns.size);
    return SwitchType<float, double, half, bfloat16>(gradient.type(), [&]<typename T>() {
      using Sum = typename PoolType<T>::Type;
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(image_ns), [&](int64_t begin, int64_t end) {
        std::vector<Sum> sums(std::is_same_v<T, Sum> ? 0 : in_size);
        for (int64_t n = begin; n < end; ++n) {
          const T* dy = gradient.unchecked_data<T>() + n * out_size;
          T* dx = out->mutable_data<T>() + n * in_size;
          if constexpr (std::is_same_v<T, float>) {
            Pool().average_gradient_image(form, dy, dx);
          } else if constexpr (std::is_same_v<T, Sum>) {
            AvgPoolGradImage(form, dy, dx);
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

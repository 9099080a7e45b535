// ResizeBilinear, ResizeBicubic, ResizeArea, ScaleAndTranslate, and the gradients of all but the
// third.
//
// A new row is a weighted sum of old rows that have been made as wide as it. Each old row is
// resized once, as long as a thread works its way down an image. A gradient is the same with the
// weights the other way round.
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/image/resize_axis.h"
#include "kernels/image/resize_shape.h"
#include "kernels/image/scale_axis.h"
#include "kernels/kernel.h"
#include "kernels/simd/resize.h"

namespace troupe {
namespace {

/// A resizing, along both axes.
struct Plan {
  int64_t batch, channels;
  int64_t from_height, from_width;
  ResizeAxis rows, columns;
  /// Pixels and rows have two taps each, the second weight being the fraction.
  bool lerps = false;

  int64_t height() const { return rows.size(); }
  int64_t width() const { return columns.size(); }
};

RowTaps TapsOf(const Plan& plan) {
  const ResizeAxis& axis = plan.columns;
  int64_t whole = plan.channels == 4 ? axis.size() : plan.channels == 3 ? axis.size() - 1 : 0;
  if (plan.channels == 3) {
    // Neither may the last old pixel be read as four numbers.
    for (int64_t x = 0; x < whole; ++x) {
      for (int32_t k = axis.begins[x]; k < axis.begins[x + 1]; ++k) {
        if (axis.indices[k] == plan.from_width - 1) whole = x;
      }
    }
  }
  return {axis.begins.data(), axis.indices.data(), axis.weights.data(),
          axis.size(),        plan.channels,       whole};
}

/// Old rows of T, made as wide as the new ones. The last ones are kept, as many as a new row is
/// made of, within bounds.
template <typename T>
class WideRows {
 public:
  WideRows(const Plan& plan, const RowTaps& taps, const T* images)
      : plan_(plan),
        taps_(taps),
        images_(images),
        size_(plan.width() * plan.channels),
        kept_(static_cast<size_t>(RowsToKeep(plan.rows)), -1),
        values_(kept_.size() * static_cast<size_t>(size_)) {}

  /// Row `row`, counted over all images. Good until three others have been asked for.
  const float* Get(int64_t row) {
    const int64_t at = row % static_cast<int64_t>(kept_.size());
    float* values = values_.data() + at * size_;
    if (kept_[at] != row) {
      kept_[at] = row;
      Fill(images_ + row * plan_.from_width * plan_.channels, values);
    }
    return values;
  }

 private:
  static int32_t RowsToKeep(const ResizeAxis& rows) {
    constexpr int32_t kLeast = 4, kMost = 16;
    int32_t most = kLeast;
    for (int64_t y = 0; y < rows.size() && most < kMost; ++y) {
      most = std::max(most, rows.begins[y + 1] - rows.begins[y]);
    }
    return std::min(most, kMost);
  }

  void Fill(const T* row, float* out) {
    const ResizeFunctions& functions = Resize();
    if constexpr (std::is_same_v<T, uint8_t>) {
      (plan_.lerps ? functions.lerp_bytes : functions.sum_bytes)(taps_, row, out);
    } else if constexpr (std::is_same_v<T, float>) {
      (plan_.lerps ? functions.lerp_floats : functions.sum_floats)(taps_, row, out);
    } else {
      floats_.resize(static_cast<size_t>(plan_.from_width * plan_.channels));
      for (size_t i = 0; i < floats_.size(); ++i) floats_[i] = static_cast<float>(row[i]);
      (plan_.lerps ? functions.lerp_floats : functions.sum_floats)(taps_, floats_.data(), out);
    }
  }

  const Plan& plan_;
  const RowTaps& taps_;
  const T* images_;
  const int64_t size_;
  std::vector<int64_t> kept_;
  std::vector<float> values_;
  std::vector<float> floats_;
};

/// New rows [begin, end), counted over all images.
template <typename T, typename To>
void ResizeRows(const Plan& plan, const RowTaps& taps, const T* images, int64_t begin, int64_t end,
                To* out) {
  const ResizeFunctions& functions = Resize();
  WideRows<T> wide(plan, taps, images);
  const int64_t size = plan.width() * plan.channels;
  std::vector<float> sum;
  if constexpr (!std::is_same_v<To, float>) sum.resize(static_cast<size_t>(size));
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first_row = i / plan.height() * plan.from_height, y = i % plan.height();
    To* to = out + i * size;
    float* row;
    if constexpr (std::is_same_v<To, float>) {
      row = to;
    } else {
      row = sum.data();
    }
    const int32_t k0 = plan.rows.begins[y], k1 = plan.rows.begins[y + 1];
    if (plan.lerps) {
      const float* top = wide.Get(first_row + plan.rows.indices[k0]);
      const float* bottom = wide.Get(first_row + plan.rows.indices[k0 + 1]);
      functions.lerp_rows(top, bottom, plan.rows.weights[k0 + 1], size, row);
    } else {
      if (k0 == k1) std::fill(row, row + size, 0.0f);
      for (int32_t k = k0; k < k1; ++k) {
        functions.add_row(wide.Get(first_row + plan.rows.indices[k]), plan.rows.weights[k], k == k0,
                          size, row);
      }
    }
    if constexpr (!std::is_same_v<To, float>) {
      for (int64_t x = 0; x < size; ++x) to[x] = static_cast<To>(row[x]);
    }
  }
}

/// Fills `out`, which has elements, with the images resized. Element types T to To.
template <typename T, typename To>
absl::Status ResizeAll(KernelContext& ctx, const Plan& plan, const Tensor& images, Tensor* out) {
  const RowTaps taps = TapsOf(plan);
  const auto per_row = [](const ResizeAxis& axis) {
    return static_cast<double>(axis.indices.size()) / static_cast<double>(axis.size());
  };
  const double row_ns = static_cast<double>(plan.width() * plan.channels) *
                        (0.3 * per_row(plan.columns) + 0.1 * per_row(plan.rows));
  ctx.ParallelFor(
      plan.batch * plan.height(), KernelContext::GrainFor(row_ns), [&](int64_t begin, int64_t end) {
        ResizeRows(plan, taps, images.unchecked_data<T>(), begin, end, out->mutable_data<To>());
      });
  return absl::OkStatus();
}

enum class ResizeMethod { kBilinear, kBicubic, kArea };

ResizeMethod MethodOf(const std::string& op) {
  return op.starts_with("ResizeBilinear")  ? ResizeMethod::kBilinear
         : op.starts_with("ResizeBicubic") ? ResizeMethod::kBicubic
                                           : ResizeMethod::kArea;
}

ResizeAxis AxisOf(ResizeMethod method, int64_t from, int64_t to, const ResizeMode& mode) {
  switch (method) {
    case ResizeMethod::kBilinear:
      return BilinearAxis(from, to, mode);
    case ResizeMethod::kBicubic:
      return BicubicAxis(from, to, mode);
    case ResizeMethod::kArea:
      break;
  }
  return AreaAxis(from, to, mode.align_corners);
}

class ResizeKernel final : public Kernel {
 public:
  ResizeKernel(KernelConstruction& c, absl::Status*)
      : method_(MethodOf(c.op())), mode_(ResizeModeOf(c)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, ResizeShapeOf(images, ctx.input(1), mode_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out,
                            ctx.AllocateOutput(0, ElementType::kFloat,
                                               Shape({s.batch, s.height, s.width, s.channels})));
    if (out->num_elements() == 0) return absl::OkStatus();
    const Plan plan{s.batch,
                    s.channels,
                    s.from_height,
                    s.from_width,
                    AxisOf(method_, s.from_height, s.height, mode_),
                    AxisOf(method_, s.from_width, s.width, mode_),
                    method_ == ResizeMethod::kBilinear};
    return SwitchReal(images.type(),
                      [&]<typename T>() { return ResizeAll<T, float>(ctx, plan, images, out); });
  }

 private:
  const ResizeMethod method_;
  const ResizeMode mode_;
};

class ResizeGradKernel final : public Kernel {
 public:
  ResizeGradKernel(KernelConstruction& c, absl::Status*)
      : method_(MethodOf(c.op())), mode_(ResizeModeOf(c)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    const Tensor& original = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, ResizeGradShapeOf(grads, original, mode_));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, original.type(), original.shape()));
    if (grads.num_elements() == 0) std::memset(out->mutable_raw_data(), 0, out->bytes());
    if (grads.num_elements() == 0 || out->num_elements() == 0) return absl::OkStatus();
    const Plan plan{s.batch,
                    s.channels,
                    s.height,
                    s.width,
                    Transposed(AxisOf(method_, s.from_height, s.height, mode_), s.from_height),
                    Transposed(AxisOf(method_, s.from_width, s.width, mode_), s.from_width),
                    /*lerps=*/false};
    return SwitchType<float, double, half, bfloat16>(original.type(), [&]<typename To>() {
      return ResizeAll<float, To>(ctx, plan, grads, out);
    });
  }

 private:
  const ResizeMethod method_;
  const ResizeMode mode_;
};

/// Where a pixel [y, x] goes: scale * position + translation.
struct PlaneMove {
  float scale[2], translation[2];
};

absl::StatusOr<PlaneMove> ReadMove(KernelContext& ctx) {
  PlaneMove move{};
  for (int input : {2, 3}) {
    const Tensor& values = ctx.input(input);
    if (values.rank() != 1 || values.dim(0) != 2) {
      return InvalidArgument("`", input == 2 ? "scale" : "translation",
                             "` must be a vector of 2 numbers, got shape ",
                             values.shape().ToString());
    }
    std::copy_n(values.unchecked_data<float>(), 2, input == 2 ? move.scale : move.translation);
  }
  if (!(move.scale[0] > 0 && move.scale[1] > 0)) {
    return InvalidArgument("`scale` must be positive, got ", move.scale[0], " and ", move.scale[1]);
  }
  return move;
}

class ScaleKernel final : public Kernel {
 public:
  ScaleKernel(KernelConstruction& c, absl::Status* status)
      : is_gradient_(c.op() == "ScaleAndTranslateGrad") {
    const absl::StatusOr<ScaleFilter> filter = FindScaleFilter(c.Attr<std::string>("kernel_type"));
    *status = filter.status();
    if (filter.ok()) options_ = {*filter, c.Attr<bool>("antialias")};
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& from = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, is_gradient_
                                                     ? ResizeGradShapeOf(from, ctx.input(1), {})
                                                     : ResizeShapeOf(from, ctx.input(1), {}));
    TROUPE_ASSIGN_OR_RETURN(const PlaneMove move, ReadMove(ctx));
    const Shape shape =
        is_gradient_ ? ctx.input(1).shape() : Shape({s.batch, s.height, s.width, s.channels});
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kFloat, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    Plan plan{s.batch, s.channels, s.from_height, s.from_width, {}, {}, /*lerps=*/false};
    TROUPE_ASSIGN_OR_RETURN(plan.rows, ScaledAxis(s.from_height, s.height, move.scale[0],
                                                  move.translation[0], options_));
    TROUPE_ASSIGN_OR_RETURN(plan.columns, ScaledAxis(s.from_width, s.width, move.scale[1],
                                                     move.translation[1], options_));
    if (is_gradient_) {
      plan.from_height = s.height;
      plan.from_width = s.width;
      plan.rows = Transposed(plan.rows, s.from_height);
      plan.columns = Transposed(plan.columns, s.from_width);
    }
    return SwitchReal(from.type(),
                      [&]<typename T>() { return ResizeAll<T, float>(ctx, plan, from, out); });
  }

 private:
  const bool is_gradient_;
  ScaleOptions options_{};
};

std::vector<ElementType> ImageTypes() {
  return {ElementType::kInt8,   ElementType::kUint8,   ElementType::kInt16, ElementType::kUint16,
          ElementType::kInt32,  ElementType::kInt64,   ElementType::kHalf,  ElementType::kFloat,
          ElementType::kDouble, ElementType::kBfloat16};
}

REGISTER_KERNELS(KernelSpec("ResizeBilinear").Types("T", ImageTypes()).HostMemory("size"),
                 MakeKernel<ResizeKernel>, "ResizeBicubic", "ResizeArea");
REGISTER_KERNEL(KernelSpec("ScaleAndTranslate").Types("T", ImageTypes()).HostMemory("size"),
                MakeKernel<ScaleKernel>);
REGISTER_KERNEL(KernelSpec("ScaleAndTranslateGrad"), MakeKernel<ScaleKernel>);
REGISTER_KERNEL(KernelSpec("ResizeBilinearGrad").Types("T", FloatTypes()),
                MakeKernel<ResizeGradKernel>);
REGISTER_KERNEL(
    KernelSpec("ResizeBicubicGrad").Types("T", {ElementType::kFloat, ElementType::kDouble}),
    MakeKernel<ResizeGradKernel>);

}  // namespace
}  // namespace troupe

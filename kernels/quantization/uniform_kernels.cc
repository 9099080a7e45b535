// UniformQuantize, UniformDequantize, UniformRequantize, UniformQuantizedClipByValue. The
// arithmetic is TensorFlow's to the last bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/quantization/slices.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// A scale and a zero point for each slice along an axis, or one for all.
class ScalesAndZeroPoints {
 public:
  /// From inputs `first` and `first + 1`, for data of input 0.
  static absl::StatusOr<ScalesAndZeroPoints> Read(const KernelContext& ctx, int first,
                                                  int64_t axis) {
    const Shape& data = ctx.input(0).shape();
    const Tensor& scales = ctx.input(first);
    const Tensor& zero_points = ctx.input(first + 1);
    if (axis < -1 || axis >= data.rank()) {
      return InvalidArgument("the axis must be -1 or one of the ", data.rank(),
                             " dimensions of data of the shape ", data.ToString(), ", got ", axis);
    }
    const bool fits = axis == -1
                          ? scales.rank() == 0
                          : scales.rank() == 1 && scales.dim(0) == data.dim(static_cast<int>(axis));
    if (!fits || scales.shape() != zero_points.shape()) {
      return InvalidArgument("scales and zero points must be ",
                             axis == -1 ? "scalars" : "vectors of an element for each slice",
                             "; for data of the shape ", data.ToString(), " and the axis ", axis,
                             " they are of the shapes ", scales.shape().ToString(), " and ",
                             zero_points.shape().ToString());
    }
    return ScalesAndZeroPoints(scales.unchecked_data<float>(),
                               zero_points.unchecked_data<int32_t>(), scales.num_elements(),
                               axis == -1 ? 0 : 1);
  }

  float scale(int64_t i) const { return scales_[i * step_]; }
  int32_t zero_point(int64_t i) const { return zero_points_[i * step_]; }
  bool all_positive() const {
    return std::all_of(scales_, scales_ + count_, [](float scale) { return scale > 0; });
  }

 private:
  ScalesAndZeroPoints(const float* scales, const int32_t* zero_points, int64_t count, int64_t step)
      : scales_(scales), zero_points_(zero_points), count_(count), step_(step) {}

  const float* scales_;
  const int32_t* zero_points_;
  int64_t count_, step_;
};

/// Sums and differences wrap around, as in TensorFlow's kernels.
int32_t Wrapped(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

/// What x86-64 makes of a float: the smallest integer if it does not fit.
int32_t CutOff(float x) {
  constexpr float kAbove = 2147483648.0f;
  return x >= -kAbove && x < kAbove ? static_cast<int32_t>(x) : INT32_MIN;
}

struct Limits {
  int32_t min, max;
  template <typename Q>
  Q Clamp(int32_t x) const {
    return Q(static_cast<typename Q::Storage>(std::max(std::min(x, max), min)));
  }
};

absl::Status UniformQuantize(KernelContext& ctx, ElementType type, int64_t axis, int32_t min,
                             int32_t max) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto parameters, ScalesAndZeroPoints::Read(ctx, 1, axis));
  TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(input.shape(), axis));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, input.shape()));
  const Limits limits{min, max};
  return SwitchType<qint8, quint8, qint32>(type, [&]<typename Q>() {
    const auto quantize = [&](int64_t i, int64_t n, Q* out, const float* in) {
      const float inverse = 1.0f / parameters.scale(i);
      const int64_t zero_point = parameters.zero_point(i);
      for (int64_t k = 0; k < n; ++k) {
        const int32_t rounded = CutOff(std::floor(in[k] * inverse + 0.5f));
        out[k] = limits.Clamp<Q>(Wrapped(rounded + zero_point));
      }
    };
    slices.Transform(ctx, 2.0, output->mutable_data<Q>(), quantize, input.unchecked_data<float>());
    return absl::OkStatus();
  });
}

absl::Status UniformDequantize(KernelContext& ctx, int64_t axis) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto parameters, ScalesAndZeroPoints::Read(ctx, 1, axis));
  if (!parameters.all_positive()) return InvalidArgument("scales must be positive");
  TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(input.shape(), axis));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kFloat, input.shape()));
  return SwitchType<qint8, quint8, qint32>(input.type(), [&]<typename Q>() {
    const auto dequantize = [&](int64_t i, int64_t n, float* out, const Q* in) {
      const float scale = parameters.scale(i);
      const int64_t zero_point = parameters.zero_point(i);
      for (int64_t k = 0; k < n; ++k) {
        // TensorFlow's integers become floats first, of which 32 bits lose some.
        const auto value = Saturated<int32_t>(static_cast<float>(in[k].value));
        out[k] = static_cast<float>(Wrapped(value - zero_point)) * scale;
      }
    };
    slices.Transform(ctx, 1.0, output->mutable_data<float>(), dequantize,
                     input.unchecked_data<Q>());
    return absl::OkStatus();
  });
}

/// Multiplies integers by a positive number, of which it takes 31 bits, and rounds half up.
class FixedPointFactor {
 public:
  static absl::StatusOr<FixedPointFactor> Create(double factor) {
    if (!(factor > 0 && std::isfinite(factor))) {
      return InvalidArgument("the quotient of scales must be a positive number, got ", factor);
    }
    constexpr int64_t kOne = int64_t{1} << 31;
    int exponent;
    auto mantissa = static_cast<int64_t>(std::round(std::frexp(factor, &exponent) * kOne));
    if (mantissa == kOne) {
      mantissa /= 2;
      ++exponent;
    }
    if (exponent < -31) return FixedPointFactor(0, 0);
    if (exponent > 30) return FixedPointFactor(kOne - 1, 30);
    return FixedPointFactor(mantissa, exponent);
  }

  int32_t Times(int32_t x) const {
    const int shift = 31 - exponent_;
    const int64_t product = x * mantissa_ + (int64_t{1} << (shift - 1));
    return static_cast<int32_t>(std::clamp<int64_t>(product >> shift, INT32_MIN, INT32_MAX));
  }

 private:
  FixedPointFactor(int64_t mantissa, int exponent) : mantissa_(mantissa), exponent_(exponent) {}

  int64_t mantissa_;
  int exponent_;
};

absl::Status UniformRequantize(KernelContext& ctx, ElementType type, int64_t input_axis,
                               int64_t output_axis, int32_t min, int32_t max) {
  if (input_axis >= 0 && output_axis >= 0 && input_axis != output_axis) {
    return InvalidArgument("the axes of input and output must be the same, got ", input_axis,
                           " and ", output_axis);
  }
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const auto from, ScalesAndZeroPoints::Read(ctx, 1, input_axis));
  TROUPE_ASSIGN_OR_RETURN(const auto to, ScalesAndZeroPoints::Read(ctx, 3, output_axis));
  if (!from.all_positive() || !to.all_positive()) {
    return InvalidArgument("scales must be positive");
  }
  TROUPE_ASSIGN_OR_RETURN(const Slices slices,
                          Slices::Along(input.shape(), std::max(input_axis, output_axis)));
  std::vector<FixedPointFactor> factors;
  for (int64_t i = 0; i < slices.count; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        const FixedPointFactor factor,
        FixedPointFactor::Create(static_cast<double>(from.scale(i)) / to.scale(i)));
    factors.push_back(factor);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, input.shape()));
  const Limits limits{min, max};
  return SwitchType<qint8, qint32>(input.type(), [&]<typename Q>() {
    const auto requantize = [&](int64_t i, int64_t n, qint8* out, const Q* in) {
      const FixedPointFactor factor = factors[static_cast<size_t>(i)];
      const int64_t from_zero = from.zero_point(i), to_zero = to.zero_point(i);
      for (int64_t k = 0; k < n; ++k) {
        const int32_t scaled = factor.Times(Wrapped(in[k].value - from_zero));
        out[k] = limits.Clamp<qint8>(Wrapped(scaled + to_zero));
      }
    };
    slices.Transform(ctx, 2.0, output->mutable_data<qint8>(), requantize,
                     input.unchecked_data<Q>());
    return absl::OkStatus();
  });
}

absl::Status UniformQuantizedClipByValue(KernelContext& ctx, int64_t axis) {
  const Tensor &operand = ctx.input(0), &min = ctx.input(1), &max = ctx.input(2);
  TROUPE_RETURN_IF_ERROR(ScalesAndZeroPoints::Read(ctx, 3, axis).status());
  if (min.shape() != ctx.input(3).shape() || max.shape() != ctx.input(3).shape()) {
    return InvalidArgument("min and max must be of the shape of the scales, ",
                           ctx.input(3).shape().ToString(), ", got ", min.shape().ToString(),
                           " and ", max.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(operand.shape(), axis));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, operand.type(), operand.shape()));
  const auto clip = [&](int64_t i, int64_t n, qint32* out, const qint32* in) {
    const int32_t least = min.unchecked_data<qint32>()[i].value;
    const int32_t most = max.unchecked_data<qint32>()[i].value;
    for (int64_t k = 0; k < n; ++k) out[k] = qint32(std::min(std::max(in[k].value, least), most));
  };
  slices.Transform(ctx, 0.5, output->mutable_data<qint32>(), clip,
                   operand.unchecked_data<qint32>());
  return absl::OkStatus();
}

REGISTER_KERNEL(KernelSpec("UniformQuantize"),
                (MakeAttrKernel<UniformQuantize, "Tout", "quantization_axis",
                                "quantization_min_val", "quantization_max_val">));
REGISTER_KERNEL(KernelSpec("UniformDequantize"),
                (MakeAttrKernel<UniformDequantize, "quantization_axis">));
REGISTER_KERNEL(KernelSpec("UniformRequantize").Types("Tout", {ElementType::kQint8}),
                (MakeAttrKernel<UniformRequantize, "Tout", "input_quantization_axis",
                                "output_quantization_axis", "output_quantization_min_val",
                                "output_quantization_max_val">));
REGISTER_KERNEL(KernelSpec("UniformQuantizedClipByValue"),
                (MakeAttrKernel<UniformQuantizedClipByValue, "quantization_axis">));

}  // namespace
}  // namespace troupe

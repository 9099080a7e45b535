// Requantize, RequantizationRange, their siblings for channels, QuantizeDownAndShrinkRange.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// From qint32 to quint8 in fixed point, with 16 bits behind the point, as TensorFlow does it.
class FixedPointRequantizer {
 public:
  FixedPointRequantizer(const QuantizedRange& from, const QuantizedRange& to) {
    constexpr int kOne = 1 << kShift;
    const float width = to.width();
    const float middle = static_cast<float>((from.min + from.max) / 2.0);
    int64_t to_min = 0;
    float reciprocal = 0;
    if (width != 0) {
      reciprocal = static_cast<float>(255.0 / width);
      scale_ = Truncated(255.0 * kOne * from.width() / width);
      to_min = Truncated(kOne * (to.min * 255.0) / width);
    }
    offset_ = static_cast<uint64_t>(Truncated(middle * reciprocal * kOne)) -
              static_cast<uint64_t>(to_min) + kOne / 2;
  }

  quint8 operator()(qint32 q) const {
    const auto value = static_cast<int64_t>(static_cast<float>(q.value));  // As DequantizeOne.
    const auto scaled =
        static_cast<int64_t>(static_cast<uint64_t>(value) * static_cast<uint64_t>(scale_));
    const auto fixed = static_cast<int64_t>(static_cast<uint64_t>(scaled >> 32) + offset_);
    return quint8(static_cast<uint8_t>(std::clamp<int64_t>(fixed >> kShift, 0, 255)));
  }

 private:
  static constexpr int kShift = 16;
  static int64_t Truncated(double x) { return Saturated<int64_t>(x); }

  int64_t scale_ = 0;
  uint64_t offset_ = 0;  // Wraps around where ranges are absurd.
};

template <typename Q>
void RequantizeTensor(KernelContext& ctx, const Tensor& input, const QuantizedRange& from,
                      const QuantizedRange& to, Tensor* output) {
  const qint32* in = input.unchecked_data<qint32>();
  Q* out = output->mutable_data<Q>();
  const FixedPointRequantizer requantize(from, to);
  ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(0.5),
                  [&](int64_t begin, int64_t end) {
                    if constexpr (std::is_same_v<Q, quint8>) {
                      for (int64_t i = begin; i < end; ++i) out[i] = requantize(in[i]);
                    } else {
                      RequantizeAll(in + begin, end - begin, from, to, out + begin);
                    }
                  });
}

absl::Status RequantizeTo(KernelContext& ctx, const QuantizedRange& from, const QuantizedRange& to,
                          ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, ctx.input(0).shape()));
  TROUPE_RETURN_IF_ERROR((SwitchType<qint8, quint8>(type, [&]<typename Q>() {
    RequantizeTensor<Q>(ctx, ctx.input(0), from, to, output);
    return absl::OkStatus();
  })));
  return SetRange(ctx, 1, to);
}

absl::Status Requantize(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange from, ReadRange(ctx, 1));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange to, ReadRange(ctx, 3));
  if (!(to.min <= 0 && to.max >= to.min)) {
    return InvalidArgument("the requested range must begin at 0 or below and not end before that; ",
                           "it is from ", to.min, " to ", to.max);
  }
  return RequantizeTo(ctx, from, to, type);
}

/// What the smallest element, or 0, and the largest one stand for.
QuantizedRange UsedRange(const Tensor& input, const QuantizedRange& range) {
  qint32 least(INT32_MAX), most(INT32_MIN);
  Quantization().int_extremes(&input.unchecked_data<qint32>()->value, input.num_elements(),
                              &least.value, &most.value);
  return {std::min(0.0f, DequantizeOne(least, range)), DequantizeOne(most, range)};
}

absl::Status RequantizationRange(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 1, /*any_rank=*/true));
  return SetRange(ctx, 0, UsedRange(ctx.input(0), range));
}

absl::Status QuantizeDownAndShrinkRange(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 1));
  return RequantizeTo(ctx, range, UsedRange(ctx.input(0), range), type);
}

/// The larger of the absolute values of the ends of channel i's range.
float Magnitude(const KernelContext& ctx, int64_t i) {
  return std::max(std::abs(ctx.input(1).unchecked_data<float>()[i]),
                  std::abs(ctx.input(2).unchecked_data<float>()[i]));
}

/// The number of integers below 0, of which the range's magnitude is that of one more than the
/// last.
constexpr float kHalfOfInt32 = 2147483648.0f;

/// InvalidArgument unless input 0 has channels as its last dimension, and inputs 1 and 2 a range
/// for each.
absl::Status CheckChannels(const KernelContext& ctx, int most_rank) {
  const Shape& shape = ctx.input(0).shape();
  if (shape.rank() < 4 || shape.rank() > most_rank) {
    return InvalidArgument(
        "input must be images with channels as their last dimension, got the "
        "shape ",
        shape.ToString());
  }
  for (int i = 1; i <= 2; ++i) {
    if (ctx.input(i).num_elements() != shape.dim(shape.rank() - 1)) {
      return InvalidArgument("a range must have an element for each of the ",
                             shape.dim(shape.rank() - 1), " channels; input ", i, " has the shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status RequantizePerChannel(KernelContext& ctx, ElementType type) {
  TROUPE_RETURN_IF_ERROR(CheckChannels(ctx, /*most_rank=*/5));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange to, ReadRange(ctx, 3, /*any_rank=*/true));
  if (type == ElementType::kQint8 && !(to.min < 0)) {
    return InvalidArgument("the requested range of qint8 must begin below 0, got ", to.min);
  }
  const Tensor& input = ctx.input(0);
  const float most = std::max(std::abs(to.min), std::abs(to.max));
  const float steps = type == ElementType::kQint8 ? 127.0f : 255.0f;
  std::vector<float> scales(ctx.input(1).num_elements());
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = steps * (Magnitude(ctx, static_cast<int64_t>(i)) / most / kHalfOfInt32);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, input.shape()));
  const auto channels = static_cast<int64_t>(scales.size());
  TROUPE_RETURN_IF_ERROR((SwitchType<qint8, quint8>(type, [&]<typename Q>() {
    const qint32* in = input.unchecked_data<qint32>();
    Q* out = output->mutable_data<Q>();
    ToInteger to_even;
    to_even.rounding = Rounding::kHalfToEven;
    const auto requantize = [&](int64_t begin, int64_t end) {
      float block[kQuantizedBlock];
      ForQuantizedBlocks(end - begin, [&](int64_t done, int64_t count) {
        const int64_t at = begin + done;
        int64_t channel = at % channels;
        for (int64_t i = 0; i < count; ++i) {
          block[i] = static_cast<float>(in[at + i].value) * scales[channel];
          if (++channel == channels) channel = 0;
        }
        QuantizeAll(block, count, to_even, out + at);
      });
    };
    ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(1.0), requantize);
    return absl::OkStatus();
  })));
  return SetRange(ctx, 1, to);
}

absl::Status RequantizationRangePerChannel(KernelContext& ctx, float clip_value_max) {
  TROUPE_RETURN_IF_ERROR(CheckChannels(ctx, /*most_rank=*/4));
  const Tensor& input = ctx.input(0);
  if (input.num_elements() == 0) return InvalidArgument("input must not be empty");
  const int64_t channels = input.dim(3);
  std::vector<int64_t> most(channels, 0);
  bool negative = false;
  const qint32* values = input.unchecked_data<qint32>();
  for (int64_t i = 0; i < input.num_elements(); i += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const int32_t value = values[i + c].value;
      most[c] = std::max(most[c], std::abs(int64_t{value}));
      negative |= value < 0;
    }
  }
  float magnitude = std::numeric_limits<float>::min();
  for (int64_t i = 0; i < channels; ++i) {
    magnitude = std::max(magnitude, Magnitude(ctx, i) * static_cast<float>(most[i]) / kHalfOfInt32);
  }
  if (magnitude > clip_value_max) magnitude = clip_value_max;
  return SetRange(ctx, 0, {negative ? -magnitude : 0.0f, magnitude});
}

REGISTER_KERNEL(KernelSpec("Requantize")
                    .Types("Tinput", {ElementType::kQint32})
                    .Types("out_type", {ElementType::kQuint8, ElementType::kQint8}),
                (MakeAttrKernel<Requantize, "out_type">));
REGISTER_KERNEL(KernelSpec("RequantizePerChannel")
                    .Types("T", {ElementType::kQint32})
                    .Types("out_type", {ElementType::kQuint8, ElementType::kQint8}),
                (MakeAttrKernel<RequantizePerChannel, "out_type">));
REGISTER_KERNEL(KernelSpec("RequantizationRangePerChannel").Types("T", {ElementType::kQint32}),
                (MakeAttrKernel<RequantizationRangePerChannel, "clip_value_max">));
REGISTER_KERNEL(KernelSpec("RequantizationRange").Types("Tinput", {ElementType::kQint32}),
                MakeKernel<RequantizationRange>);
REGISTER_KERNEL(KernelSpec("QuantizeDownAndShrinkRange")
                    .Types("Tinput", {ElementType::kQint32})
                    .Types("out_type", {ElementType::kQuint8}),
                (MakeAttrKernel<QuantizeDownAndShrinkRange, "out_type">));

}  // namespace
}  // namespace troupe

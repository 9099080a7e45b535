// Requantize, RequantizationRange, QuantizeDownAndShrinkRange.
#include <algorithm>
#include <cstdint>
#include <type_traits>

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
void RequantizeAll(KernelContext& ctx, const Tensor& input, const QuantizedRange& from,
                   const QuantizedRange& to, Tensor* output) {
  const qint32* in = input.unchecked_data<qint32>();
  Q* out = output->mutable_data<Q>();
  const auto each = [&](auto requantize) {
    ctx.ParallelFor(input.num_elements(), KernelContext::GrainFor(1.0),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) out[i] = requantize(in[i]);
                    });
  };
  if constexpr (std::is_same_v<Q, quint8>) {
    each(FixedPointRequantizer(from, to));
  } else {
    each([dequantize = Dequantizer<qint32>(from), quantize = Quantizer<Q>(to)](qint32 q) {
      return quantize(dequantize(q));
    });
  }
}

absl::Status RequantizeTo(KernelContext& ctx, const QuantizedRange& from, const QuantizedRange& to,
                          ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, ctx.input(0).shape()));
  TROUPE_RETURN_IF_ERROR((SwitchType<qint8, quint8>(type, [&]<typename Q>() {
    RequantizeAll<Q>(ctx, ctx.input(0), from, to, output);
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
  for (const qint32 q : input.unchecked_values<qint32>()) {
    least.value = std::min(least.value, q.value);
    most.value = std::max(most.value, q.value);
  }
  return {std::min(0.0f, DequantizeOne(least, range)), DequantizeOne(most, range)};
}

absl::Status RequantizationRange(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 1));
  return SetRange(ctx, 0, UsedRange(ctx.input(0), range));
}

absl::Status QuantizeDownAndShrinkRange(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 1));
  return RequantizeTo(ctx, range, UsedRange(ctx.input(0), range), type);
}

REGISTER_KERNEL(KernelSpec("Requantize")
                    .Types("Tinput", {ElementType::kQint32})
                    .Types("out_type", {ElementType::kQuint8, ElementType::kQint8}),
                (MakeAttrKernel<Requantize, "out_type">));
REGISTER_KERNEL(KernelSpec("RequantizationRange").Types("Tinput", {ElementType::kQint32}),
                MakeKernel<RequantizationRange>);
REGISTER_KERNEL(KernelSpec("QuantizeDownAndShrinkRange")
                    .Types("Tinput", {ElementType::kQint32})
                    .Types("out_type", {ElementType::kQuint8}),
                (MakeAttrKernel<QuantizeDownAndShrinkRange, "out_type">));

}  // namespace
}  // namespace troupe

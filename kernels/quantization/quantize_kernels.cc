// QuantizeV2 and Dequantize.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/inlined_vector.h"
#include "devices/half.h"
#include "kernels/common/quantized_types.h"
#include "kernels/common/registration.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/quantization/slices.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

enum class Mode { kMinCombined, kMinFirst, kScaled };

/// The attributes that both ops have.
class QuantizationKernel : public Kernel {
 public:
  explicit QuantizationKernel(const KernelConstruction& c)
      : narrow_range_(c.Attr<bool>("narrow_range")), axis_(c.Attr<int64_t>("axis")) {
    const std::string mode = c.Attr<std::string>("mode");
    mode_ = mode == "SCALED"      ? Mode::kScaled
            : mode == "MIN_FIRST" ? Mode::kMinFirst
                                  : Mode::kMinCombined;
  }

 protected:
  /// The slices of input 0, whose ranges inputs 1 and 2 are.
  absl::StatusOr<Slices> ReadSlices(const KernelContext& ctx) const {
    TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(ctx.input(0).shape(), axis_));
    for (int i = 1; i <= 2; ++i) TROUPE_RETURN_IF_ERROR(CheckRangeSize(ctx, i, slices));
    if (mode_ == Mode::kMinFirst && slices.count != 1) {
      return absl::UnimplementedError("the mode MIN_FIRST has no axis");
    }
    return slices;
  }
  static QuantizedRange RangeOf(const KernelContext& ctx, int64_t slice) {
    return {ctx.input(1).unchecked_data<float>()[slice],
            ctx.input(2).unchecked_data<float>()[slice]};
  }
  /// The smallest integer of the mode SCALED.
  template <typename Q>
  float LowestScaled() const {
    return static_cast<float>(kLowestOf<Q> + (narrow_range_ ? 1 : 0));
  }

  Mode mode_ = Mode::kMinCombined;
  const bool narrow_range_;
  const int64_t axis_;
};

/// Half of the integers of a signed type: how many are below 0.
template <typename Q>
constexpr float kBelowZero = static_cast<float>(-kLowestOf<Q>);

class QuantizeKernel final : public QuantizationKernel {
 public:
  QuantizeKernel(const KernelConstruction& c, absl::Status* status)
      : QuantizationKernel(c),
        half_to_even_(c.Attr<std::string>("round_mode") == "HALF_TO_EVEN"),
        ensure_minimum_range_(c.Attr<float>("ensure_minimum_range")),
        type_(c.output_type(0)) {
    if (half_to_even_ && mode_ != Mode::kScaled) {
      *status = InvalidArgument("the round_mode HALF_TO_EVEN needs the mode SCALED, got ",
                                c.Attr<std::string>("mode"));
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const Slices slices, ReadSlices(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type_, input.shape()));
    const Shape range_shape = axis_ == -1 ? Shape() : Shape({slices.count});
    TROUPE_ASSIGN_OR_RETURN(Tensor * min, ctx.AllocateOutput(1, ElementType::kFloat, range_shape));
    TROUPE_ASSIGN_OR_RETURN(Tensor * max, ctx.AllocateOutput(2, ElementType::kFloat, range_shape));
    return SwitchQuantized(type_, [&]<typename Q>() -> absl::Status {
      absl::InlinedVector<ToInteger, 1> grids;
      for (int64_t i = 0; i < slices.count; ++i) {
        const QuantizedRange given = RangeOf(ctx, i);
        if (given.max < given.min) {
          return InvalidArgument(
              "the maximum of a range must not be less than its minimum; "
              "they are ",
              given.max, " and ", given.min);
        }
        QuantizedRange range = Widened(given);
        grids.push_back(Grid<Q>(&range));
        min->mutable_data<float>()[i] = range.min;
        max->mutable_data<float>()[i] = range.max;
      }
      const auto quantize = [&](int64_t i, int64_t n, Q* q, const float* x) {
        QuantizeAll(x, n, grids[static_cast<size_t>(i)], q);
      };
      slices.Transform(ctx, 0.2, output->mutable_data<Q>(), quantize,
                       input.unchecked_data<float>());
      return absl::OkStatus();
    });
  }

 private:
  /// The range with 0 in it, and of some width, so that integers stand for different numbers.
  QuantizedRange Widened(const QuantizedRange& given) const {
    const float min = std::min(0.0f, given.min);
    const float width = std::max(1.0f, std::max(std::fabs(given.min), std::fabs(given.max))) *
                        ensure_minimum_range_;
    return {min, std::max(0.0f, std::max(given.max, min + width))};
  }

  /// How to quantize; the range becomes what the integers have.
  template <typename Q>
  ToInteger Grid(QuantizedRange* range) const {
    if (mode_ == Mode::kMinFirst) return QuantizerOf<Q>(*range);
    ToInteger how;
    if (mode_ == Mode::kMinCombined) {
      constexpr bool kSigned = kLowestOf<Q> < 0;
      how.shift = range->min;
      how.scale = static_cast<float>(kStepsOf<Q> / range->width());
      how.zero = kSigned ? kBelowZero<Q> : 0.0f;
      how.rounding = kSigned ? Rounding::kHalfAwayFromZero : Rounding::kHalfUp;
    } else {
      const float lowest = LowestScaled<Q>(), highest = static_cast<float>(kHighestOf<Q>);
      constexpr float kMost = std::numeric_limits<float>::max();
      how.scale = std::min(lowest * range->min > 0 ? lowest / range->min : kMost,
                           highest * range->max > 0 ? highest / range->max : kMost);
      how.rounding = half_to_even_ ? Rounding::kHalfToEven : Rounding::kHalfAwayFromZero;
      *range = {lowest / how.scale, highest / how.scale};
    }
    how.min = range->min;
    how.max = range->max;
    return how;
  }

  const bool half_to_even_;
  const float ensure_minimum_range_;
  const ElementType type_;
};

template <typename Q>
void DequantizeAll(const Q* q, int64_t n, const FromInteger& how, bfloat16* x) {
  float block[kQuantizedBlock];
  ForQuantizedBlocks(n, [&](int64_t i, int64_t count) {
    DequantizeAll(q + i, count, how, block);
    simd::Functions().cast[simd::kCastF32][simd::kCastBF16](block, x + i, count);
  });
}

class DequantizeKernel final : public QuantizationKernel {
 public:
  DequantizeKernel(const KernelConstruction& c, absl::Status* status)
      : QuantizationKernel(c), type_(c.output_type(0)) {
    if (type_ == ElementType::kBfloat16 && mode_ != Mode::kMinCombined) {
      *status = InvalidArgument("bfloat16 needs the mode MIN_COMBINED, got ",
                                c.Attr<std::string>("mode"));
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const Slices slices, ReadSlices(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type_, input.shape()));
    return SwitchQuantized(input.type(), [&]<typename Q>() {
      return SwitchType<float, bfloat16>(type_, [&]<typename T>() -> absl::Status {
        absl::InlinedVector<FromInteger, 1> lines;
        for (int64_t i = 0; i < slices.count; ++i) lines.push_back(Line<Q>(RangeOf(ctx, i)));
        const auto dequantize = [&](int64_t i, int64_t n, T* x, const Q* q) {
          DequantizeAll(q, n, lines[static_cast<size_t>(i)], x);
        };
        slices.Transform(ctx, 0.2, output->mutable_data<T>(), dequantize,
                         input.unchecked_data<Q>());
        return absl::OkStatus();
      });
    });
  }

 private:
  template <typename Q>
  FromInteger Line(const QuantizedRange& range) const {
    if (mode_ == Mode::kMinFirst) return DequantizerOf<Q>(range);
    if (mode_ == Mode::kMinCombined) {
      const float steps = static_cast<float>(kHighestOf<Q>) - static_cast<float>(kLowestOf<Q>);
      return {.shift = kBelowZero<Q>, .scale = range.width() / steps, .offset = range.min};
    }
    const float of_max = range.max / static_cast<float>(kHighestOf<Q>);
    return {.scale = kLowestOf<Q> == 0 ? of_max : std::max(range.min / LowestScaled<Q>(), of_max)};
  }

  const ElementType type_;
};

REGISTER_KERNEL(KernelSpec("QuantizeV2").Types("T", QuantizedTypes()), MakeKernel<QuantizeKernel>);
REGISTER_KERNEL(KernelSpec("Dequantize").Types("T", QuantizedTypes()),
                MakeKernel<DequantizeKernel>);

}  // namespace
}  // namespace troupe

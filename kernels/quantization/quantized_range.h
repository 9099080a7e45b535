/// What integers of quantized types stand for.
///
/// The arithmetic is TensorFlow's to the last bit, that is to say which steps are of float and
/// which of double, so that graphs give the same integers in both.
#ifndef TROUPE_KERNELS_QUANTIZATION_QUANTIZED_RANGE_H_
#define TROUPE_KERNELS_QUANTIZATION_QUANTIZED_RANGE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "absl/status/statusor.h"
#include "devices/quantized.h"
#include "kernels/kernel.h"
#include "kernels/simd/quantize.h"

namespace troupe {

/// The numbers for which the smallest and the largest integer of a type stand.
struct QuantizedRange {
  float min = 0, max = 0;
  float width() const { return max - min; }
  bool operator==(const QuantizedRange&) const = default;
};

/// The range in inputs `first` and `first + 1`, scalars or, with `any_rank`, of one element each;
/// InvalidArgument names them.
inline absl::StatusOr<QuantizedRange> ReadRange(const KernelContext& ctx, int first,
                                                bool any_rank = false) {
  for (int i = first; i < first + 2; ++i) {
    const Tensor& end = ctx.input(i);
    if (end.num_elements() != 1 || (end.rank() != 0 && !any_rank)) {
      return InvalidArgument("a range's minimum and maximum are scalars; input ", i,
                             " has the shape ", end.shape().ToString());
    }
  }
  return QuantizedRange{ctx.input(first).unchecked_scalar<float>(),
                        ctx.input(first + 1).unchecked_scalar<float>()};
}

/// The same of a range that must not be empty.
inline absl::StatusOr<QuantizedRange> ReadWideRange(const KernelContext& ctx, int first,
                                                    bool any_rank = false) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, first, any_rank));
  if (range.max > range.min) return range;
  return InvalidArgument("the maximum of a range must be larger than its minimum; inputs ", first,
                         " and ", first + 1, " are ", range.min, " and ", range.max);
}

/// Makes outputs `first` and `first + 1` the scalars of `range`.
inline absl::Status SetRange(KernelContext& ctx, int first, const QuantizedRange& range) {
  TROUPE_RETURN_IF_ERROR(ctx.SetScalar(first, range.min));
  return ctx.SetScalar(first + 1, range.max);
}

template <typename Q>
constexpr int64_t kLowestOf{std::numeric_limits<typename Q::Storage>::lowest()};
template <typename Q>
constexpr int64_t kHighestOf{std::numeric_limits<typename Q::Storage>::max()};
/// One less than the number of integers of the type.
template <typename Q>
constexpr double kStepsOf = static_cast<double>(kHighestOf<Q> - kLowestOf<Q>);

/// `x`, a whole number or NaN, as the nearest integer of `Int`; NaN gives 0.
template <typename Int, typename Real>
Int Saturated(Real x) {
  // Both limits are powers of 2, which Real has.
  constexpr Real kBelow = static_cast<Real>(std::numeric_limits<Int>::lowest());
  constexpr Int kHalf = std::numeric_limits<Int>::max() / 2 + 1;
  constexpr Real kAbove = static_cast<Real>(kHalf) * 2;
  if (x >= kAbove) return std::numeric_limits<Int>::max();
  if (x < kBelow) return std::numeric_limits<Int>::lowest();
  return std::isnan(x) ? Int{0} : static_cast<Int>(x);
}

/// The integer for `x`, which may be outside of the type where `x` is outside of the range. The
/// lowest one if the range has no width.
template <typename Q>
int64_t QuantizeUnclamped(float x, const QuantizedRange& range) {
  if (range.min == range.max) return kLowestOf<Q>;
  constexpr double kCount = kStepsOf<Q> + 1;
  const double scale = kCount / (static_cast<double>(range.width()) * (kCount / kStepsOf<Q>));
  const double steps = std::round(x * scale) - std::round(range.min * scale);
  // Larger numbers would overflow below, and stand for nothing.
  return static_cast<int64_t>(Saturated<int64_t>(std::clamp(steps, -1e18, 1e18))) + kLowestOf<Q>;
}

template <typename Q>
Q QuantizeOne(float x, const QuantizedRange& range) {
  return Q(static_cast<typename Q::Storage>(
      std::clamp(QuantizeUnclamped<Q>(x, range), kLowestOf<Q>, kHighestOf<Q>)));
}

template <typename Q>
float DequantizeOne(Q q, const QuantizedRange& range) {
  if (range.min == range.max) return range.min;
  constexpr double kCount = kStepsOf<Q> + 1;
  const double scale = static_cast<double>(range.width()) * (kCount / kStepsOf<Q>) / kCount;
  const float step = static_cast<float>(scale);
  // TensorFlow's integers become floats first, of which 32 bits lose some.
  const double offset =
      static_cast<double>(static_cast<float>(q.value)) - static_cast<double>(kLowestOf<Q>);
  const double min = std::round(range.min / step) * step;
  return static_cast<float>(min + offset * scale);
}

/// How numbers of one range become integers, in float alone.
template <typename Q>
ToInteger QuantizerOf(const QuantizedRange& range) {
  ToInteger how;
  how.scale = range.max == range.min ? 0.0f : static_cast<float>(kStepsOf<Q> / range.width());
  how.offset = std::round(range.min * how.scale) - static_cast<float>(kLowestOf<Q>);
  how.most = 2147483520.0f;  // The largest float that is an int32.
  return how;
}

/// The inverse.
template <typename Q>
FromInteger DequantizerOf(const QuantizedRange& range) {
  FromInteger how;
  how.scale = static_cast<float>(range.width() / kStepsOf<Q>);
  const float min =
      range.max == range.min ? range.min : std::round(range.min / how.scale) * how.scale;
  how.offset = min - static_cast<float>(kLowestOf<Q>) * how.scale;
  return how;
}

/// Quantizes n numbers.
template <typename Q>
void QuantizeAll(const float* x, int64_t n, const ToInteger& how, Q* q) {
  using Int = typename Q::Storage;
  Quantization().For<Int>().quantize(x, n, how, reinterpret_cast<Int*>(q));
}
template <typename Q>
void DequantizeAll(const Q* q, int64_t n, const FromInteger& how, float* x) {
  using Int = typename Q::Storage;
  Quantization().For<Int>().dequantize(reinterpret_cast<const Int*>(q), n, how, x);
}

/// Calls f(i, count) for blocks of n elements, from element i on, of at most `kQuantizedBlock`.
inline constexpr int64_t kQuantizedBlock = 512;
template <typename F>
void ForQuantizedBlocks(int64_t n, F f) {
  for (int64_t i = 0; i < n; i += kQuantizedBlock) f(i, std::min(kQuantizedBlock, n - i));
}

/// Integers of one range to those of another.
template <typename From, typename To>
void RequantizeAll(const From* in, int64_t n, const QuantizedRange& from, const QuantizedRange& to,
                   To* out) {
  const FromInteger dequantize = DequantizerOf<From>(from);
  const ToInteger quantize = QuantizerOf<To>(to);
  float block[kQuantizedBlock];
  ForQuantizedBlocks(n, [&](int64_t i, int64_t count) {
    DequantizeAll(in + i, count, dequantize, block);
    QuantizeAll(block, count, quantize, out + i);
  });
}

/// The range of products, as integers of type Out, of integers of types A and B.
template <typename A, typename B, typename Out>
QuantizedRange ProductRange(const QuantizedRange& a, const QuantizedRange& b) {
  const float a_step = a.width() / static_cast<float>(kHighestOf<A> - kLowestOf<A>);
  const float b_step = b.width() / static_cast<float>(kHighestOf<B> - kLowestOf<B>);
  const float step = a_step * b_step;
  return {step * static_cast<float>(kLowestOf<Out>), step * static_cast<float>(kHighestOf<Out>)};
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_QUANTIZATION_QUANTIZED_RANGE_H_

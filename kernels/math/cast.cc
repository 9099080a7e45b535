#include "kernels/math/cast.h"

#include "devices/match_type.h"
#include "devices/narrow_types.h"
#include "kernels/math/cast_loop.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

using internal::CastLoop;

template <typename F>
simd::UnaryFn ForReal(ElementType type, F&& f) {
  return MatchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                   uint16_t, uint32_t, uint64_t, bool>(type, simd::UnaryFn(nullptr), f);
}

// Keeps the upper `kKept` bits of the mantissa, which has `kBits`; NaN stays NaN.
template <typename Bits, int kBits, int kKept>
void KeepMantissa(const void* in, void* out, int64_t n) {
  constexpr Bits kMagnitude = Bits(~Bits{0}) >> 1, kInfinity = kMagnitude >> kBits << kBits;
  constexpr Bits kMask = ~((Bits{1} << (kBits - kKept)) - 1);
  const Bits* x = static_cast<const Bits*>(in);
  Bits* y = static_cast<Bits*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] & kMagnitude) > kInfinity ? x[i] : x[i] & kMask;
}
template <int kKept>
constexpr simd::UnaryFn kFromFloat = KeepMantissa<uint32_t, 23, kKept>;
template <int kKept>
constexpr simd::UnaryFn kFromDouble = KeepMantissa<uint64_t, 52, kKept>;
// Both parts of complex numbers.
template <simd::UnaryFn kFn>
void OfPairs(const void* in, void* out, int64_t n) {
  kFn(in, out, 2 * n);
}
// To the mantissa of float8_e5m2. NaN stays: without its lowest bit it is a number.
void TruncateFloat8E4m3fn(const void* in, void* out, int64_t n) {
  const uint8_t* x = static_cast<const uint8_t*>(in);
  uint8_t* y = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] & 0x7f) == 0x7f ? x[i] : x[i] & ~1;
}

}  // namespace

simd::UnaryFn FindCast(ElementType from, ElementType to) {
  const simd::CastType simd_from = simd::CastTypeOf(from), simd_to = simd::CastTypeOf(to);
  if (simd_from != simd::kNumCastTypes && simd_to != simd::kNumCastTypes) {
    if (simd::UnaryFn fn = simd::Functions().cast[simd_from][simd_to]) return fn;
  }
  if (IsNarrow(from) || IsNarrow(to)) return internal::NarrowCast(from, to);
  if (IsComplex(from) || IsComplex(to)) return internal::ComplexCast(from, to);
  return ForReal(from, [&]<typename From>() {
    return ForReal(to, []<typename To>() -> simd::UnaryFn { return CastLoop<From, To>; });
  });
}

simd::UnaryFn FindTruncation(ElementType from, ElementType to) {
  const bool to_half = to == ElementType::kHalf, to_bfloat16 = to == ElementType::kBfloat16;
  const bool to_float = to == ElementType::kFloat || to == ElementType::kComplex64;
  const bool to_e5m2 = to == ElementType::kFloat8E5m2, to_e4m3fn = to == ElementType::kFloat8E4m3fn;
  switch (from) {
    case ElementType::kFloat:
      return to_half       ? kFromFloat<10>
             : to_bfloat16 ? kFromFloat<7>
             : to_e4m3fn   ? kFromFloat<3>
             : to_e5m2     ? kFromFloat<2>
                           : nullptr;
    case ElementType::kDouble:  // Only floats are truncated to bfloat16, as in TensorFlow.
      return to_float    ? kFromDouble<23>
             : to_half   ? kFromDouble<10>
             : to_e4m3fn ? kFromDouble<3>
             : to_e5m2   ? kFromDouble<2>
                         : nullptr;
    case ElementType::kComplex64:
      return to_half ? OfPairs<kFromFloat<10>> : nullptr;
    case ElementType::kComplex128:
      return to_float ? OfPairs<kFromDouble<23>> : to_half ? OfPairs<kFromDouble<10>> : nullptr;
    case ElementType::kHalf:
      return to_e4m3fn ? KeepMantissa<uint16_t, 10, 3>
             : to_e5m2 ? KeepMantissa<uint16_t, 10, 2>
                       : nullptr;
    case ElementType::kBfloat16:
      return to_e4m3fn ? KeepMantissa<uint16_t, 7, 3>
             : to_e5m2 ? KeepMantissa<uint16_t, 7, 2>
                       : nullptr;
    case ElementType::kFloat8E4m3fn:
      return to_e5m2 ? TruncateFloat8E4m3fn : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace troupe

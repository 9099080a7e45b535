#include "kernels/math/cast.h"

#include <bit>

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

// Clears the low `kBits` of every element.
template <typename Bits, int kBits>
void ClearLowBits(const void* in, void* out, int64_t n) {
  const Bits* x = static_cast<const Bits*>(in);
  Bits* y = static_cast<Bits*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] & ~((Bits{1} << kBits) - 1);
}
// The same for both parts of complex numbers.
template <typename Bits, int kBits>
void ClearLowBitsOfPairs(const void* in, void* out, int64_t n) {
  ClearLowBits<Bits, kBits>(in, out, 2 * n);
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
  switch (from) {
    case ElementType::kFloat:
      return to_half       ? ClearLowBits<uint32_t, 13>
             : to_bfloat16 ? ClearLowBits<uint32_t, 16>
                           : nullptr;
    case ElementType::kDouble:  // Only floats are truncated to bfloat16, as in TensorFlow.
      return to_float ? ClearLowBits<uint64_t, 29> : to_half ? ClearLowBits<uint64_t, 42> : nullptr;
    case ElementType::kComplex64:
      return to_half ? ClearLowBitsOfPairs<uint32_t, 13> : nullptr;
    case ElementType::kComplex128:
      return to_float  ? ClearLowBitsOfPairs<uint64_t, 29>
             : to_half ? ClearLowBitsOfPairs<uint64_t, 42>
                       : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace troupe

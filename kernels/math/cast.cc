#include "kernels/math/cast.h"

#include <bit>

#include "kernels/math/cast_loop.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

using internal::CastLoop;

template <typename From>
simd::UnaryFn CastFrom(ElementType to) {
  switch (to) {
    case ElementType::kFloat:
      return CastLoop<From, float>;
    case ElementType::kDouble:
      return CastLoop<From, double>;
    case ElementType::kHalf:
      return CastLoop<From, half>;
    case ElementType::kBfloat16:
      return CastLoop<From, bfloat16>;
    case ElementType::kInt8:
      return CastLoop<From, int8_t>;
    case ElementType::kInt16:
      return CastLoop<From, int16_t>;
    case ElementType::kInt32:
      return CastLoop<From, int32_t>;
    case ElementType::kInt64:
      return CastLoop<From, int64_t>;
    case ElementType::kUint8:
      return CastLoop<From, uint8_t>;
    case ElementType::kUint16:
      return CastLoop<From, uint16_t>;
    case ElementType::kUint32:
      return CastLoop<From, uint32_t>;
    case ElementType::kUint64:
      return CastLoop<From, uint64_t>;
    case ElementType::kBool:
      return CastLoop<From, bool>;
    default:
      return nullptr;
  }
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
  if (IsComplex(from) || IsComplex(to)) return internal::ComplexCast(from, to);
  switch (from) {
    case ElementType::kFloat:
      return CastFrom<float>(to);
    case ElementType::kDouble:
      return CastFrom<double>(to);
    case ElementType::kHalf:
      return CastFrom<half>(to);
    case ElementType::kBfloat16:
      return CastFrom<bfloat16>(to);
    case ElementType::kInt8:
      return CastFrom<int8_t>(to);
    case ElementType::kInt16:
      return CastFrom<int16_t>(to);
    case ElementType::kInt32:
      return CastFrom<int32_t>(to);
    case ElementType::kInt64:
      return CastFrom<int64_t>(to);
    case ElementType::kUint8:
      return CastFrom<uint8_t>(to);
    case ElementType::kUint16:
      return CastFrom<uint16_t>(to);
    case ElementType::kUint32:
      return CastFrom<uint32_t>(to);
    case ElementType::kUint64:
      return CastFrom<uint64_t>(to);
    case ElementType::kBool:
      return CastFrom<bool>(to);
    default:
      return nullptr;
  }
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

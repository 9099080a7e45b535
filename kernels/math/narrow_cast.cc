#include "devices/match_type.h"
#include "devices/narrow_types.h"
#include "kernels/math/cast.h"
#include "kernels/math/cast_loop.h"

namespace troupe::internal {
namespace {

/// By way of the float or the integer that a narrow element is, as TensorFlow casts.
template <typename From, typename To>
To CastNarrow(From x) {
  constexpr ElementType kFrom = kElementType<From>, kTo = kElementType<To>;
  if constexpr (IsFloat8(kFrom)) {
    return CastNarrow<float, To>(static_cast<float>(x));
  } else if constexpr (IsNarrow(kFrom)) {
    return CastNarrow<int32_t, To>(static_cast<int>(x));
  } else if constexpr (IsComplex(kFrom) && IsNarrow(kTo)) {
    return CastNarrow<typename From::value_type, To>(x.real());
  } else if constexpr (IsFloat8(kTo) && std::is_same_v<From, double>) {
    return To(x);
  } else if constexpr (IsFloat8(kTo)) {
    return To(static_cast<double>(CastElement<From, float>(x)));
  } else if constexpr (IsNarrow(kTo)) {
    return To(CastElement<From, int32_t>(x));
  } else {
    return CastElement<From, To>(x);
  }
}

template <typename From, typename To>
void Loop(const void* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in);
  To* y = static_cast<To*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = CastNarrow<From, To>(x[i]);
}

template <typename F>
simd::UnaryFn ForNarrow(ElementType type, F&& f) {
  return MatchType<float8_e5m2, float8_e4m3fn, int4, uint4>(type, simd::UnaryFn(nullptr), f);
}
template <typename F>
simd::UnaryFn ForAll(ElementType type, F&& f) {
  return MatchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                   uint16_t, uint32_t, uint64_t, bool, complex64, complex128, float8_e5m2,
                   float8_e4m3fn, int4, uint4>(type, simd::UnaryFn(nullptr), f);
}

}  // namespace

simd::UnaryFn NarrowCast(ElementType from, ElementType to) {
  if (IsNarrow(from)) {
    return ForNarrow(from, [&]<typename From>() {
      return ForAll(to, []<typename To>() -> simd::UnaryFn { return Loop<From, To>; });
    });
  }
  return ForNarrow(to, [&]<typename To>() {
    return ForAll(from, []<typename From>() -> simd::UnaryFn { return Loop<From, To>; });
  });
}

}  // namespace troupe::internal

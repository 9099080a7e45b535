#include "kernels/cuda/narrow_cast.h"

#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

/// Floats of 8 bits: what is beyond the largest number becomes `beyond`, NaN becomes `nan`.
struct Float8 {
  int mantissa, bias;
  uint8_t beyond, nan;
};
__device__ Float8 FormatOf(Narrow type) {
  if (type == Narrow::kFloat8E5m2) return {2, 15, 0x7c, 0x7e};
  return {3, 7, 0x7f, 0x7f};
}

/// The bits of floating-point numbers.
template <typename T>
struct Format;
template <>
struct Format<__half> {
  static constexpr int kMantissa = 10, kBias = 15;
};
template <>
struct Format<__nv_bfloat16> {
  static constexpr int kMantissa = 7, kBias = 127;
};
template <>
struct Format<float> {
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct Format<double> {
  static constexpr int kMantissa = 52, kBias = 1023;
};
__device__ uint64_t BitsOf(__half x) { return __half_as_ushort(x); }
__device__ uint64_t BitsOf(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
__device__ uint64_t BitsOf(float x) { return __float_as_uint(x); }
__device__ uint64_t BitsOf(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }

/// The nearest number, to even, of the one with these bits, which has been without a sign.
template <typename T>
__device__ uint8_t Rounded(uint64_t magnitude, const Float8& to) {
  constexpr int kMantissa = Format<T>::kMantissa, kBias = Format<T>::kBias;
  constexpr uint64_t kHidden = uint64_t{1} << kMantissa;
  constexpr uint64_t kInfinity = (uint64_t{2} * kBias + 1) << kMantissa;
  if (magnitude > kInfinity) return to.nan;
  if (magnitude == kInfinity) return to.beyond;
  const auto field = static_cast<int>(magnitude >> kMantissa);
  const uint64_t fraction = magnitude & (kHidden - 1);
  const uint64_t mantissa = field == 0 ? fraction : fraction | kHidden;
  const int least = 1 - to.bias, own = (field == 0 ? 1 : field) - kBias;
  // The exponent of the last place; that of subnormal numbers does not get smaller. If there the
  // number has its first bit above the last place of T, it is a subnormal one of T.
  const int exponent = own < least ? least : own;
  const int shift = kMantissa - to.mantissa + exponent - own;
  if (shift > kMantissa + 1) return 0;
  uint64_t places = mantissa >> shift;
  const uint64_t rest = mantissa & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && places % 2 != 0)) ++places;
  // A carry out of the mantissa goes to the exponent by itself.
  const uint64_t bits = (static_cast<uint64_t>(exponent - least) << to.mantissa) + places;
  return bits < to.beyond ? static_cast<uint8_t>(bits) : to.beyond;
}

template <typename T>
__device__ uint8_t ToFloat8(T x, Narrow type, bool truncate) {
  constexpr uint64_t kSign = uint64_t{1} << (8 * sizeof(T) - 1);
  constexpr uint64_t kInfinity = (uint64_t{2} * Format<T>::kBias + 1) << Format<T>::kMantissa;
  const Float8 to = FormatOf(type);
  const uint64_t bits = BitsOf(x);
  uint64_t magnitude = bits & (kSign - 1);
  if (truncate && magnitude <= kInfinity) {  // NaN stays NaN.
    magnitude = magnitude >> (Format<T>::kMantissa - to.mantissa)
                                 << (Format<T>::kMantissa - to.mantissa);
  }
  return static_cast<uint8_t>(((bits & kSign) != 0 ? 0x80 : 0) | Rounded<T>(magnitude, to));
}

__device__ float FromFloat8(uint8_t bits, Narrow type) {
  if (type == Narrow::kFloat8E5m2) {  // The upper half of a half.
    return static_cast<float>(__ushort_as_half(static_cast<unsigned short>(bits << 8)));
  }
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return __uint_as_float(sign | 0x7fc00000u);
  if (magnitude < 8) {  // Subnormal: multiples of 2^-9.
    const float value = static_cast<float>(magnitude) * 0.001953125f;
    return __uint_as_float(sign | __float_as_uint(value));
  }
  return __uint_as_float(sign | ((magnitude << 20) + (120u << 23)));
}

__device__ int32_t FromInt4(uint8_t bits, Narrow type) {
  const int32_t low = bits & 0xf;
  return type == Narrow::kInt4 ? (low ^ 8) - 8 : low;
}
__device__ uint8_t ToInt4(int32_t value, Narrow type) {
  const int32_t low = value & 0xf;
  return static_cast<uint8_t>(type == Narrow::kInt4 ? (low ^ 8) - 8 : low);
}

template <typename T>
struct Widen {
  Narrow from;
  __device__ T operator()(uint8_t x) const {
    if constexpr (std::is_same_v<T, int32_t>) {
      return FromInt4(x, from);
    } else {
      return static_cast<T>(static_cast<WideType<T>>(FromFloat8(x, from)));
    }
  }
};

template <typename T>
struct ToNarrow {
  Narrow to;
  bool truncate;
  __device__ uint8_t operator()(T x) const {
    if constexpr (std::is_same_v<T, int32_t>) {
      return ToInt4(x, to);
    } else {
      return ToFloat8(x, to, truncate);
    }
  }
};

__device__ bool IsFloat(Narrow type) {
  return type == Narrow::kFloat8E5m2 || type == Narrow::kFloat8E4m3fn;
}

struct NarrowToNarrow {
  Narrow from, to;
  bool truncate;
  __device__ uint8_t operator()(uint8_t x) const {
    if (!IsFloat(from)) {
      const int32_t value = FromInt4(x, from);
      return IsFloat(to) ? ToFloat8(static_cast<float>(value), to, false) : ToInt4(value, to);
    }
    // Of float8_e4m3fn, to the mantissa of float8_e5m2; NaN stays.
    if (truncate && from == Narrow::kFloat8E4m3fn && IsFloat(to) && (x & 0x7f) != 0x7f) x &= 0xfe;
    const float value = FromFloat8(x, from);
    return IsFloat(to) ? ToFloat8(value, to, false) : ToInt4(static_cast<int32_t>(value), to);
  }
};

}  // namespace

cudaError_t LaunchWiden(Narrow from, Number to, const void* x, void* y, int64_t n,
                        cudaStream_t stream) {
  const auto* const narrow = static_cast<const uint8_t*>(x);
  if (!IsFloat8(from)) {
    if (to != Number::kInt32) return cudaErrorNotSupported;
    return MapFlat(Widen<int32_t>{from}, FlatWalk(), n, stream, static_cast<int32_t*>(y), narrow);
  }
  return VisitFloating(to, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Widen<T>{from}, FlatWalk(), n, stream, static_cast<T*>(y), narrow);
  });
}

cudaError_t LaunchNarrow(Number from, Narrow to, bool truncate, const void* x, void* y, int64_t n,
                         cudaStream_t stream) {
  auto* const narrow = static_cast<uint8_t*>(y);
  if (!IsFloat8(to)) {
    if (from != Number::kInt32) return cudaErrorNotSupported;
    return MapFlat(ToNarrow<int32_t>{to, truncate}, FlatWalk(), n, stream, narrow,
                   static_cast<const int32_t*>(x));
  }
  return VisitFloating(from, [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(ToNarrow<T>{to, truncate}, FlatWalk(), n, stream, narrow,
                   static_cast<const T*>(x));
  });
}

cudaError_t LaunchNarrowToNarrow(Narrow from, Narrow to, bool truncate, const void* x, void* y,
                                 int64_t n, cudaStream_t stream) {
  return MapFlat(NarrowToNarrow{from, to, truncate}, FlatWalk(), n, stream,
                 static_cast<uint8_t*>(y), static_cast<const uint8_t*>(x));
}

}  // namespace troupe::cuda

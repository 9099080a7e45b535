/// The C++ types of elements narrower than those of C++: floats of 8 bits and integers of 4, one in
/// a byte. No arithmetic is defined on them.
///
/// Floats are those of "FP8 Formats for Deep Learning" (P. Micikevicius et al., 2022).
#ifndef TROUPE_DEVICES_NARROW_TYPES_H_
#define TROUPE_DEVICES_NARROW_TYPES_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "devices/element_type.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

namespace internal {

/// The bits of the nearest number, to even. What is beyond the largest one becomes `beyond`, with
/// its sign, and so does a NaN `nan`.
inline uint8_t RoundToFloat8(double value, int mantissa_bits, int bias, uint8_t beyond,
                             uint8_t nan) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  const double x = std::fabs(value);
  if (std::isnan(x)) return sign | nan;
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | beyond;
  // The exponent of the last place; that of subnormal numbers does not get smaller.
  const int least = 1 - bias;
  const int exponent = std::ilogb(x) < least ? least : std::ilogb(x);
  const double places = std::nearbyint(std::ldexp(x, mantissa_bits - exponent));
  // A carry out of the mantissa goes to the exponent by itself.
  const double bits = std::ldexp(exponent - least, mantissa_bits) + places;
  return sign | (bits < beyond ? static_cast<uint8_t>(bits) : beyond);
}

}  // namespace internal

/// 5 bits of exponent, 2 of mantissa, with infinities and NaNs.
struct float8_e5m2 {
  uint8_t bits = 0;

  float8_e5m2() = default;
  /// Rounds to nearest even; what is too large becomes infinite.
  explicit float8_e5m2(double value)
      : bits(internal::RoundToFloat8(value, 2, 15, /*beyond=*/0x7c, /*nan=*/0x7e)) {}
  /// It is the upper half of a half.
  operator float() const { return half::FromBits(static_cast<uint16_t>(bits << 8)); }
  static float8_e5m2 FromBits(uint8_t b) {
    float8_e5m2 result;
    result.bits = b;
    return result;
  }
};

/// 4 bits of exponent, 3 of mantissa: finite numbers up to 448, and one NaN of each sign.
struct float8_e4m3fn {
  uint8_t bits = 0;

  float8_e4m3fn() = default;
  /// Rounds to nearest even; what is too large becomes NaN.
  explicit float8_e4m3fn(double value)
      : bits(internal::RoundToFloat8(value, 3, 7, /*beyond=*/0x7f, /*nan=*/0x7f)) {}
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
    if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
    if (magnitude < 8) {  // Subnormal: multiples of 2^-9.
      const float value = static_cast<float>(magnitude) * 0.001953125f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
  }
  static float8_e4m3fn FromBits(uint8_t b) {
    float8_e4m3fn result;
    result.bits = b;
    return result;
  }
};

/// An integer of 4 bits; the upper half of the byte does not count.
struct int4 {
  int8_t bits = 0;

  int4() = default;
  /// Keeps the lower 4 bits.
  explicit int4(int value) : bits(static_cast<int8_t>(((value & 0xf) ^ 8) - 8)) {}
  operator int() const { return ((bits & 0xf) ^ 8) - 8; }
};

/// The same from 0 to 15.
struct uint4 {
  uint8_t bits = 0;

  uint4() = default;
  explicit uint4(int value) : bits(static_cast<uint8_t>(value & 0xf)) {}
  operator int() const { return bits & 0xf; }
};

#define TROUPE_NARROW_TYPE(CPP, ENUM)                       \
  template <>                                               \
  struct ElementTypeOf<CPP> {                               \
    static constexpr ElementType value = ElementType::ENUM; \
  };                                                        \
  static_assert(sizeof(CPP) == 1);
TROUPE_NARROW_TYPE(float8_e5m2, kFloat8E5m2)
TROUPE_NARROW_TYPE(float8_e4m3fn, kFloat8E4m3fn)
TROUPE_NARROW_TYPE(int4, kInt4)
TROUPE_NARROW_TYPE(uint4, kUint4)
#undef TROUPE_NARROW_TYPE

inline constexpr ElementType kNarrowTypes[] = {ElementType::kFloat8E5m2, ElementType::kFloat8E4m3fn,
                                               ElementType::kInt4, ElementType::kUint4};

constexpr bool IsFloat8(ElementType type) {
  return type == ElementType::kFloat8E5m2 || type == ElementType::kFloat8E4m3fn;
}
constexpr bool IsNarrow(ElementType type) {
  return IsFloat8(type) || type == ElementType::kInt4 || type == ElementType::kUint4;
}

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_NARROW_TYPES_H_

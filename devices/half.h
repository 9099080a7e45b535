/// 16-bit floating-point storage types. Arithmetic is done in float: both types convert implicitly
/// to float and explicitly from it, rounding to nearest even (NaN stays NaN).
#ifndef TROUPE_DEVICES_HALF_H_
#define TROUPE_DEVICES_HALF_H_

#include <bit>
#include <cstdint>

namespace troupe {

/// The upper 16 bits of an IEEE binary32.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 31) << 15 | 0x7fc0u);
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
    }
  }
  explicit bfloat16(double value) : bfloat16(static_cast<float>(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static bfloat16 FromBits(uint16_t b) {
    bfloat16 result;
    result.bits = b;
    return result;
  }
};

/// IEEE binary16.
struct half {
  uint16_t bits = 0;

  half() = default;
  explicit half(float value) : bits(FloatToHalfBits(value)) {}
  explicit half(double value) : half(static_cast<float>(value)) {}
  operator float() const { return HalfBitsToFloat(bits); }
  static half FromBits(uint16_t b) {
    half result;
    result.bits = b;
    return result;
  }

 private:
  static uint16_t FloatToHalfBits(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (f >> 16) & 0x8000u;
    const uint32_t magnitude = f & 0x7fffffffu;
    if (magnitude >= 0x47800000u) {  // At least 65536, infinite or NaN.
      return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u));
    }
    if (magnitude < 0x38800000u) {  // Subnormal in half: the float adder does the rounding.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1;
    return static_cast<uint16_t>(sign | ((magnitude + 0xc8000fffu + odd) >> 13));
  }
  static float HalfBitsToFloat(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
    const uint32_t exponent = rest & 0x0f800000u;
    if (exponent == 0x0f800000u) return std::bit_cast<float>(sign | (rest + 0x70000000u));
    if (exponent == 0) {  // Subnormal: renormalise by a float subtraction.
      const float value = std::bit_cast<float>(rest + 0x38800000u) - 6.103515625e-05f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
    }
    return std::bit_cast<float>(sign | (rest + 0x38000000u));
  }
};

static_assert(sizeof(half) == 2 && sizeof(bfloat16) == 2);

}  // namespace troupe

#endif  // TROUPE_DEVICES_HALF_H_

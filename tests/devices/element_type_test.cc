#include "devices/element_type.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "devices/narrow_types.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ElementType, NamesGoBothWays) {
  for (int i = 1; i <= static_cast<int>(ElementType::kFloat4E2m1fn); ++i) {
    const ElementType type = static_cast<ElementType>(i);
    ElementType parsed;
    ASSERT_TRUE(ParseElementType(ElementTypeName(type), &parsed)) << i;
    EXPECT_EQ(parsed, type);
    ASSERT_TRUE(ParseElementType(ElementTypeName(MakeRefType(type)), &parsed)) << i;
    EXPECT_EQ(parsed, MakeRefType(type));
    EXPECT_EQ(RemoveRef(parsed), type);
  }
}

TEST(ElementType, OtherSpellings) {
  const struct {
    const char* name;
    ElementType type;
  } kCases[] = {
      {"float32", ElementType::kFloat},        {"DT_FLOAT", ElementType::kFloat},
      {"float64", ElementType::kDouble},       {"float16", ElementType::kHalf},
      {"DT_INT32_REF", ElementType{103}},      {"int32_ref", ElementType{103}},
      {"DT_BFLOAT16", ElementType::kBfloat16},
  };
  for (const auto& c : kCases) {
    ElementType type;
    ASSERT_TRUE(ParseElementType(c.name, &type)) << c.name;
    EXPECT_EQ(type, c.type) << c.name;
  }
  for (const char* name : {"", "floa", "Float", "DT_", "DT_INVALID", "INVALID", "_ref", "int"}) {
    ElementType type;
    EXPECT_FALSE(ParseElementType(name, &type)) << name;
  }
}

TEST(ElementType, Sizes) {
  EXPECT_EQ(ElementSize(ElementType::kFloat), 4u);
  EXPECT_EQ(ElementSize(ElementType::kBfloat16), 2u);
  EXPECT_EQ(ElementSize(ElementType::kComplex128), 16u);
  EXPECT_EQ(ElementSize(ElementType::kString), sizeof(std::string));
  EXPECT_EQ(ElementSize(ElementType::kQint8), 1u);
  EXPECT_EQ(ElementSize(ElementType::kQuint16), 2u);
  EXPECT_EQ(ElementSize(ElementType::kQint32), 4u);
  EXPECT_EQ(ElementSize(ElementType::kFloat8E4m3fn), 1u);
  EXPECT_EQ(ElementSize(ElementType::kInt4), 1u);
  EXPECT_EQ(ElementSize(ElementType::kInt2), 0u);
  EXPECT_EQ(ElementSize(ElementType::kInvalid), 0u);
  EXPECT_EQ(ElementSize(static_cast<ElementType>(250)), 0u);
}

/// The value of the bits by the definition of a binary format.
double Naive(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const uint32_t exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const double sign = bits >> (exponent_bits + mantissa_bits) ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1u << exponent_bits) - 1) {
    return mantissa ? std::nan("") : sign * INFINITY;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << mantissa_bits),
                           static_cast<int>(exponent) - bias - mantissa_bits);
}

template <typename T>
void CheckAllBits(int exponent_bits, int mantissa_bits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = T::FromBits(static_cast<uint16_t>(bits));
    const double want = Naive(bits, exponent_bits, mantissa_bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, want) << bits;
    ASSERT_EQ(T(value).bits, bits);
    // Between this value and the next of greater magnitude lies the point where rounding turns; a
    // tie goes to the even one.
    const double next = Naive(bits + 1, exponent_bits, mantissa_bits);
    if (bits + 1 >= 0x8000 || std::isinf(want) || std::isnan(next)) continue;
    const double step =
        std::isinf(next) ? want - Naive(bits - 1, exponent_bits, mantissa_bits) : next - want;
    const float middle = static_cast<float>(want + step / 2);
    if (middle != want + step / 2) continue;  // not a float: bfloat16's smallest
    ASSERT_EQ(T(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
    ASSERT_EQ(T(-middle).bits, T(middle).bits | 0x8000) << bits;
  }
}

TEST(Half, EveryValueAndEveryRounding) { CheckAllBits<half>(5, 10); }
TEST(Bfloat16, EveryValueAndEveryRounding) { CheckAllBits<bfloat16>(8, 7); }

/// All bits of a float of 8, by the values of its magnitudes in ascending order. `beyond`: the bits
/// of what is too large.
template <typename T>
void CheckFloat8(int exponent_bits, int mantissa_bits, uint32_t beyond) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto naive = [&](uint32_t bits) {
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1), exponent = bits >> mantissa_bits;
    const uint32_t implicit = exponent == 0 ? 0 : 1u << mantissa_bits;
    return std::ldexp(mantissa + implicit,
                      (exponent == 0 ? 1 : static_cast<int>(exponent)) - bias - mantissa_bits);
  };
  for (uint32_t bits = 0; bits < 0x80; ++bits) {
    const auto narrow = T::FromBits(static_cast<uint8_t>(bits));
    const auto negative = T::FromBits(static_cast<uint8_t>(bits | 0x80));
    if (bits >= beyond) {
      EXPECT_FALSE(std::isfinite(static_cast<float>(narrow))) << bits;
      continue;
    }
    const double value = naive(bits), middle = (value + naive(bits + 1)) / 2;
    EXPECT_EQ(static_cast<float>(narrow), value) << bits;
    EXPECT_EQ(static_cast<float>(negative), -value) << bits;
    EXPECT_EQ(T(value).bits, bits);
    EXPECT_EQ(T(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(T(std::nextafter(middle, 0.0)).bits, bits);
    EXPECT_EQ(T(std::nextafter(middle, INFINITY)).bits, bits + 1);
    EXPECT_EQ(T(-middle).bits, T(middle).bits | 0x80) << bits;
  }
  EXPECT_EQ(T(1e300).bits, beyond);
  EXPECT_EQ(T(-INFINITY).bits, beyond | 0x80);
  EXPECT_TRUE(std::isnan(static_cast<float>(T(std::nan("")))));
  EXPECT_EQ(T(-0.0).bits, 0x80);
  EXPECT_EQ(T(1e-300).bits, 0);
}

TEST(Float8, EveryValueAndEveryRounding) {
  CheckFloat8<float8_e5m2>(5, 2, 0x7c);
  CheckFloat8<float8_e4m3fn>(4, 3, 0x7f);
}

TEST(Int4, KeepsFourBits) {
  for (int i = -40; i < 40; ++i) {
    EXPECT_EQ(static_cast<int>(uint4(i)), i & 15);
    EXPECT_EQ(static_cast<int>(int4(i)), (i & 15) < 8 ? i & 15 : (i & 15) - 16);
  }
  int4 strange;
  strange.bits = 0x79;  // As a stranger's bytes may be.
  EXPECT_EQ(static_cast<int>(strange), -7);
}

TEST(Half, Overflow) {
  EXPECT_EQ(half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half(1e30f).bits, 0x7c00);
  EXPECT_EQ(half(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(bfloat16(3.4e38f).bits, 0x7f80);
}

}  // namespace
}  // namespace troupe

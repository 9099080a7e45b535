// Updates in half and bfloat16, which vectors compute, against the same formulas for one number at
// a time: all rules, all lengths around those of vectors, any bits.
#include "kernels/simd/updates.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/half.h"
#include "gtest/gtest.h"
#include "kernels/simd/dispatch.h"
#include "kernels/simd/update_rules.h"

namespace troupe {
namespace {

/// A number whose operations round to T.
template <typename T>
struct Number {
  float value;
  Number() = default;
  explicit Number(uint16_t bits) : value(T::FromBits(bits)) {}
  explicit Number(float v) : value(T(v)) {}
  explicit Number(int v) : Number(static_cast<float>(v)) {}
  explicit operator uint16_t() const { return T(value).bits; }

  friend Number operator+(Number a, Number b) { return Number(a.value + b.value); }
  friend Number operator-(Number a, Number b) { return Number(a.value - b.value); }
  friend Number operator*(Number a, Number b) { return Number(a.value * b.value); }
  friend Number operator/(Number a, Number b) { return Number(a.value / b.value); }
  friend Number operator-(Number a) { return Number(-a.value); }
  friend bool operator<(Number a, Number b) { return a.value < b.value; }
  friend bool operator>(Number a, Number b) { return a.value > b.value; }
  friend bool operator==(Number a, Number b) { return a.value == b.value; }
};
template <typename T>
Number<T> Sqrt(Number<T> x) {
  return Number<T>(std::sqrt(x.value));
}
template <typename T>
Number<T> Power(Number<T> x, Number<T> exponent) {
  return Number<T>(std::pow(x.value, exponent.value));
}
template <typename T>
Number<T> Exp(Number<T> x) {
  return Number<T>(std::exp(x.value));
}

template <typename T>
class Values {
 public:
  /// Three of four are ordinary numbers, the others any bits: infinite, no number, subnormal.
  uint16_t Next() {
    if (random_() % 4 == 0) return static_cast<uint16_t>(random_());
    return T(std::uniform_real_distribution<float>(-2, 2)(random_)).bits;
  }
  std::vector<uint16_t> Some(int64_t n) {
    std::vector<uint16_t> values(n);
    for (uint16_t& value : values) value = Next();
    return values;
  }

 private:
  std::mt19937 random_{5};
};

template <typename T>
void ExpectSame(UpdateFn<T> function, UpdateFn<T> reference, Values<T>* values) {
  for (int64_t n = 0; n <= 70; ++n) {
    std::vector<std::vector<uint16_t>> got(4), want;
    for (auto& variable : got) variable = values->Some(n);
    want = got;
    const std::vector<uint16_t> grad = values->Some(n);
    std::vector<uint16_t> scalars = values->Some(kMaxUpdateScalars);
    // Ftrl has another formula for the power that it nearly always has.
    if (n % 2 == 0) scalars[3] = scalars[4] = T(-0.5f).bits;
    uint16_t* of_got[] = {got[0].data(), got[1].data(), got[2].data(), got[3].data()};
    uint16_t* of_want[] = {want[0].data(), want[1].data(), want[2].data(), want[3].data()};
    function(of_got, grad.data(), scalars.data(), n);
    reference(of_want, grad.data(), scalars.data(), n);
    for (int k = 0; k < 4; ++k) {
      for (int64_t i = 0; i < n; ++i) {
        const float a = T::FromBits(got[k][i]), b = T::FromBits(want[k][i]);
        if (std::isnan(a) && std::isnan(b)) continue;
        ASSERT_EQ(got[k][i], want[k][i])
            << a << " for " << b << ", variable " << k << "[" << i << "] of " << n;
      }
    }
  }
}

template <typename T>
void CheckAllRules(InstructionSet set, void (*fill)(UpdateFunctions<T>*)) {
  if (simd::FunctionsFor(set) == nullptr) return;
  UpdateFunctions<T> functions;
  fill(&functions);
  UpdateTable<T> reference;
  SetFieldRules<Number<T>>(&reference);
  SetRealRules<Number<T>>(&reference);
  Values<T> values;
  for (int rule = 0; rule < kNumUpdateRules; ++rule) {
    for (const int sparse : {0, 1}) {
      for (const int flag : {0, 1}) {
        SCOPED_TRACE(absl::StrCat(std::string(InstructionSetName(set)), ", rule ", rule,
                                  ", sparse ", sparse, ", flag ", flag));
        ASSERT_NE(functions.rules[rule][sparse][flag], nullptr);
        ExpectSame<T>(functions.rules[rule][sparse][flag], reference.rules[rule][sparse][flag],
                      &values);
      }
    }
  }
}

#if defined(__x86_64__)
TEST(Updates, OfHalfRoundEveryOperation) {
  CheckAllRules<half>(InstructionSet::kV2, v2::FillUpdates);
  CheckAllRules<half>(InstructionSet::kV3, v3::FillUpdates);
  CheckAllRules<half>(InstructionSet::kV4, v4::FillUpdates);
}

TEST(Updates, OfBfloat16RoundEveryOperation) {
  CheckAllRules<bfloat16>(InstructionSet::kV2, v2::FillUpdates);
  CheckAllRules<bfloat16>(InstructionSet::kV3, v3::FillUpdates);
  CheckAllRules<bfloat16>(InstructionSet::kV4, v4::FillUpdates);
}
#endif

}  // namespace
}  // namespace troupe

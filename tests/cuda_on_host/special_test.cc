// Special functions of cards against the CPU's: usual arguments, such as are beyond the functions'
// domains, and infinities.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

constexpr int64_t kLengths[] = {0, 1, 7, 1003};
constexpr Values kValues[] = {Values::kAny, Values::kModerate, Values::kPositive};

class SpecialFunctions : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// The last bits of a real card's exp, log, lgamma and pow are not the host's, and these functions
/// multiply such errors: exp(a log(x) - x - lgamma(a)) by the size of the exponent's terms, which
/// is some dozens, or up to 8,000 if they are `large`.
double Ulps(double on_host, bool large = false) {
  return on_host > 1 && OnRealCard() ? (large ? 8192 : 64) * on_host : on_host;
}

/// What is a difference has the errors of its terms, which are of size 1. Next to denormal numbers
/// the CPU loses digits.
double Absolute(ElementType type) {
  if (OnRealCard()) return type == kDouble ? 0x1p-48 : 0x1p-19;
  return type == kDouble ? 1e-300 : 0;
}

struct SpecialCase {
  const char* op;
  double float_ulps, double_ulps;  ///< At most 1: computed in double, and rounded.

  Within For(ElementType type, bool large = false) const {
    if (type != kFloat && type != kDouble) return {1};
    return {Ulps(type == kDouble ? double_ulps : float_ulps, large), Absolute(type)};
  }
};

/// `count` numbers from `from` on.
Tensor Steps(ElementType type, double from, double step, int64_t count) {
  Tensor tensor = *Tensor::Allocate(type, Shape({count}));
  SwitchPlain(type, [&]<typename T>() {
    if constexpr (kIsRealFloat<T>) {
      for (int64_t i = 0; i < count; ++i) {
        tensor.mutable_data<T>()[i] =
            T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(
                from + step * static_cast<double>(i)));
      }
    }
  });
  return tensor;
}

TEST_F(SpecialFunctions, OfOneNumber) {
  const SpecialCase cases[] = {
      {"Dawsn", 1, 4},   {"Digamma", 4, 4},     {"Erfinv", 4, 4},
      {"Expint", 1, 16}, {"FresnelCos", 1, 16}, {"FresnelSin", 1, 16},
      {"Lgamma", 1, 4},  {"Ndtri", 4, 4},       {"Spence", 1, 4},
  };
  for (const SpecialCase& c : cases) {
    AgainstCpu both;
    const std::set<ElementType> types = KernelTypes(c.op, "GPU");
    EXPECT_TRUE(types.count(kFloat) != 0 && types.count(kDouble) != 0) << c.op;
    for (const ElementType type : types) {
      for (const Values values : kValues) {
        for (const int64_t n : kLengths) {
          const Tensor x = Numbers(type, Shape({n}), 1, values);
          for (const Operand::As as : {Operand::kConstant, Operand::kView, Operand::kCopy}) {
            both.Add(c.op, {{x, as}}, c.For(type));
          }
        }
      }
      // All of [-1, 1], where inverses are; what is beyond series' limits.
      both.Add(c.op, {{Steps(type, -1, 1.0 / 512, 1025)}}, c.For(type));
      both.Add(c.op, {{Steps(type, -20, 1.0 / 8, 801)}}, c.For(type));
      both.Add(c.op, {{Steps(type, 600, 1, 150)}}, c.For(type));
      both.Add(c.op, {{Steps(type, 30'000, 100, 100)}}, c.For(type));
    }
    both.Compare();
  }
}

TEST_F(SpecialFunctions, OfTwoNumbers) {
  const SpecialCase cases[] = {
      {"Igamma", 4, 4},    {"IgammaGradA", 4, 4},     {"Igammac", 4, 4},
      {"Polygamma", 4, 4}, {"RandomGammaGrad", 4, 4}, {"Zeta", 4, 4},
  };
  const std::pair<Shape, Shape> shapes[] = {{Shape(), Shape()},
                                            {Shape({0}), Shape({1})},
                                            {Shape({1003}), Shape()},
                                            {Shape({33, 5}), Shape({33, 1})},
                                            {Shape({1, 7}), Shape({40, 1})},
                                            {Shape({2, 1, 3, 1}), Shape({4, 1, 5})}};
  for (const SpecialCase& c : cases) {
    AgainstCpu both;
    for (const ElementType type : {kFloat, kDouble}) {
      EXPECT_EQ(KernelTypes(c.op, "GPU").count(type), 1) << c.op;
      for (const Values values : kValues) {
        for (const auto& [a, b] : shapes) {
          both.Add(c.op, {{Numbers(type, a, 1, values)}, {Numbers(type, b, 2, values)}},
                   c.For(type));
        }
        const Tensor x = Numbers(type, Shape({31}), 1, values);
        const Tensor y = Numbers(type, Shape({31}), 2, values);
        both.Add(c.op, {{x, Operand::kView}, {y, Operand::kCopy}}, c.For(type));
      }
      // Orders that are whole numbers, and places on both sides of the poles.
      both.Add(c.op, {{Steps(type, 0, 1, 12)}, {Numbers(type, Shape({40, 1}), 3)}}, c.For(type));
      both.Add(c.op,
               {{Steps(type, 0, 1, 12)}, {Numbers(type, Shape({40, 1}), 3, Values::kModerate)}},
               c.For(type));
      // Large ones have expansions of their own.
      both.Add(c.op, {{Steps(type, 150, 50, 20)}, {Steps(type, 60, 52, 20)}},
               c.For(type, /*large=*/true));
    }
    both.Compare();
  }
}

TEST_F(SpecialFunctions, IncompleteBeta) {
  AgainstCpu both;
  for (const ElementType type : {kFloat, kDouble}) {
    const Within within{Ulps(4)};
    const Tensor x = Steps(type, -0.25, 1.0 / 64, 96);
    const Tensor a = Numbers(type, Shape({96}), 1, Values::kPositive);
    const Tensor b = Numbers(type, Shape({96}), 2, Values::kPositive);
    const Tensor one = Numbers(type, Shape(), 3, Values::kPositive);
    const Tensor large = Steps(type, 1, 200'000, 96);
    both.Add("Betainc", {{a}, {b}, {x}}, within);
    both.Add("Betainc", {{a, Operand::kView}, {one}, {x, Operand::kView}}, within);
    both.Add("Betainc", {{one}, {one}, {x}}, within);
    both.Add("Betainc", {{one}, {b}, {Steps(type, 0.3, 0, 1).Reshaped(Shape())}}, within);
    both.Add("Betainc", {{large}, {large}, {Steps(type, 0.499, 2e-5, 96)}}, within);
    both.Add("Betainc", {{a}, {Numbers(type, Shape({96}), 4)}, {Numbers(type, Shape({96}), 5)}},
             within);
    const Tensor none = Numbers(type, Shape({0, 3}), 1);
    both.Add("Betainc", {{none}, {one}, {none}}, within);
  }
  both.Compare();
}

}  // namespace
}  // namespace troupe::testing

// Element-wise functions of complex numbers beside the standard library's: of long double for
// numbers of moderate size, of the same type for infinities, NaN and zeros.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

// More than a block of them, with a tail.
constexpr int64_t kCount = 613;

template <typename T>
std::vector<std::complex<T>> Numbers(uint32_t seed, bool special) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(-9, 9), angle(-3.2, 3.2);
  std::vector<std::complex<T>> numbers;
  for (int64_t i = 0; i < kCount; ++i) {
    numbers.emplace_back(std::polar(i % 5 == 0 ? 1.0 : std::exp2(exponent(random)), angle(random)));
    if (i % 7 == 0) numbers.back() = {numbers.back().real(), 0};
    if (i % 11 == 0) numbers.back() = {0, numbers.back().imag()};
  }
  if (!special) return numbers;
  using Limits = std::numeric_limits<T>;
  const T parts[] = {0,
                     -T(0),
                     1,
                     -2,
                     Limits::infinity(),
                     -Limits::infinity(),
                     Limits::quiet_NaN(),
                     Limits::max(),
                     Limits::min()};
  // One special number here and there, and whole blocks of them.
  for (size_t i = 0; i < numbers.size(); i += i < 200 ? 9 : 1) {
    numbers[i] = {parts[random() % 9], parts[random() % 9]};
  }
  return numbers;
}

template <typename T>
Tensor ToTensor(const std::vector<std::complex<T>>& numbers) {
  return Tensor::Vector<std::complex<T>>(absl::MakeConstSpan(numbers));
}

Tensor RunOn(const std::string& name, const std::vector<Tensor>& inputs, bool in_place) {
  OpTest op(name);
  for (const Tensor& input : inputs) op.Input(*input.Clone(), in_place);
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << name << ": " << status;
  return status.ok() ? op.output(0) : Tensor();
}

using Real = long double;
using Wide = std::complex<Real>;

template <typename T>
void ExpectWithin(std::complex<T> got, Wide want, double units, const std::string& what) {
  const Real error = std::abs(Wide(got) - want);
  ASSERT_LE(error, units * std::numeric_limits<T>::epsilon() * std::abs(want) +
                       std::numeric_limits<T>::min())
      << what << " is " << got << " instead of " << want;
}

// Infinite, NaN or finite as it should be, up to what overflows.
template <typename T>
void ExpectAlike(std::complex<T> got, std::complex<T> want, const std::string& what) {
  for (const auto& [g, w] : {std::pair(got.real(), want.real()), {got.imag(), want.imag()}}) {
    if (std::isnan(w) || std::isinf(w)) {
      ASSERT_TRUE(std::isnan(w) ? std::isnan(g) : g == w)
          << what << " is " << got << " instead of " << want;
    } else {
      const T size = std::isfinite(std::abs(want)) ? std::abs(want) : std::abs(w);
      ASSERT_NEAR(g, w, T(1e-5) * size + std::numeric_limits<T>::min())
          << what << " is " << got << " instead of " << want;
    }
  }
}

// Finite, but results are rounded and overflow in other ways.
template <typename T>
bool IsExtreme(std::complex<T> x) {
  const T most = std::max(std::abs(x.real()), std::abs(x.imag()));
  return most > 1e10 && std::isfinite(x.real()) && std::isfinite(x.imag());
}

struct UnaryCase {
  const char* op;
  Wide (*wide)(Wide);
  std::complex<float> (*of_float)(std::complex<float>);
  std::complex<double> (*of_double)(std::complex<double>);
};

#define TROUPE_UNARY(NAME, FORMULA)                           \
  {                                                           \
    NAME, [](Wide x) -> Wide { return FORMULA(Wide, Real); }, \
        [](std::complex<float> x) -> std::complex<float> {    \
          return FORMULA(std::complex<float>, float);         \
        },                                                    \
        [](std::complex<double> x) -> std::complex<double> {  \
          return FORMULA(std::complex<double>, double);       \
        }                                                     \
  }
#define TROUPE_SQRT(C, T) std::sqrt(x)
#define TROUPE_RSQRT(C, T) C(1) / std::sqrt(x)
#define TROUPE_INV(C, T) C(1) / x
#define TROUPE_LOG(C, T) std::log(x)
#define TROUPE_SQUARE(C, T) x* x
#define TROUPE_SIGN(C, T) std::abs(x) == 0 ? C(0) : x / std::abs(x)

const UnaryCase kUnary[] = {
    TROUPE_UNARY("Sqrt", TROUPE_SQRT), TROUPE_UNARY("Rsqrt", TROUPE_RSQRT),
    TROUPE_UNARY("Inv", TROUPE_INV),   TROUPE_UNARY("Log", TROUPE_LOG),
    TROUPE_UNARY("Sign", TROUPE_SIGN), TROUPE_UNARY("Square", TROUPE_SQUARE),
};

template <typename T>
void CheckUnary() {
  for (const UnaryCase& c : kUnary) {
    for (const bool in_place : {false, true}) {
      const auto x = Numbers<T>(1, false), special = Numbers<T>(2, true);
      const Tensor y = RunOn(c.op, {ToTensor(x)}, in_place);
      const Tensor z = RunOn(c.op, {ToTensor(special)}, in_place);
      for (int64_t i = 0; i < kCount; ++i) {
        const std::string what = StrCat(c.op, " ", i);
        if (std::abs(x[i]) > 0) {
          ExpectWithin(y.unchecked_data<std::complex<T>>()[i], c.wide(Wide(x[i])), 6, what);
        }
        if (IsExtreme(special[i])) continue;
        std::complex<T> want;
        if constexpr (sizeof(T) == 4) {
          want = c.of_float(special[i]);
        } else {
          want = c.of_double(special[i]);
        }
        ExpectAlike(z.unchecked_data<std::complex<T>>()[i], want,
                    StrCat(what, " of ", special[i].real(), " ", special[i].imag()));
      }
    }
  }
}
TEST(ComplexTest, UnaryFunctions) {
  CheckUnary<float>();
  CheckUnary<double>();
}

TEST(ComplexTest, ExponentialsAndLog1p) {
  const auto x = Numbers<float>(3, false);
  const Tensor e = RunOn("Exp", {ToTensor(x)}, false), s = RunOn("Sigmoid", {ToTensor(x)}, false);
  const Tensor l = RunOn("Log1p", {ToTensor(x)}, false);
  const auto y = Numbers<double>(4, false);
  const Tensor m = RunOn("Log1p", {ToTensor(y)}, false);
  for (int64_t i = 0; i < kCount; ++i) {
    const Wide w(x[i]);
    if (std::abs(w.real()) < 85) {
      ExpectWithin(e.unchecked_data<complex64>()[i], std::exp(w), 4, StrCat("Exp ", i));
      if (std::abs(std::exp(-w) + Real(1)) > 0.1) {
        ExpectWithin(s.unchecked_data<complex64>()[i], Real(1) / (std::exp(-w) + Real(1)), 40,
                     StrCat("Sigmoid ", i));
      }
    }
    if (std::abs(w + Real(1)) > 0.1) {
      ExpectWithin(l.unchecked_data<complex64>()[i], std::log(Real(1) + w), 40,
                   StrCat("Log1p ", i));
    }
    if (std::abs(y[i] + 1.0) > 0.1) {
      ExpectWithin(m.unchecked_data<complex128>()[i], std::log(Real(1) + Wide(y[i])), 40,
                   StrCat("Log1p ", i));
    }
  }
  const auto special = Numbers<float>(5, true);
  const Tensor z = RunOn("Exp", {ToTensor(special)}, true);
  for (int64_t i = 0; i < kCount; ++i) {
    ExpectAlike(z.unchecked_data<complex64>()[i], std::exp(special[i]),
                StrCat("Exp of ", special[i].real(), " ", special[i].imag()));
  }
}

struct BinaryCase {
  const char* op;
  Wide (*wide)(Wide, Wide);
  double units;
  bool broadcasts = true;
};
const BinaryCase kBinary[] = {
    {"Mul", [](Wide a, Wide b) { return a * b; }, 4},
    {"Div", [](Wide a, Wide b) { return a / b; }, 6},
    {"RealDiv", [](Wide a, Wide b) { return a / b; }, 6},
    {"DivNoNan", [](Wide a, Wide b) { return a / b; }, 6},
    {"MulNoNan", [](Wide a, Wide b) { return a * b; }, 4},
    {"Xdivy", [](Wide a, Wide b) { return a / b; }, 6},
    {"Xlogy", [](Wide a, Wide b) { return a * std::log(b); }, 8},
    {"SqrtGrad", [](Wide y, Wide dy) { return Real(0.5) * dy / std::conj(y); }, 8, false},
    {"RsqrtGrad", [](Wide y, Wide dy) { return Real(-0.5) * dy * std::pow(std::conj(y), 3); }, 20,
     false},
    {"InvGrad", [](Wide y, Wide dy) { return -std::conj(y) * dy * std::conj(y); }, 10, false},
};

template <typename T>
void CheckBinary() {
  auto x = Numbers<T>(1, false), y = Numbers<T>(2, false);
  for (int64_t i = 0; i < kCount; ++i) {  // What is 0 is looked at below.
    if (std::abs(x[i]) == 0) x[i] = 1;
    if (std::abs(y[i]) == 0) y[i] = 1;
  }
  for (const BinaryCase& c : kBinary) {
    for (int form = 0; form < (c.broadcasts ? 3 : 1); ++form) {
      const Tensor a = form == 1 ? ToTensor<T>({x[0]}) : ToTensor(x);
      const Tensor b = form == 2 ? ToTensor<T>({y[0]}) : ToTensor(y);
      const Tensor z = RunOn(c.op, {a, b}, form != 1);
      ASSERT_EQ(z.num_elements(), kCount);
      for (int64_t i = 0; i < kCount; ++i) {
        ExpectWithin(z.unchecked_data<std::complex<T>>()[i],
                     c.wide(Wide(x[form == 1 ? 0 : i]), Wide(y[form == 2 ? 0 : i])), c.units,
                     StrCat(c.op, " ", form, " ", i));
      }
    }
  }
  x = Numbers<T>(3, true), y = Numbers<T>(4, true);
  const Tensor a = ToTensor(x), b = ToTensor(y);
  const Tensor product = RunOn("Mul", {a, b}, false), quotient = RunOn("Div", {a, b}, false);
  const Tensor safe = RunOn("DivNoNan", {a, b}, false), zero = RunOn("MulNoNan", {a, b}, false);
  const auto at = [](const Tensor& t, int64_t i) { return t.unchecked_data<std::complex<T>>()[i]; };
  const std::complex<T> none = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const std::string what =
        StrCat(" of ", x[i].real(), " ", x[i].imag(), " and ", y[i].real(), " ", y[i].imag());
    if (IsExtreme(x[i]) || IsExtreme(y[i])) continue;
    ExpectAlike(at(product, i), x[i] * y[i], "Mul" + what);
    ExpectAlike(at(zero, i), y[i] == none ? none : x[i] * y[i], "MulNoNan" + what);
    const T size = std::abs(y[i]);
    if (size > 0 && size < 1e-10) continue;
    ExpectAlike(at(quotient, i), x[i] / y[i], "Div" + what);
    ExpectAlike(at(safe, i), y[i] == none ? none : x[i] / y[i], "DivNoNan" + what);
  }
}
TEST(ComplexTest, QuotientsOfLargeAndSmallNumbers) {
  using C = std::complex<double>;
  const std::vector<C> x = {{1e308, 0},       {1e307, 0},        {3e-308, 3e-308}, {1e300, 1},
                            {-1e200, 1e-200}, {1e-300, -1e-300}, {8e307, 8e307}};
  const std::vector<C> y = {{1e308, 0},      {1e308, 1e308},  {2.5e-308, -2.5e-308}, {1e300, 1e-20},
                            {1e200, 1e-150}, {1e308, 1e-300}, {1e307, -1e308}};
  const Tensor quotients = RunOn("Div", {ToTensor(x), ToTensor(y)}, false);
  ASSERT_EQ(quotients.num_elements(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ExpectWithin(quotients.unchecked_data<C>()[i], Wide(x[i]) / Wide(y[i]), 6, StrCat("Div ", i));
  }
}

TEST(ComplexTest, LogarithmsNearTheUnitCircle) {
  const std::vector<std::complex<double>> x = {
      {0.6, 0.8}, {0.8, 0.6}, {-0.28, 0.96}, {0.96, -0.28}};
  const Tensor logs = RunOn("Log", {ToTensor(x)}, false);
  ASSERT_EQ(logs.num_elements(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const __float128 re = x[i].real(), im = x[i].imag();
    const auto want = static_cast<double>((re * re + im * im - 1) / 2);
    EXPECT_NEAR(logs.unchecked_data<std::complex<double>>()[i].real(), want, 1e-6 * std::abs(want))
        << i;
  }
}

TEST(ComplexTest, BinaryFunctions) {
  CheckBinary<float>();
  CheckBinary<double>();
}

}  // namespace
}  // namespace troupe::testing

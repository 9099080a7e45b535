// Functions without branches beside the C library's of long double, for each instruction set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "devices/cpu/flush_denormals.h"
#include "gtest/gtest.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

using Real = long double;

constexpr InstructionSet kSets[] = {InstructionSet::kV2, InstructionSet::kV3, InstructionSet::kV4};

// How far `got` is from `want`, in units of the last place of T there.
template <typename T>
double Ulps(T got, Real want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(want);
  if (got == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(got)) return 1e30;
  const Real least = std::numeric_limits<T>::min();
  if (std::abs(want) < least && std::abs(got) <= least) return 0;  // Denormal, which may be 0.
  const Real unit =
      std::ldexp(Real(1), std::max(std::ilogb(want), std::numeric_limits<T>::min_exponent - 1) -
                              (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::abs(static_cast<Real>(got) - want) / unit);
}

auto BitsOf(float x) { return std::bit_cast<uint32_t>(x); }
auto BitsOf(double x) { return std::bit_cast<uint64_t>(x); }

template <typename T>
std::vector<T> Numbers(Real least, Real most) {
  std::vector<T> x = {T(0),
                      -T(0),
                      std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN(),
                      T(1),
                      T(-1),
                      T(0.5),
                      T(-0.5),
                      std::numeric_limits<T>::max(),
                      std::numeric_limits<T>::lowest(),
                      std::numeric_limits<T>::min(),
                      -std::numeric_limits<T>::min(),
                      std::numeric_limits<T>::epsilon()};
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> inside(static_cast<double>(least),
                                                static_cast<double>(most));
  std::uniform_real_distribution<double> exponent(
      -30, std::log2(std::max(std::abs(least), std::abs(most))));
  for (int i = 0; i < 100000; ++i) {
    x.push_back(static_cast<T>(inside(random)));
    const auto small = static_cast<T>(std::exp2(exponent(random)));
    x.push_back(i % 2 == 0 ? small : -small);
  }
  return x;
}

template <typename T>
constexpr simd::Type kTableType = sizeof(T) == 4 ? simd::kF32 : simd::kF64;

template <typename T>
void Check(const char* name, simd::UnaryOp op, const std::function<Real(Real)>& function,
           Real least, Real most, double ulps) {
  const ScopedFlushDenormals flush;
  const std::vector<T> x = Numbers<T>(least, most);
  for (const InstructionSet set : kSets) {
    const simd::Table* table = simd::FunctionsFor(set);
    if (table == nullptr) continue;
    std::vector<T> y(x.size());
    table->unary[kTableType<T>][op](x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = Ulps<T>(y[i], function(static_cast<Real>(x[i])));
      if (error > worst) worst = error;
      ASSERT_LE(error, ulps) << name << "(" << std::hexfloat << x[i] << ") is " << y[i];
      if (x[i] == 0 && y[i] == 0) {
        ASSERT_EQ(std::signbit(y[i]), std::signbit(function(x[i]))) << name;
      }
    }
    testing::Test::RecordProperty(std::string(name) + std::to_string(sizeof(T)),
                                  std::to_string(worst));
    // An element's result does not depend on its place.
    for (size_t i = 0; i < 200; ++i) {
      T one;
      table->unary[kTableType<T>][op](&x[i], &one, 1);
      ASSERT_EQ(BitsOf(one), BitsOf(y[i])) << name << " of " << x[i];
    }
  }
}

TEST(VectorFunctions, AreWithinUnitsOfTheLastPlace) {
  const auto expm1 = [](Real x) { return std::expm1(x); };
  const auto elu = [](Real x) { return x < 0 ? std::expm1(x) : x; };
  const auto log1p = [](Real x) { return std::log1p(x); };
  const auto tanh = [](Real x) { return std::tanh(x); };
  const auto atanh = [](Real x) { return std::atanh(x); };
  const auto atan = [](Real x) { return std::atan(x); };
  const auto erf = [](Real x) { return std::erf(x); };
  const auto erfc = [](Real x) { return std::erfc(x); };
  Check<float>("expm1", simd::kExpm1, expm1, -90, 90, 2);
  Check<double>("expm1", simd::kExpm1, expm1, -720, 720, 2);
  Check<float>("elu", simd::kElu, elu, -10, 10, 2);
  Check<double>("elu", simd::kElu, elu, -10, 10, 2);
  Check<double>("log1p", simd::kLog1p, log1p, -1, 100, 2);
  Check<double>("tanh", simd::kTanh, tanh, -25, 25, 3);
  Check<float>("atanh", simd::kAtanh, atanh, -1, 1, 3);
  Check<double>("atanh", simd::kAtanh, atanh, -1, 1, 3);
  const auto sinh = [](Real x) { return std::sinh(x); };
  const auto cosh = [](Real x) { return std::cosh(x); };
  const auto asinh = [](Real x) { return std::asinh(x); };
  const auto acosh = [](Real x) { return std::acosh(x); };
  Check<float>("sinh", simd::kSinh, sinh, -90, 90, 3);
  Check<double>("sinh", simd::kSinh, sinh, -711, 711, 3);
  Check<float>("cosh", simd::kCosh, cosh, -90, 90, 3);
  Check<double>("cosh", simd::kCosh, cosh, -711, 711, 3);
  Check<float>("asinh", simd::kAsinh, asinh, -1e10, 1e10, 3);
  Check<double>("asinh", simd::kAsinh, asinh, -100, 100, 3);
  Check<float>("acosh", simd::kAcosh, acosh, 1, 20, 3);
  Check<double>("acosh", simd::kAcosh, acosh, 1, 1e20, 3);
  Check<float>("atan", simd::kAtan, atan, -10, 10, 3);
  Check<double>("atan", simd::kAtan, atan, -10, 10, 2);
  Check<float>(
      "asin", simd::kAsin, [](Real x) { return std::asin(x); }, -1, 1, 3);
  Check<float>(
      "acos", simd::kAcos, [](Real x) { return std::acos(x); }, -1, 1, 3);
  Check<double>("erf", simd::kErf, erf, -7, 7, 3);
  Check<float>("erfc", simd::kErfc, erfc, -5, 10, 6);
  Check<double>("erfc", simd::kErfc, erfc, -7, 27, 6);
  const auto sin = [](Real x) { return std::sin(x); };
  const auto cos = [](Real x) { return std::cos(x); };
  Check<float>("sin", simd::kSin, sin, -1e3, 1e3, 1);
  Check<float>("cos", simd::kCos, cos, -1e3, 1e3, 1);
  Check<double>("sin", simd::kSin, sin, -1e3, 1e3, 1);
  Check<double>("cos", simd::kCos, cos, -1e3, 1e3, 1);
  Check<double>("sin of large numbers", simd::kSin, sin, -1e6, 1e6, 1);
  Check<double>("cos of large numbers", simd::kCos, cos, -1e6, 1e6, 1);
  const auto tan = [](Real x) { return std::tan(x); };
  Check<float>("tan", simd::kTan, tan, -1e3, 1e3, 2);
  Check<float>("tan of large numbers", simd::kTan, tan, -1e9, 1e9, 2);
  Check<float>("sin of large numbers", simd::kSin, sin, -1e9, 1e9, 1);
  Check<float>("cos of large numbers", simd::kCos, cos, -1e9, 1e9, 1);
}

template <typename T>
void CheckAtan2(double ulps) {
  const ScopedFlushDenormals flush;
  std::vector<T> x = Numbers<T>(-10, 10), y = x;
  std::shuffle(y.begin(), y.end(), std::mt19937(5));
  const std::vector<T> ends(x.begin(), x.begin() + 14);
  for (const T a : ends) {
    for (const T b : ends) x.push_back(a), y.push_back(b);
  }
  for (const InstructionSet set : kSets) {
    const simd::Table* table = simd::FunctionsFor(set);
    if (table == nullptr) continue;
    std::vector<T> z(x.size());
    table->binary[kTableType<T>][simd::kAtan2].aa(y.data(), x.data(), z.data(),
                                                  static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const Real want = std::atan2(static_cast<Real>(y[i]), static_cast<Real>(x[i]));
      ASSERT_LE(Ulps<T>(z[i], want), ulps) << std::hexfloat << y[i] << " " << x[i] << " " << z[i];
      if (want == 0) {
        ASSERT_EQ(std::signbit(z[i]), std::signbit(want));
      }
    }
  }
}

TEST(VectorFunctions, Atan2) {
  CheckAtan2<float>(4);
  CheckAtan2<double>(3);
}

}  // namespace
}  // namespace troupe

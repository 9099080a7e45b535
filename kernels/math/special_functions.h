/// Special functions of mathematics that no library at hand has, or has for all arguments. All take
/// any number, NaN and infinities among them, and do a bounded amount of work. For processors and
/// cards, but for those that are only declared.
#ifndef TROUPE_KERNELS_MATH_SPECIAL_FUNCTIONS_H_
#define TROUPE_KERNELS_MATH_SPECIAL_FUNCTIONS_H_

#include <cmath>
#include <limits>
#include <numbers>

// Eigen says of functions that have no bodies that they are for cards, too.
#ifdef __CUDACC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 20012
#endif
#include <unsupported/Eigen/SpecialFunctions>
#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif

#include "kernels/common/formula.h"

namespace troupe {
namespace internal {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
inline constexpr double kLeast = std::numeric_limits<double>::min();
inline constexpr double kPi = std::numbers::pi;

}  // namespace internal

/// Dawson's integral, by series about 0 and infinity, and between them by Rybicki's sum of bells
/// (Computers in Physics 3(2), 1989).
TROUPE_FORMULA inline double Dawson(double x) {
  const double size = std::abs(x), square = x * x;
  if (size < 0.5) {
    double term = x, sum = x;
    for (int k = 1; k < 15; ++k) sum += term *= -2 * square / (2 * k + 1);
    return sum;
  }
  if (!(size < 10)) {
    if (std::isnan(x)) return x;
    double term = 0.5 / x, sum = term;
    for (int k = 1; k < 12; ++k) sum += term *= (2 * k - 1) / (2 * square);
    return sum;
  }
  // Bells at odd multiples of the step. Those further away are below the last bit.
  constexpr double kStep = 0.2;
  constexpr int kBells = 34;
  const int nearest = 2 * static_cast<int>(std::lround(x / (2 * kStep)));
  double sum = 0;
  for (int n = nearest - kBells + 1; n < nearest + kBells; n += 2) {
    const double distance = x - n * kStep;
    sum += std::exp(-distance * distance) / n;
  }
  return sum * std::numbers::inv_sqrtpi;
}

/// Integrals of cos(pi t^2 / 2) and of sin(pi t^2 / 2) from 0 to x: the power series, and beyond
/// 1.5 the continued fraction of the complementary error function of a complex number (Press et
/// al., "Numerical Recipes", section 6.8).
struct FresnelIntegrals {
  double cosine, sine;
};
/// `Number`: complex numbers, of which `real` and `imag` are the parts.
template <typename Number>
TROUPE_FORMULA FresnelIntegrals Fresnel(double x) {
  const double size = std::abs(x);
  FresnelIntegrals result;
  if (size < 1.5) {
    // Terms of exp(i pi t^2 / 2), integrated one by one.
    const double angle = internal::kPi / 2 * size * size;
    double power = size;
    result = {0, 0};
    for (int k = 0; k < 32; ++k) {
      const double term = power / (2 * k + 1);
      (k % 2 == 0 ? result.cosine : result.sine) += k % 4 < 2 ? term : -term;
      power *= angle / (k + 1);
    }
  } else if (size <= 36974) {
    // Lentz's method.
    const double square = internal::kPi * size * size;
    const Number one{1, 0};
    Number b{1, -square}, c{1 / internal::kLeast, 0}, d = one / b, fraction = d;
    for (int k = 1; k < 400; k += 2) {
      const double a = -static_cast<double>(k) * (k + 1);
      b = b + Number{4, 0};
      d = one / Number{a * real(d) + real(b), a * imag(d) + imag(b)};
      c = b + Number{a, 0} / c;
      const Number factor = c * d;
      fraction = fraction * factor;
      if (std::abs(real(factor) - 1) + std::abs(imag(factor)) < internal::kEpsilon) break;
    }
    const Number phase{std::cos(square / 2), std::sin(square / 2)};
    const Number both = Number{0.5, 0.5} * (one - phase * Number{size, -size} * fraction);
    result = {real(both), imag(both)};
  } else {
    result = std::isnan(x) ? FresnelIntegrals{x, x} : FresnelIntegrals{0.5, 0.5};
  }
  return {std::copysign(result.cosine, x), std::copysign(result.sine, x)};
}

namespace internal {

/// Of exp(-u) in [1/2, 2].
TROUPE_FORMULA inline double SpenceSeries(double u) {
  // B(2k) / (2k + 1)!
  constexpr double kCoefficients[] = {
      1.0 / 36,
      -1.0 / 3600,
      1.0 / 211680,
      -1.0 / 10886400,
      1.0 / 526901760,
      -691.0 / 16999766784000,
      1.0 / 1120863744000,
      -3617.0 / 181400588328960000,
      43867.0 / 97072790126247936000.0,
  };
  const double square = u * u;
  double power = u, sum = u - square / 4;
  for (const double coefficient : kCoefficients) sum += coefficient * (power *= square);
  return sum;
}

TROUPE_FORMULA inline double SpenceBelow2(double x, double log) {
  constexpr double kAtZero = kPi * kPi / 6;
  if (x == 0) return kAtZero;
  if (x >= 0.5) return SpenceSeries(-log);
  return kAtZero - log * std::log1p(-x) - SpenceSeries(-std::log(1 - x));
}

}  // namespace internal

/// The dilogarithm Li2(1 - x); NaN below 0 and at infinity, as in TensorFlow. The series of
/// Bernoulli numbers in log(x), on [1/2, 2].
TROUPE_FORMULA inline double Spence(double x) {
  if (!(x >= 0) || std::isinf(x)) return internal::kNan;
  const double log = std::log(x);
  if (x <= 2) return internal::SpenceBelow2(x, log);
  return -0.5 * log * log - internal::SpenceBelow2(1 / x, std::log(1 / x));
}

/// Ei(x); NaN below 0 and at infinity, as in TensorFlow.
double ExponentialIntegral(double x);

/// NaN outside of [-1, 1].
double InverseErf(double x);
/// NaN outside of [0, 1].
double NormalQuantile(double p);

/// Hurwitz' zeta function: infinity at x = 1, NaN below; NaN for a negative q unless x is a whole
/// number.
TROUPE_FORMULA inline double HurwitzZeta(double x, double q) {
  if (x < 1 || std::isnan(x) || std::isnan(q)) return internal::kNan;
  if (x > 1 && std::isinf(q) && q > 0) return 0;
  if (q > 0 || x == 1) return Eigen::numext::zeta(x, q);
  if (x != std::floor(x)) return internal::kNan;
  // A pole: the terms on both sides of it cancel if x is odd. Numbers of 2^53 and more are even.
  if (q == std::floor(q)) return std::fmod(x, 2) == 1 ? internal::kNan : internal::kInfinity;
  // The terms of negative numbers are those of two other sums, up to the sign, so that their number
  // does not matter.
  const double first = q - std::floor(q);
  const double last = std::floor(q) + 1 - q;  // not 1 - first, which is 0 for a q of -1e-30
  const double negative = Eigen::numext::zeta(x, last) - Eigen::numext::zeta(x, 1 - q);
  return Eigen::numext::zeta(x, first) + (std::fmod(x, 2) == 0 ? negative : -negative);
}

/// The derivative of order n of the digamma function.
TROUPE_FORMULA inline double Polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return internal::kNan;
  if (n == 0) return Eigen::numext::digamma(x);
  const double magnitude = std::exp(Eigen::numext::lgamma(n + 1)) * HurwitzZeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -magnitude : magnitude;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_SPECIAL_FUNCTIONS_H_

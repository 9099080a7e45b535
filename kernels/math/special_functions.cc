#include "kernels/math/special_functions.h"

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <unsupported/Eigen/SpecialFunctions>

namespace troupe {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = std::numbers::pi;

}  // namespace

double Dawson(double x) {
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

FresnelIntegrals Fresnel(double x) {
  const double size = std::abs(x);
  FresnelIntegrals result;
  if (size < 1.5) {
    // Terms of exp(i pi t^2 / 2), integrated one by one.
    const double angle = kPi / 2 * size * size;
    double power = size;
    result = {0, 0};
    for (int k = 0; k < 32; ++k) {
      const double term = power / (2 * k + 1);
      (k % 2 == 0 ? result.cosine : result.sine) += k % 4 < 2 ? term : -term;
      power *= angle / (k + 1);
    }
  } else if (size <= 36974) {
    // Lentz's method.
    using Number = std::complex<double>;
    const double square = kPi * size * size;
    Number b(1, -square), c = 1 / std::numeric_limits<double>::min(), d = 1.0 / b, fraction = d;
    for (int k = 1; k < 400; k += 2) {
      const double a = -static_cast<double>(k) * (k + 1);
      b += 4.0;
      d = 1.0 / (a * d + b);
      c = b + a / c;
      const Number factor = c * d;
      fraction *= factor;
      if (std::abs(factor.real() - 1) + std::abs(factor.imag()) < kEpsilon) break;
    }
    const Number tail = std::polar(1.0, square / 2) * Number(size, -size) * fraction;
    const Number both = Number(0.5, 0.5) * (1.0 - tail);
    result = {both.real(), both.imag()};
  } else {
    result = std::isnan(x) ? FresnelIntegrals{x, x} : FresnelIntegrals{0.5, 0.5};
  }
  return {std::copysign(result.cosine, x), std::copysign(result.sine, x)};
}

double Spence(double x) {
  if (!(x >= 0) || std::isinf(x)) return kNan;
  constexpr double kAtZero = kPi * kPi / 6;
  if (x == 0) return kAtZero;
  const double log = std::log(x);
  if (x > 2) return -0.5 * log * log - Spence(1 / x);
  if (x < 0.5) return kAtZero - log * std::log1p(-x) - Spence(1 - x);
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
  const double u = -log, square = u * u;
  double power = u, sum = u - square / 4;
  for (const double coefficient : kCoefficients) sum += coefficient * (power *= square);
  return sum;
}

double HurwitzZeta(double x, double q) {
  if (x < 1 || std::isnan(x) || std::isnan(q)) return kNan;
  if (x > 1 && std::isinf(q) && q > 0) return 0;
  if (q > 0 || x == 1) return Eigen::numext::zeta(x, q);
  if (x != std::floor(x)) return kNan;
  // A pole: the terms on both sides of it cancel if x is odd. Numbers of 2^53 and more are even.
  if (q == std::floor(q)) return std::fmod(x, 2) == 1 ? kNan : kInfinity;
  // The terms of negative numbers are those of two other sums, up to the sign, so that their number
  // does not matter.
  const double first = q - std::floor(q);
  const double last = std::floor(q) + 1 - q;  // not 1 - first, which is 0 for a q of -1e-30
  const double negative = Eigen::numext::zeta(x, last) - Eigen::numext::zeta(x, 1 - q);
  return Eigen::numext::zeta(x, first) + (std::fmod(x, 2) == 0 ? negative : -negative);
}

double Polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return kNan;
  if (n == 0) return Eigen::numext::digamma(x);
  const double magnitude = std::exp(Eigen::numext::lgamma(n + 1)) * HurwitzZeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -magnitude : magnitude;
}

}  // namespace troupe

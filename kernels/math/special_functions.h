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
inline constexpr double kPi = std::numbers::pi;

}  // namespace internal

namespace internal {

/// c[0] + c[1] x + c[2] x^2 + ...
template <size_t kCount>
TROUPE_FORMULA double PolynomialOf(const double (&c)[kCount], double x) {
  double sum = c[kCount - 1];
  for (size_t i = kCount - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

}  // namespace internal

/// Dawson's integral, by polynomials and quotients of them within 3e-16 of values of 60 digits
/// (least squares of relative errors at Chebyshev points), as the Fresnel integrals are.
TROUPE_FORMULA inline double Dawson(double x) {
  using internal::PolynomialOf;
  constexpr double kSmallOver[] = {1.0,
                                   -0.11882686007178111,
                                   0.045261856997445617,
                                   -0.0020336471981063715,
                                   0.00039635433317413958,
                                   -6.5551787672056148e-6,
                                   1.036765683426494e-6,
                                   -2.3514961393632099e-9,
                                   7.7040884152304666e-10,
                                   9.4890439415959181e-13,
                                   2.7606855949040023e-14};
  constexpr double kSmallUnder[] = {1.0,
                                    0.54783980659488548,
                                    0.14382172806070399,
                                    0.023947365940859531,
                                    0.0028177629536115871,
                                    0.00024664362285318042,
                                    1.6418004262996131e-5,
                                    8.3079364082278786e-7,
                                    3.1109495251498937e-8,
                                    7.9862300694919598e-10,
                                    1.1195053169649684e-11};
  const double size = std::abs(x), square = x * x;
  if (size < 3.25) return x * PolynomialOf(kSmallOver, square) / PolynomialOf(kSmallUnder, square);
  constexpr double kNear[] = {
      1.0408896776144818,      0.01485282556008908,     0.00085618864785136168,
      0.0001078715884257844,   9.7061909637939449e-6,   -4.1784307748374352e-6,
      -1.4603763841673341e-6,  2.3378917195306889e-7,   1.1163990503528102e-7,
      -2.9469312076194911e-8,  -5.1377853354426441e-9,  3.4955996556756799e-9,
      -3.0319649737464014e-10, -2.3295338334872576e-10, 6.7109314601487955e-11,
      1.2741237524071839e-12};
  constexpr double kMiddle[] = {
      1.0193689161779063,      0.0072504006184785662,   0.00017011057170448804,
      7.4598342352947757e-6,   5.323221189021545e-7,    6.0449946126433889e-8,
      1.0389049199044393e-8,   1.8869009339945099e-9,   2.1541092615601169e-11,
      -1.8452455173342905e-10, -5.7298157588752781e-11, 6.221895554917289e-12,
      5.1447918782677053e-12};
  constexpr double kFar[] = {
      1.0060254418031629,     0.0061371114656836679,  0.00011520964224017151,
      3.7013935557627851e-6,  1.7114793108219516e-7,  1.0473109247393961e-8,
      8.0742617843764773e-10, 7.5952913515686309e-11, 8.5008734058206735e-12,
      1.1167444491501665e-12, 1.9295744843668844e-13, 3.5827431095117737e-14};
  // 2 x D(x) = 1 + 1 / (2 x^2) + ..., by polynomials of 1 / x^2, which is brought to [-1, 1].
  const auto at = [w = 1 / square](double least, double most) {
    return (w - (most + least) / 2) * (2 / (most - least));
  };
  const double product = size < 4.5   ? PolynomialOf(kNear, at(1 / 20.25, 1 / 10.5625))
                         : size < 6.5 ? PolynomialOf(kMiddle, at(1 / 42.25, 1 / 20.25))
                                      : PolynomialOf(kFar, at(0, 1 / 42.25));
  return product / (2 * x);
}

/// Integrals of cos(pi t^2 / 2) and of sin(pi t^2 / 2) from 0 to x.
struct FresnelIntegrals {
  double cosine, sine;
};
TROUPE_FORMULA inline FresnelIntegrals Fresnel(double x) {
  using internal::PolynomialOf;
  constexpr double kCosineOver[] = {1.0,
                                    -0.21336526350988419,
                                    0.020508836335477972,
                                    -0.00079583929930351332,
                                    1.4787918269103104e-5,
                                    -1.3072927025349115e-7,
                                    4.5144823344352695e-10};
  constexpr double kCosineUnder[] = {1.0,
                                     0.033374846517349777,
                                     0.00055824875941668002,
                                     6.0994308457074573e-6,
                                     4.6966124733105076e-8,
                                     2.4900180181296368e-10,
                                     7.4141006820423913e-13};
  constexpr double kSineOver[] = {
      0.52359877559829887,   -0.076426807820105366, 0.0046891907054836232, -0.0001324737371661182,
      1.9009748559388169e-6, -1.356857777865903e-8, 3.9002099384818196e-11};
  constexpr double kSineUnder[] = {1.0,
                                   0.030278484742089455,
                                   0.0004555449862701051,
                                   4.4310172215804991e-6,
                                   2.9988212472197727e-8,
                                   1.374220415291174e-10,
                                   3.4529664058944342e-13};
  constexpr double kFOver[] = {0.99999999999999994,   2774.5420697313331,  2696617.9389504206,
                               1184083474.3233799,    253122004868.23861,  26491810504803.668,
                               1296946765221479.8,    26557521052834175.0, 1.7786208950190022e+17,
                               1.9263462793484385e+17};
  constexpr double kFUnder[] = {1.0,
                                2777.5420697313207,
                                2704845.5651600301,
                                1191916764.0959985,
                                256440591941.40438,
                                27159122278574.788,
                                1359908048040944.1,
                                29139209899127563.0,
                                2.1634986221157315e+17,
                                3.2549116397438506e+17};
  constexpr double kGOver[] = {0.99999999999999909,   3126.4864002361017,  3439129.9264467059,
                               1715411828.5123077,    417503525812.29588,  49729610559401.331,
                               2755257488775119.5,    62764136769262316.0, 4.4376848075699302e+17,
                               3.7144352288187869e+17};
  constexpr double kGUnder[] = {1.0,
                                3141.4864002358949,
                                3485307.2224578243,
                                1764857867.0905386,
                                441072844713.74214,
                                55054390417748.85,
                                3317957377728793.2,
                                88511770812832758.0,
                                8.7157522007921375e+17,
                                2.0373340720325829e+18};
  const double size = std::abs(x), square = x * x;
  if (size < 1.6) {
    const double y = square * square;
    return {x * PolynomialOf(kCosineOver, y) / PolynomialOf(kCosineUnder, y),
            x * square * PolynomialOf(kSineOver, y) / PolynomialOf(kSineUnder, y)};
  }
  if (!(size <= 36974)) {
    const double limit = std::isnan(x) ? x : std::copysign(0.5, x);
    return {limit, limit};
  }
  // Sine and cosine of pi x^2 / 2, reduced to an eighth of a turn.
  constexpr double kSineTerms[] = {1,
                                   -1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / 362880,
                                   -1.0 / 39916800,
                                   1.0 / 6227020800,
                                   -1.0 / 1307674368000};
  constexpr double kCosineTerms[] = {1,
                                     -1.0 / 2,
                                     1.0 / 24,
                                     -1.0 / 720,
                                     1.0 / 40320,
                                     -1.0 / 3628800,
                                     1.0 / 479001600,
                                     -1.0 / 87178291200,
                                     1.0 / 20922789888000};
  const double quarters = std::rint(square);
  const double high = static_cast<float>(x), low = x - high;  // high^2 is exact
  const double angle = ((high * high - quarters) + low * (x + high)) * (internal::kPi / 2);
  double sine = angle * PolynomialOf(kSineTerms, angle * angle);
  double cosine = PolynomialOf(kCosineTerms, angle * angle);
  const auto quarter = static_cast<unsigned>(quarters);
  if (quarter % 2 != 0) {
    const double other = sine;
    sine = cosine;
    cosine = -other;
  }
  if (quarter % 4 >= 2) {
    sine = -sine;
    cosine = -cosine;
  }
  const double scale = 1 / (internal::kPi * square), u = scale * scale;
  const double f = scale * size * PolynomialOf(kFOver, u) / PolynomialOf(kFUnder, u);
  const double g = u * size * PolynomialOf(kGOver, u) / PolynomialOf(kGUnder, u);
  return {std::copysign(0.5 + (f * sine - g * cosine), x),
          std::copysign(0.5 - (f * cosine + g * sine), x)};
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

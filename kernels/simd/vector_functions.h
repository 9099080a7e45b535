/// Functions of float and double without branches or tables, which compilers vectorise.
///
/// Coefficients: those of the Cephes and FDLIBM libraries where a function says so, else Chebyshev
/// interpolation of 60 digits. Errors, in units of the last place, are in
/// tests/kernels/simd/vector_functions_test.cc. What is denormal may count as 0.
#ifndef TROUPE_KERNELS_SIMD_VECTOR_FUNCTIONS_H_
#define TROUPE_KERNELS_SIMD_VECTOR_FUNCTIONS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/simd/independent.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

template <typename T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
  using U = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded to integers.
  static constexpr U kSqrtHalf = 0x3f3504f3, kTwoToMantissa = 0x4b000000, kHalfBits = 12;
  static constexpr float kLn2High = 6.9313812256e-01f, kLn2Low = 9.0580006145e-06f;
  // Beyond these expm1 is infinite, and -1.
  static constexpr float kExpMost = 88.722839f, kExpm1Least = -20.0f;
};
template <>
struct FloatTraits<double> {
  using U = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr U kSqrtHalf = 0x3fe6a09e667f3bcd, kTwoToMantissa = 0x4330000000000000,
                     kHalfBits = 27;
  static constexpr double kLn2High = 6.93147180369123816490e-01,
                          kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kExpMost = 709.782712893383996732, kExpm1Least = -40.0;
};

template <typename T>
auto Bits(T x) {
  return std::bit_cast<typename FloatTraits<T>::U>(x);
}
template <typename T>
constexpr typename FloatTraits<T>::U kSignBit =
    typename FloatTraits<T>::U{1} << (8 * sizeof(T) - 1);

template <typename T>
T WithSignOf(T magnitude, T sign) {
  return std::bit_cast<T>((Bits(magnitude) & ~kSignBit<T>) | (Bits(sign) & kSignBit<T>));
}

// a * b + c, rounded once where the instruction set can.
template <typename T>
[[gnu::always_inline]] inline T MultiplyAdd(T a, T b, T c) {
#if defined(__FMA__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// c0 + x (c1 + x (c2 + ...)).
template <typename T>
[[gnu::always_inline]] inline T Polynomial(T, T c) {
  return c;
}
template <typename T, typename... More>
[[gnu::always_inline]] inline T Polynomial(T x, T c, More... more) {
  return MultiplyAdd(Polynomial(x, static_cast<T>(more)...), x, c);
}

// exp(x + more) = 2^k (1 + p): k with the magic number added, and p. `more` is small.
template <typename T>
struct ExpParts {
  T shifted, p;

  explicit ExpParts(T x, T more = 0) {
    using B = FloatTraits<T>;
    shifted = x * T(1.44269504088896340736) + B::kMagic;
    const T k = shifted - B::kMagic;
    const T r = ((x - k * B::kLn2High) - k * B::kLn2Low) + more;
    T f;
    if constexpr (sizeof(T) == 4) {
      f = Polynomial<T>(r, 0.5000000031f, 0.166666667f, 0.04166631233f, 0.00833329398f,
                        0.0013948221f, 0.0001990717056f);
    } else {
      f = Polynomial<T>(r, 0.5, 0.16666666666666671, 0.04166666666666667, 0.0083333333333260831,
                        0.0013888888888883711, 0.00019841269875002279, 2.4801587325677462e-5,
                        2.7557255170000887e-6, 2.755727347871858e-7, 2.5105312729622102e-8,
                        2.0914755325893202e-9);
    }
    p = r + r * r * f;
  }
  // 2^(k - less).
  T Power(int less) const {
    using U = typename FloatTraits<T>::U;
    return std::bit_cast<T>((Bits(shifted) + static_cast<U>(FloatTraits<T>::kBias - less))
                            << FloatTraits<T>::kMantissa);
  }
};

struct VectorExpm1Op {
  template <typename T>
  static T Run(T x) {
    using B = FloatTraits<T>;
    T c = x > B::kExpMost ? B::kExpMost : x;
    c = c < B::kExpm1Least ? B::kExpm1Least : c;
    const ExpParts<T> parts(c);
    const T half = parts.Power(1);
    const T y = 2 * (half * parts.p + (half - T(0.5)));
    const T bounded = x > B::kExpMost ? std::numeric_limits<T>::infinity() : y;
    return std::abs(x) < std::numeric_limits<T>::epsilon() ? x : bounded;
  }
};

struct VectorTanhOp {
  template <typename T>
  static T Run(T x) {
    const T a = std::abs(x);
    const T t = VectorExpm1Op::Run(2 * (a > T(22) ? T(22) : a));
    return WithSignOf(t / (t + 2), x);
  }
};

// The coefficients of FDLIBM's log.
struct VectorLog1pOp {
  template <typename T>
  static T Run(T x) {
    using B = FloatTraits<T>;
    using U = typename B::U;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T u = 1 + x;
    const T lost = std::abs(x) >= 1 ? 1 - (u - x) : x - (u - 1);
    // u = 2^k m, m from sqrt(1/2) to sqrt(2).
    constexpr U kOne = U{B::kBias} << B::kMantissa;
    const U shifted = Bits(u) + (kOne - B::kSqrtHalf);
    const T k = std::bit_cast<T>((shifted >> B::kMantissa) | B::kTwoToMantissa) -
                (std::bit_cast<T>(B::kTwoToMantissa) + T(B::kBias));
    const T m = std::bit_cast<T>((shifted & ((U{1} << B::kMantissa) - 1)) + B::kSqrtHalf);
    const T f = m - 1, s = f / (2 + f), z = s * s, half = T(0.5) * f * f;
    T r;
    if constexpr (sizeof(T) == 4) {
      r = z * Polynomial<T>(z, 0.66666662693f, 0.40000972152f, 0.28498786688f, 0.24279078841f);
    } else {
      r = z * Polynomial<T>(z, 6.666666666666735130e-01, 3.999999999940941908e-01,
                            2.857142874366239149e-01, 2.222219843214978396e-01,
                            1.818357216161805012e-01, 1.531383769920937332e-01,
                            1.479819860511658591e-01);
    }
    const T y = s * (half + r) + (k * B::kLn2Low + lost / u) - half + f + k * B::kLn2High;
    const T bounded = u > 0 ? (u == kInfinity ? u : y)
                            : (u == 0 ? -kInfinity : std::numeric_limits<T>::quiet_NaN());
    return x == 0 ? x : bounded;
  }
};

struct VectorAtanhOp {
  template <typename T>
  static T Run(T x) {
    const T a = std::abs(x), twice = a + a;
    const T q = (a < T(0.5) ? twice * a : twice) / (1 - a);
    return WithSignOf(T(0.5) * VectorLog1pOp::Run(a < T(0.5) ? twice + q : q), x);
  }
};

// exp(|x|) / 2, infinite where cosh(x) is.
template <typename T>
[[gnu::always_inline]] inline T HalfExpOfSize(T a) {
  constexpr T kMost = FloatTraits<T>::kExpMost + T(0.8);
  const ExpParts<T> parts(a > kMost ? kMost : a);
  const T eighth = parts.Power(2);
  return 2 * (eighth + eighth * parts.p);
}

struct VectorCoshOp {
  template <typename T>
  static T Run(T x) {
    const T half = HalfExpOfSize(std::abs(x));
    return half + T(0.25) / half;
  }
};

struct VectorSinhOp {
  template <typename T>
  static T Run(T x) {
    const T a = std::abs(x), half = HalfExpOfSize(a);
    const T t = VectorExpm1Op::Run(a > 1 ? T(1) : a);
    return WithSignOf(a > 1 ? half - T(0.25) / half : T(0.5) * (t + t / (t + 1)), x);
  }
};

// log(2 x) for large x, log1p(more) else.
template <typename T>
[[gnu::always_inline]] inline T LogOfTwice(T x, T more) {
  constexpr T kLarge = sizeof(T) == 4 ? T(1e9) : T(1e18);
  const bool large = x > kLarge;
  const T y = VectorLog1pOp::Run(large ? x : more);
  return large ? y + T(0.69314718055994530942) : y;
}

struct VectorAsinhOp {
  template <typename T>
  static T Run(T x) {
    const T a = std::abs(x);
    return WithSignOf(LogOfTwice(a, a + a * a / (1 + std::sqrt(1 + a * a))), x);
  }
};

struct VectorAcoshOp {
  template <typename T>
  static T Run(T x) {
    const T t = x - 1;
    const T y = LogOfTwice(x, t + std::sqrt(t * (t + 2)));
    return x < 1 ? std::numeric_limits<T>::quiet_NaN() : y;
  }
};

// Cephes's asin(x) for |x| <= 1/2, where z = x^2.
inline float AsinOfSmall(float x, float z) {
  return Polynomial<float>(z, 1.6666752422e-1f, 7.4953002686e-2f, 4.5470025998e-2f,
                           2.4181311049e-2f, 4.2163199048e-2f) *
             z * x +
         x;
}

struct VectorAsinOp {
  static float Run(float x) {
    const float a = std::abs(x);
    const float z = a > 0.5f ? 0.5f * (1 - a) : a * a;
    const float small = AsinOfSmall(a > 0.5f ? std::sqrt(z) : a, z);
    return WithSignOf(a > 0.5f ? 1.57079632679489661923f - 2 * small : small, x);
  }
};

struct VectorAcosOp {
  static float Run(float x) {
    const float a = std::abs(x);
    const float z = a > 0.5f ? 0.5f * (1 - a) : a * a;
    const float small = AsinOfSmall(a > 0.5f ? std::sqrt(z) : x, z);
    const float beyond = x < 0 ? 3.14159265358979323846f - 2 * small : 2 * small;
    return a > 0.5f ? beyond : 1.57079632679489661923f - small;
  }
};

// Cephes's atan(x) - x, for |x| <= tan(pi / 8) of float, 0.66 of double.
template <typename T>
T AtanOfSmall(T x) {
  const T z = x * x;
  if constexpr (sizeof(T) == 4) {
    return Polynomial<T>(z, -3.33329491539e-1f, 1.99777106478e-1f, -1.38776856032e-1f,
                         8.05374449538e-2f) *
           z * x;
  } else {
    const T p = Polynomial<T>(z, -6.485021904942025371773e1, -1.228866684490136173410e2,
                              -7.500855792314704667340e1, -1.615753718733365076637e1,
                              -8.750608600031904122785e-1);
    const T q = Polynomial<T>(z, 1.945506571482613964425e2, 4.853903996359136964868e2,
                              4.328810604912902668951e2, 1.650270098316988542046e2,
                              2.485846490142306297962e1, 1.0);
    return z * (p / q) * x;
  }
}

// The angle of a vector (right, up), neither below 0 and not both 0.
template <typename T>
T Angle(T up, T right) {
  constexpr T kBig = sizeof(T) == 4 ? T(2.414213562373095) : T(1.5151515151515151);
  constexpr T kMiddle = sizeof(T) == 4 ? T(0.4142135623730950) : T(0.66);
  constexpr T kQuarter = T(7.85398163397448309616e-1);
  constexpr T kLost = sizeof(T) == 4 ? T(0) : T(6.123233995736765886130e-17);  // of pi / 2
  const bool big = up > kBig * right, middle = up > kMiddle * right;
  const T over = big ? -right : middle ? up - right : up;
  const T under = big ? up : middle ? up + right : right;
  const T base = big ? 2 * kQuarter : middle ? kQuarter : T(0);
  const T lost = big ? kLost : middle ? kLost / 2 : T(0);
  const T x = over / under;
  return base + ((AtanOfSmall(x) + lost) + x);
}

struct VectorAtanOp {
  template <typename T>
  static T Run(T x) {
    const T angle = Angle(std::abs(x), T(1));
    constexpr T kHalfPi = T(1.57079632679489661923);
    return WithSignOf(std::abs(x) == std::numeric_limits<T>::infinity() ? kHalfPi : angle, x);
  }
};

struct VectorAtan2Op {
  template <typename T>
  static T Run(T y, T x) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    // Two infinities are as two ones; two zeros as an angle of 0; quotients neither overflow nor,
    // where it matters, underflow.
    const T ay = std::abs(y), ax = std::abs(x);
    const T largest = ay > ax ? ay : ax;
    const T scale = largest > T(1) ? T(0.125) : T(1);
    const T up = ay == kInfinity ? T(1) : largest == kInfinity ? T(0) : ay * scale;
    const T right = ax == kInfinity ? T(1) : largest == kInfinity ? T(0) : ax * scale;
    const T angle = Angle(up, largest == 0 ? T(1) : right);
    const bool left = (Bits(x) & kSignBit<T>) != 0;
    // pi in two parts.
    constexpr T kPi = T(3.14159265358979323846);
    constexpr T kRest = sizeof(T) == 4 ? T(-8.74227765734758577e-8) : T(1.2246467991473532e-16);
    const T turned = left ? kPi - (angle - kRest) : angle;
    return x != x ? x : y != y ? y : WithSignOf(turned, y);
  }
};

// erfc(x) for x >= 0: exp(-x^2) g(q) / (1 + 2 x), where q = (x - 4) / (x + 4).
template <typename T>
[[gnu::always_inline]] inline T ErfcOfPositive(T x) {
  using U = typename FloatTraits<T>::U;
  constexpr T kMost = sizeof(T) == 4 ? T(9.2) : T(26.6);  // exp(-x^2) is denormal beyond.
  const T a = x > kMost ? kMost : x;
  const T q = (a - 4) / (a + 4);
  T g;
  if constexpr (sizeof(T) == 4) {
    g = Polynomial<T>(q, 1.232995134f, -0.1396210588f, 0.01537752389f, 0.0680932213f,
                      -0.1009939619f, 0.09382031189f, -0.06661387865f, 0.03643504768f,
                      -0.015944368f, 0.006949390099f, 0.0008564457804f);
  } else {
    g = Polynomial<T>(q, 1.2329951186255525, -0.13962111684056289, 0.015379652102620741,
                      0.068097054254737324, -0.10103906603635213, 0.093732834996794116,
                      -0.066330365811529384, 0.037167515562492866, -0.016197734059115007,
                      0.0050319697558954261, -0.00075777334141333004, -0.00019925550755614952,
                      0.00015062224394830299, -2.4403169244974075e-5, -1.1224789135154701e-5,
                      5.7178872846321852e-6, 3.0135049944875395e-7, -8.3516196886968471e-7,
                      6.2707271571983109e-8, 1.1534943745754157e-7, -7.7154186144178301e-9,
                      -1.3670989863347382e-8, -1.8206098680308683e-9);
  }
  // a^2 in two parts: the square of a's upper half is exact.
  constexpr U kHalfUlp = U{1} << (FloatTraits<T>::kHalfBits - 1);
  const T upper = std::bit_cast<T>((Bits(a) + kHalfUlp) & ~(2 * kHalfUlp - 1));
  const ExpParts<T> parts(-(upper * upper), (upper - a) * (upper + a));
  // Away from denormal numbers, which would be 0.
  const T power = parts.Power(-32);
  const T y = (power + power * parts.p) * (g / (1 + 2 * a)) * T(0x1p-32);
  return x > kMost ? T(0) : y;
}

struct VectorErfcOp {
  template <typename T>
  static T Run(T x) {
    const T y = ErfcOfPositive(std::abs(x));
    return x < 0 ? 2 - y : y;
  }
};

struct VectorErfOp {
  static constexpr double kMost = 1;
  static double Run(double x) {
    return x * Polynomial<double>(
                   x * x, 1.1283791670955126, -0.3761263890318354, 0.11283791670945006,
                   -0.02686617064323777, 0.0052239776071164227, -0.00085483259753896921,
                   0.00012055294904839708, -1.492473690741966e-5, 1.6447424703317362e-6,
                   -1.6208483801871706e-7, 1.3720064546777686e-8, -7.7958988270021422e-10);
  }
  static double Beyond(double x) { return WithSignOf(1 - ErfcOfPositive(std::abs(x)), x); }
};

// FDLIBM's sine and cosine for float, computed in double, of x + quarters * pi / 2; |x| is at most
// kSineMost.
constexpr float kSineMost = 2e8f;
struct SineAndCosine {
  double sine, cosine;
  uint64_t quarter;

  [[gnu::always_inline]] explicit SineAndCosine(float value) {
    const double x = value;
    const double shifted = x * 0.63661977236758134308 + FloatTraits<double>::kMagic;
    const double k = shifted - FloatTraits<double>::kMagic;
    quarter = Bits(shifted);
    const double r = (x - k * 1.57079631090164184570) - k * 1.58932547735281966916e-08;
    const double z = r * r;
    sine = r + r * z *
                   Polynomial<double>(z, -0.166666666416265235595, 0.0083333293858894631756,
                                      -0.000198393348360966317347, 0.0000027183114939898219064);
    cosine = 1 + z * Polynomial<double>(z, -0.499999997251031003120, 0.0416666233237390631894,
                                        -0.00138867637746099294692, 0.0000243904487962774090654);
  }
};
inline float SineOfDouble(float value, uint64_t quarters) {
  const SineAndCosine of(value);
  const uint64_t quarter = of.quarter + quarters;
  const double y = (quarter & 1) != 0 ? of.cosine : of.sine;
  return static_cast<float>(std::bit_cast<double>(Bits(y) ^ ((quarter & 2) << 62)));
}
struct VectorSinOp {
  static constexpr float kMost = kSineMost;
  static float Run(float x) { return x == 0 ? x : SineOfDouble(x, 0); }
  static float Beyond(float x) { return static_cast<float>(std::sin(static_cast<double>(x))); }
};
struct VectorCosOp {
  static constexpr float kMost = kSineMost;
  static float Run(float x) { return SineOfDouble(x, 1); }
  static float Beyond(float x) { return static_cast<float>(std::cos(static_cast<double>(x))); }
};

// The same of double, by FDLIBM's polynomials. pi / 2 is in three parts of 33 bits, whose products
// with the number of quarters are exact.
constexpr double kWideSineMost = 8e5;
inline double WideSine(double x, uint64_t quarters) {
  const double shifted = x * 0.63661977236758134308 + FloatTraits<double>::kMagic;
  const double k = shifted - FloatTraits<double>::kMagic;
  const uint64_t quarter = Bits(shifted) + quarters;
  const double a = x - k * 1.57079632673412561417, b = k * 6.07710050630396597660e-11;
  const double c = a - b;
  const double rest = k * 2.02226624879595063154e-21 - ((a - c) - b);
  const double r = c - rest, lost = (c - r) - rest;
  const double z = r * r, half = 0.5 * z;
  const double s = Polynomial<double>(z, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
                                      2.75573137070700676789e-06, -2.50507602534068634195e-08,
                                      1.58969099521155010221e-10);
  const double sine =
      r - ((z * (0.5 * lost - z * r * s) - lost) + z * r * 1.66666666666666324348e-01);
  const double e =
      z * Polynomial<double>(z, 4.16666666666666019037e-02, -1.38888888888741095749e-03,
                             2.48015872894767294178e-05, -2.75573143513906633035e-07,
                             2.08757232129817482790e-09, -1.13596475577881948265e-11);
  const double one = 1 - half;
  const double cosine = one + (((1 - one) - half) + (z * e - r * lost));
  const double y = (quarter & 1) != 0 ? cosine : sine;
  return std::bit_cast<double>(Bits(y) ^ ((quarter & 2) << 62));
}
struct WideSinOp {
  static constexpr double kMost = kWideSineMost;
  static double Run(double x) { return x == 0 ? x : WideSine(x, 0); }
  static double Beyond(double x) { return std::sin(x); }
};
struct WideCosOp {
  static constexpr double kMost = kWideSineMost;
  static double Run(double x) { return WideSine(x, 1); }
  static double Beyond(double x) { return std::cos(x); }
};

struct VectorTanOp {
  static constexpr float kMost = kSineMost;
  static float Run(float x) {
    const SineAndCosine of(x);
    const bool odd = (of.quarter & 1) != 0;
    const double y = (odd ? of.cosine : of.sine) / (odd ? -of.sine : of.cosine);
    return x == 0 ? x : static_cast<float>(y);
  }
  static float Beyond(float x) { return static_cast<float>(std::tan(static_cast<double>(x))); }
};

// out[i] = Op::Run(in[i]) where |in[i]| is at most Op::kMost, else Op::Beyond(in[i]), which only
// blocks with such numbers pay for.
template <typename Op, typename T>
void BoundedLoop(const void* in, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  constexpr int64_t kBlock = 512;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    bool beyond = false;
    for (int64_t i = begin; i < end; ++i) beyond |= std::abs(x[i]) > Op::kMost;
    if (beyond) {
      TROUPE_INDEPENDENT
      for (int64_t i = begin; i < end; ++i) {
        y[i] = std::abs(x[i]) > Op::kMost ? Op::Beyond(x[i]) : Op::Run(x[i]);
      }
    } else {
      TROUPE_INDEPENDENT
      for (int64_t i = begin; i < end; ++i) y[i] = Op::Run(x[i]);
    }
  }
}

}  // namespace
}  // namespace troupe::simd::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_VECTOR_FUNCTIONS_H_

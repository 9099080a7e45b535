// A function is computed for a block of numbers by plain formulas, which compilers vectorise. Where
// these give NaN, or the arguments are special, the C library's function is called, whose results
// for infinities and NaN are the standard's.
#include "kernels/simd/complex.h"

#include "kernels/simd/vector_functions.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;
using simd::BinaryFns;

// A complex number of plain formulas. `CComplex` is that of the C language.
template <typename T>
struct Parts {
  T re, im;
};
template <typename T>
struct CComplexOf;
template <>
struct CComplexOf<float> {
  typedef _Complex float Type;
};
template <>
struct CComplexOf<double> {
  typedef _Complex double Type;
};
template <typename T>
using CComplex = typename CComplexOf<T>::Type;

#define TROUPE_INLINE [[gnu::always_inline]] inline
template <typename T>
TROUPE_INLINE Parts<T> operator+(Parts<T> a, Parts<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename T>
TROUPE_INLINE Parts<T> operator-(Parts<T> a, Parts<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename T>
TROUPE_INLINE Parts<T> operator*(Parts<T> a, Parts<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename T>
TROUPE_INLINE Parts<T> operator-(Parts<T> a) {
  return {-a.re, -a.im};
}
// Squares of floats neither overflow nor vanish in double.
TROUPE_INLINE Parts<float> operator/(Parts<float> a, Parts<float> b) {
  const double ar = a.re, ai = a.im, br = b.re, bi = b.im;
  const double scale = 1 / (br * br + bi * bi);
  return {static_cast<float>((ar * br + ai * bi) * scale),
          static_cast<float>((ai * br - ar * bi) * scale)};
}
// Smith, "Algorithm 116: Complex division", 1962, with Baudin and Smith's scales: "A robust complex
// division in Scilab", 2012. As the compilers' libraries and the kernels of cards have it: only
// numerators of nearly the largest size overflow before they are divided.
TROUPE_INLINE Parts<double> operator/(Parts<double> a, Parts<double> b) {
  constexpr double kLarge = 0x1p1022, kSmall = 0x1p-900, kLeast = 0x1p-1022;
  const bool swap = std::abs(b.re) < std::abs(b.im);
  double more = swap ? b.im : b.re, less = swap ? b.re : b.im;
  double x = swap ? a.im : a.re, y = swap ? a.re : a.im;
  const bool large = std::abs(more) >= kLarge;
  const double scale = large ? 0.5 : std::abs(more) < kSmall ? 0x1p100 : 1;
  x *= scale, y *= scale, more *= scale, less *= scale;
  const double ratio = less / more, divisor = more + less * ratio;
  const bool vanishes = std::abs(ratio) < kLeast;
  const double from_y = vanishes ? less * (y / more) : y * ratio;
  const double from_x = vanishes ? less * (x / more) : x * ratio;
  const double re = (x + from_y) / divisor, im = (y - from_x) / divisor;
  return {re, swap ? -im : im};
}
template <typename T>
TROUPE_INLINE bool IsZero(Parts<T> x) {
  return (x.re == 0) & (x.im == 0);
}
template <typename T>
TROUPE_INLINE bool IsNan(Parts<T> x) {
  return (x.re != x.re) | (x.im != x.im);
}
template <typename T>
TROUPE_INLINE Parts<T> Select(bool condition, Parts<T> a, Parts<T> b) {
  return {condition ? a.re : b.re, condition ? a.im : b.im};
}
template <typename T>
TROUPE_INLINE Parts<T> Conj(Parts<T> x) {
  return {x.re, -x.im};
}
// A real number, as complex as `like`.
template <typename T>
TROUPE_INLINE Parts<T> Real(Parts<T> like, float value) {
  (void)like;
  return {T(value), 0};
}

template <typename T>
TROUPE_INLINE CComplex<T> ToC(Parts<T> x) {
  CComplex<T> c;
  __real__ c = x.re;
  __imag__ c = x.im;
  return c;
}
template <typename C>
TROUPE_INLINE C Conj(C x) {
  return ~x;
}
template <typename C>
TROUPE_INLINE bool IsZero(C x) {
  return x == 0;
}
template <typename C>
TROUPE_INLINE C Select(bool condition, C a, C b) {
  return condition ? a : b;
}
template <typename C>
TROUPE_INLINE C Real(C like, float value) {
  like = value;
  return like;
}

// --- binary: `Run` is the formula of either kind of number ------------------------------------

#define TROUPE_COMPLEX_BINARY(NAME, FORMULA) \
  struct NAME {                              \
    template <typename C>                    \
    TROUPE_INLINE static C Run(C a, C b) {   \
      return FORMULA;                        \
    }                                        \
  };
TROUPE_COMPLEX_BINARY(MulOp, a* b)
TROUPE_COMPLEX_BINARY(DivOp, a / b)
TROUPE_COMPLEX_BINARY(DivNoNanOp, Select(IsZero(b), Real(a, 0), a / b))
TROUPE_COMPLEX_BINARY(SquaredDifferenceOp, (a - b) * Conj(a - b))
// Gradients, of y and dy.
TROUPE_COMPLEX_BINARY(TanhGradOp, b*(Real(a, 1) - a * a))
TROUPE_COMPLEX_BINARY(SigmoidGradOp, b* a*(Real(a, 1) - a))
TROUPE_COMPLEX_BINARY(SqrtGradOp, Select(IsZero(b), b, Real(a, 0.5f) * b / Conj(a)))
TROUPE_COMPLEX_BINARY(RsqrtGradOp,
                      Select(IsZero(b), b, Real(a, -0.5f) * (b * Conj(a)) * (Conj(a) * Conj(a))))
TROUPE_COMPLEX_BINARY(InvGradOp, -Conj(a) * b * Conj(a))
#undef TROUPE_COMPLEX_BINARY

constexpr int64_t kBlock = 256;

template <typename Op, typename T, bool kScalarA, bool kScalarB>
uint32_t BinaryLoop(const void* a, const void* b, void* out, int64_t n) {
  const auto* x = static_cast<const Parts<T>*>(a);
  const auto* y = static_cast<const Parts<T>*>(b);
  auto* z = static_cast<Parts<T>*>(out);
  if (n == 0) return 0;
  const Parts<T> x0 = *x, y0 = *y;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = n - begin < kBlock ? n - begin : kBlock;
    Parts<T> result[kBlock];
    typename FloatTraits<T>::U nan = 0;
    for (int64_t i = 0; i < m; ++i) {
      result[i] = Op::Run(kScalarA ? x0 : x[begin + i], kScalarB ? y0 : y[begin + i]);
      nan |= IsNan(result[i]);
    }
    if (nan != 0) {
      for (int64_t i = 0; i < m; ++i) {
        if (!IsNan(result[i])) continue;
        const CComplex<T> careful =
            Op::Run(ToC(kScalarA ? x0 : x[begin + i]), ToC(kScalarB ? y0 : y[begin + i]));
        result[i] = {__real__ careful, __imag__ careful};
      }
    }
    __builtin_memcpy(z + begin, result, m * sizeof(Parts<T>));
  }
  return 0;
}

template <typename Op, typename T>
constexpr BinaryFns FormsOf() {
  return {BinaryLoop<Op, T, false, false>, BinaryLoop<Op, T, true, false>,
          BinaryLoop<Op, T, false, true>};
}

// --- unary: `Run` is for numbers that are not `IsSpecial`, which `Careful` is for --------------

// The exponent of a normal number, and the power of 2 that makes its own 0.
struct Scale {
  double exponent, factor;
  TROUPE_INLINE explicit Scale(double largest) {
    using B = FloatTraits<double>;
    const uint64_t biased = Bits(largest) >> B::kMantissa;
    exponent = std::bit_cast<double>(biased | B::kTwoToMantissa) -
               (std::bit_cast<double>(B::kTwoToMantissa) + B::kBias);
    factor = std::bit_cast<double>((uint64_t{2 * B::kBias} - biased) << B::kMantissa);
  }
};

// Whether the sum of the squares is a normal number, in double.
template <typename T>
TROUPE_INLINE bool IsModerate(Parts<T> x) {
  const T re = std::abs(x.re), im = std::abs(x.im), most = re > im ? re : im;
  constexpr T kLeast = sizeof(T) == 4 ? T(std::numeric_limits<float>::min()) : T(1e-140);
  constexpr T kMost = sizeof(T) == 4 ? std::numeric_limits<T>::max() : T(1e140);
  return (most >= kLeast) & (most <= kMost) & !IsNan(x);
}

// x * x - square, where `square` is x * x rounded.
TROUPE_INLINE double LostInSquare(double x, double square) {
#if defined(__FMA__)
  return std::fma(x, x, -square);
#else  // Dekker: of halves the products are exact.
  const uint64_t low = (uint64_t{1} << FloatTraits<double>::kHalfBits) - 1;
  const double high = std::bit_cast<double>(Bits(x) & ~low), rest = x - high;
  return ((high * high - square) + 2 * high * rest) + rest * rest;
#endif
}

// log |x| of a moderate number.
TROUPE_INLINE double LogOfSize(double re, double im) {
  const double a = std::abs(re), b = std::abs(im);
  const double more = a > b ? a : b, less = a > b ? b : a;
  const double square = more * more, other = less * less, sum = square + other;
  // Near 1 what is lost in the squares counts.
  const bool near = (sum > 0.5) & (sum < 2);
  const double lost = LostInSquare(more, square) + LostInSquare(less, other);
  const Scale scale(more);
  const double m = more * scale.factor, l = less * scale.factor;
  const double beyond = near ? ((square - 1) + other) + lost : (m - 1) * (m + 1) + l * l;
  return 0.5 * VectorLog1pOp::Run(beyond) + (near ? 0 : scale.exponent) * 0.69314718055994530942;
}
TROUPE_INLINE double Size(double re, double im) { return std::sqrt(re * re + im * im); }

struct LogOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    return {static_cast<T>(LogOfSize(x.re, x.im)), VectorAtan2Op::Run(x.im, x.re)};
  }
  template <typename T>
  TROUPE_INLINE static bool IsSpecial(Parts<T> x) {
    return !IsModerate(x);
  }
  static CComplex<float> Careful(CComplex<float> x) { return __builtin_clogf(x); }
  static CComplex<double> Careful(CComplex<double> x) { return __builtin_clog(x); }
};

struct SqrtOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    const double re = x.re, im = x.im;
    const double more = std::sqrt((std::abs(re) + Size(re, im)) * 0.5), less = im * 0.5 / more;
    const bool left = re < 0;
    return {static_cast<T>(left ? std::abs(less) : more),
            static_cast<T>(left ? WithSignOf(more, im) : less)};
  }
  template <typename T>
  TROUPE_INLINE static bool IsSpecial(Parts<T> x) {
    return !IsModerate(x);
  }
  static CComplex<float> Careful(CComplex<float> x) { return __builtin_csqrtf(x); }
  static CComplex<double> Careful(CComplex<double> x) { return __builtin_csqrt(x); }
};

struct RsqrtOp : SqrtOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    return Parts<T>{1, 0} / SqrtOp::Run(x);
  }
  template <typename C>
  static C Careful(C x) {
    return Real(x, 1) / SqrtOp::Careful(x);
  }
};

struct SignOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    const double scale = 1 / Size(x.re, x.im);
    return {static_cast<T>(x.re * scale), static_cast<T>(x.im * scale)};
  }
  template <typename T>
  TROUPE_INLINE static bool IsSpecial(Parts<T> x) {
    return !IsModerate(x);
  }
  static double SizeOf(CComplex<double> x) { return __builtin_cabs(x); }
  static float SizeOf(CComplex<float> x) { return __builtin_cabsf(x); }
  template <typename C>
  static C Careful(C x) {
    const auto size = SizeOf(x);
    if (size == 0) return 0;
    __real__ x /= size;
    __imag__ x /= size;
    return x;
  }
};

struct InvOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    return Parts<T>{1, 0} / x;
  }
  template <typename T>
  TROUPE_INLINE static bool IsSpecial(Parts<T> x) {
    return !IsModerate(x);
  }
  template <typename C>
  static C Careful(C x) {
    return Real(x, 1) / x;
  }
};

struct SquareOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    return x * x;
  }
  template <typename T>
  TROUPE_INLINE static bool IsSpecial(Parts<T> x) {
    return IsNan(x * x);
  }
  template <typename C>
  static C Careful(C x) {
    return x * x;
  }
};

// Kahan's form, accurate near 0.
struct Log1pOp {
  template <typename T>
  TROUPE_INLINE static Parts<T> Run(Parts<T> x) {
    const Parts<T> one{1, 0}, u = one + x;
    const Parts<T> log = LogOp::Run(u);
    const Parts<T> y = x * (log / (u - one));
    const bool lost = (u.re == 1) & (u.im == 0);
    const bool large = (u.re == x.re) & (u.im == x.im);
    return Select(lost, x, Select(large, log, y));
  }
  template <typename T>
  TROUPE_INLINE static bool IsSpecial(Parts<T> x) {
    return !IsModerate(Parts<T>{1, 0} + x);
  }
  template <typename C>
  static C Careful(C x) {
    return LogOp::Careful(Real(x, 1) + x);
  }
};

struct ExpOp {
  static constexpr float kMost = 85;
  TROUPE_INLINE static Parts<float> Run(Parts<float> x) {
    const ExpParts<float> parts(x.re);
    const float half = parts.Power(1), size = 2 * (half + half * parts.p);
    return {size * VectorCosOp::Run(x.im), size * VectorSinOp::Run(x.im)};
  }
  TROUPE_INLINE static bool IsSpecial(Parts<float> x) {
    const float re = std::abs(x.re), im = std::abs(x.im);
    return !((re < kMost) & (im <= kSineMost));
  }
  static CComplex<float> Careful(CComplex<float> x) { return __builtin_cexpf(x); }
};
struct SigmoidOp : ExpOp {
  TROUPE_INLINE static Parts<float> Run(Parts<float> x) {
    const Parts<float> one{1, 0};
    return one / (ExpOp::Run({-x.re, -x.im}) + one);
  }
  static CComplex<float> Careful(CComplex<float> x) { return 1.0f / (ExpOp::Careful(-x) + 1.0f); }
};

template <typename Op, typename T>
void UnaryLoop(const void* in, void* out, int64_t n) {
  const auto* x = static_cast<const Parts<T>*>(in);
  auto* y = static_cast<Parts<T>*>(out);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = n - begin < kBlock ? n - begin : kBlock;
    T re[kBlock], im[kBlock], to_re[kBlock], to_im[kBlock];
    typename FloatTraits<T>::U special = 0;
    for (int64_t i = 0; i < m; ++i) {
      re[i] = x[begin + i].re;
      im[i] = x[begin + i].im;
    }
    for (int64_t i = 0; i < m; ++i) special |= Op::IsSpecial(Parts<T>{re[i], im[i]});
    for (int64_t i = 0; i < m; ++i) {
      const Parts<T> result = Op::Run(Parts<T>{re[i], im[i]});
      to_re[i] = result.re;
      to_im[i] = result.im;
    }
    for (int64_t i = 0; i < m; ++i) y[begin + i] = {to_re[i], to_im[i]};
    if (special == 0) continue;
    for (int64_t i = 0; i < m; ++i) {
      const Parts<T> number{re[i], im[i]};
      if (!Op::IsSpecial(number)) continue;
      const CComplex<T> careful = Op::Careful(ToC(number));
      y[begin + i] = {__real__ careful, __imag__ careful};
    }
  }
}

template <typename T>
void Fill(ComplexFunctions* functions) {
  simd::UnaryFn* unary = functions->unary;
  unary[simd::kInv] = UnaryLoop<InvOp, T>;
  unary[simd::kLog] = UnaryLoop<LogOp, T>;
  unary[simd::kLog1p] = UnaryLoop<Log1pOp, T>;
  unary[simd::kRsqrt] = UnaryLoop<RsqrtOp, T>;
  unary[simd::kSign] = UnaryLoop<SignOp, T>;
  unary[simd::kSqrt] = UnaryLoop<SqrtOp, T>;
  unary[simd::kSquare] = UnaryLoop<SquareOp, T>;
  BinaryFns* binary = functions->binary;
  binary[simd::kMul] = FormsOf<MulOp, T>();
  binary[simd::kDiv] = FormsOf<DivOp, T>();
  binary[simd::kDivNoNan] = FormsOf<DivNoNanOp, T>();
  binary[simd::kSquaredDifference] = FormsOf<SquaredDifferenceOp, T>();
  binary[simd::kTanhGrad] = FormsOf<TanhGradOp, T>();
  binary[simd::kSigmoidGrad] = FormsOf<SigmoidGradOp, T>();
  binary[simd::kSqrtGrad] = FormsOf<SqrtGradOp, T>();
  binary[simd::kRsqrtGrad] = FormsOf<RsqrtGradOp, T>();
  binary[simd::kInvGrad] = FormsOf<InvGradOp, T>();
}

}  // namespace

void FillFloatComplex(ComplexFunctions* functions) {
  Fill<float>(functions);
  functions->unary[simd::kExp] = UnaryLoop<ExpOp, float>;
  functions->unary[simd::kSigmoid] = UnaryLoop<SigmoidOp, float>;
}
void FillDoubleComplex(ComplexFunctions* functions) { Fill<double>(functions); }

}  // namespace troupe::TROUPE_ISA

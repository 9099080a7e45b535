/// Element-wise operations as functors, for loops that the compiler vectorises.
///
/// Included by code that is compiled for several instruction sets: everything is in an unnamed
/// namespace inside the variant's, so that nothing can be merged across variants. TROUPE_ISA names
/// the variant.
#ifndef TROUPE_KERNELS_SIMD_SCALAR_OPS_H_
#define TROUPE_KERNELS_SIMD_SCALAR_OPS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/simd/independent.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

// Integer arithmetic wraps around: it is done unsigned, at least 32 bits wide.
template <typename T, bool = std::is_integral_v<T>>
struct WrapType {
  using type = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
};
template <typename T>
struct WrapType<T, false> {
  using type = T;
};
template <typename T>
using Wrap = typename WrapType<T>::type;

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T>;

// --- unary ---

struct NegOp {
  template <typename T>
  static T Run(T x) {
    if constexpr (kIsInteger<T>) {
      return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(x));
    } else {
      return -x;
    }
  }
};
struct AbsOp {
  template <typename T>
  static T Run(T x) {
    if constexpr (kIsInteger<T>) {
      return x < 0 ? NegOp::Run(x) : x;
    } else {
      return std::abs(x);
    }
  }
};
struct SignOp {
  template <typename T>
  static T Run(T x) {
    if constexpr (kIsInteger<T>) {
      return static_cast<T>((x > T(0)) - (x < T(0)));
    } else {
      const T sign = static_cast<T>(x > T(0)) - static_cast<T>(x < T(0));
      return x != x ? x : sign;
    }
  }
};
struct SquareOp {
  template <typename T>
  static T Run(T x) {
    return static_cast<T>(static_cast<Wrap<T>>(x) * static_cast<Wrap<T>>(x));
  }
};
struct SqrtOp {
  template <typename T>
  static T Run(T x) {
    return std::sqrt(x);
  }
};
struct RsqrtOp {
  template <typename T>
  static T Run(T x) {
    return T(1) / std::sqrt(x);
  }
};
struct InvOp {
  template <typename T>
  static T Run(T x) {
    return T(1) / x;
  }
};
struct FloorOp {
  template <typename T>
  static T Run(T x) {
    return std::floor(x);
  }
};
struct CeilOp {
  template <typename T>
  static T Run(T x) {
    return std::ceil(x);
  }
};
struct RintOp {
  template <typename T>
  static T Run(T x) {
    if constexpr (kIsInteger<T>) {
      return x - x;  // What TensorFlow's Round gives for integers.
    } else {
      return std::rint(x);
    }
  }
};
struct IsNanOp {
  template <typename T>
  static bool Run(T x) {
    return x != x;
  }
};
struct IsInfOp {
  template <typename T>
  static bool Run(T x) {
    return std::abs(x) == std::numeric_limits<T>::infinity();
  }
};
struct IsFiniteOp {
  template <typename T>
  static bool Run(T x) {
    return std::abs(x) <= std::numeric_limits<T>::max();
  }
};
struct ReluOp {
  template <typename T>
  static T Run(T x) {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6Op {
  template <typename T>
  static T Run(T x) {
    const T low = x < T(0) ? T(0) : x;
    return low > T(6) ? T(6) : low;
  }
};
struct SoftsignOp {
  template <typename T>
  static T Run(T x) {
    return x / (T(1) + std::abs(x));
  }
};

// --- binary ---

struct AddOp {
  template <typename T>
  static T Run(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
};
struct SubOp {
  template <typename T>
  static T Run(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  }
};
struct MulOp {
  template <typename T>
  static T Run(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  }
};
// Operations on integers that may have no result set `*error`.

// Neither 0 nor -1, with which a division traps; by 1 it leaves as little as by -1.
template <typename T>
T SafeDivisor(T b) {
  const bool unsafe = (b == T(0)) | (std::is_signed_v<T> & (b == static_cast<T>(-1)));
  return unsafe ? T(1) : b;
}
// a / b for a safe b. Quotients of floats with more bits than a has are never rounded across a
// whole number, and vectorised.
template <typename T>
T WholeQuotient(T a, T b) {
  if constexpr (sizeof(T) < 4) {
    return static_cast<T>(static_cast<int32_t>(static_cast<float>(a) / static_cast<float>(b)));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(static_cast<double>(a) / static_cast<double>(b));
  } else {
    return a / b;
  }
}

struct DivOp {
  template <typename T>
  static T Run(T a, T b) {
    return a / b;
  }
  template <typename T>
  static T Run(T a, T b, uint32_t* error) {
    *error |= b == T(0);
    const T quotient = WholeQuotient(a, SafeDivisor(b));
    if constexpr (std::is_signed_v<T>) {
      return b == T(-1) ? NegOp::Run(quotient) : quotient;  // The lowest value wraps around.
    }
    return quotient;
  }
};
struct TruncateDivOp {
  template <typename T>
  static T Run(T a, T b) {
    return std::trunc(a / b);
  }
  template <typename T>
  static T Run(T a, T b, uint32_t* error) {
    return DivOp::Run(a, b, error);
  }
};
struct FloorDivOp {
  template <typename T>
  static T Run(T a, T b) {
    return std::floor(a / b);
  }
  template <typename T>
  static T Run(T a, T b, uint32_t* error) {
    const T quotient = DivOp::Run(a, b, error);
    if constexpr (std::is_signed_v<T>) {
      const bool above = ((a < 0) != (b < 0)) & (MulOp::Run(quotient, b) != a);
      return SubOp::Run(quotient, static_cast<T>(above));
    }
    return quotient;
  }
};
// std::fmod. What is left of a quotient below 2^53 is exact where it is rounded once; quotients of
// floats below 2^28 are exact in double.
inline double Remainder(double a, double b) {
#if defined(__FMA__)
  const double x = std::abs(a), y = std::abs(b);
  if (x < y * 0x1p53 && y <= 0x1p960) {
    double rest = std::fma(-std::trunc(x / y), y, x);
    rest = rest < 0 ? rest + y : rest;  // The quotient was rounded up to a whole number.
    return std::copysign(rest, a);
  }
#endif
  return std::fmod(a, b);
}
inline float Remainder(float a, float b) {
  const double x = std::abs(a), y = std::abs(b);
  if (!(x < y * 0x1p28) || y > std::numeric_limits<float>::max()) return std::fmod(a, b);
  double rest = x - static_cast<double>(static_cast<int32_t>(x / y)) * y;
  rest = rest < 0 ? rest + y : rest;
  return std::copysign(static_cast<float>(rest), a);
}
struct ModOp {
  template <typename T>
  static T Run(T a, T b) {
    return Remainder(a, b);
  }
  template <typename T>
  static T Run(T a, T b, uint32_t* error) {
    *error |= b == T(0);
    const T divisor = SafeDivisor(b);
    return SubOp::Run(a, MulOp::Run(WholeQuotient(a, divisor), divisor));
  }
};
struct FloorModOp {
  template <typename T>
  static T Run(T a, T b) {
    const T rest = Remainder(a, b);
    return rest != T(0) && ((b < T(0)) != (rest < T(0))) ? rest + b : rest;
  }
  template <typename T>
  static T Run(T a, T b, uint32_t* error) {
    const T rest = ModOp::Run(a, b, error);
    if constexpr (std::is_signed_v<T>) {
      const bool other_side = (rest != 0) & ((b < 0) != (rest < 0));
      return AddOp::Run(rest, other_side ? b : T(0));
    }
    return rest;
  }
};
struct DivNoNanOp {
  template <typename T>
  static T Run(T a, T b) {
    return b == T(0) ? T(0) : a / b;
  }
};
// NaN in either operand is the result.
struct MaximumOp {
  template <typename T>
  static T Run(T a, T b) {
    if constexpr (kIsInteger<T>) {
      return a > b ? a : b;
    } else {
      const T larger = a > b ? a : b;  // b if either is NaN
      return a != a ? a : larger;
    }
  }
};
struct MinimumOp {
  template <typename T>
  static T Run(T a, T b) {
    if constexpr (kIsInteger<T>) {
      return a < b ? a : b;
    } else {
      const T smaller = a < b ? a : b;
      return a != a ? a : smaller;
    }
  }
};
struct SquaredDifferenceOp {
  template <typename T>
  static T Run(T a, T b) {
    return SquareOp::Run(SubOp::Run(a, b));
  }
};
struct LessOp {
  template <typename T>
  static bool Run(T a, T b) {
    return a < b;
  }
};
struct LessEqualOp {
  template <typename T>
  static bool Run(T a, T b) {
    return a <= b;
  }
};
struct GreaterOp {
  template <typename T>
  static bool Run(T a, T b) {
    return a > b;
  }
};
struct GreaterEqualOp {
  template <typename T>
  static bool Run(T a, T b) {
    return a >= b;
  }
};
struct EqualOp {
  template <typename T>
  static bool Run(const T& a, const T& b) {
    return a == b;
  }
};
struct NotEqualOp {
  template <typename T>
  static bool Run(const T& a, const T& b) {
    return a != b;
  }
};

// --- gradients ---

struct TanhGradOp {
  template <typename T>
  static T Run(T y, T dy) {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGradOp {
  template <typename T>
  static T Run(T y, T dy) {
    return dy * y * (T(1) - y);
  }
};
struct SqrtGradOp {
  template <typename T>
  static T Run(T y, T dy) {
    return dy == T(0) ? T(0) : T(0.5) * dy / y;
  }
};
struct RsqrtGradOp {
  template <typename T>
  static T Run(T y, T dy) {
    return dy == T(0) ? T(0) : T(-0.5) * dy * (y * y * y);
  }
};
struct InvGradOp {
  template <typename T>
  static T Run(T y, T dy) {
    return -dy * y * y;
  }
};
struct ReluGradOp {
  template <typename T>
  static T Run(T g, T x) {
    return g * static_cast<T>(x > T(0));  // A product: NaN stays NaN.
  }
};
struct Relu6GradOp {
  template <typename T>
  static T Run(T g, T x) {
    return g * static_cast<T>((x > T(0)) & (x < T(6)));
  }
};
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;
struct EluGradOp {
  template <typename T>
  static T Run(T g, T y) {
    return y < T(0) ? (y + T(1)) * g : g;
  }
};
struct SeluGradOp {
  template <typename T>
  static T Run(T g, T y) {
    return y < T(0) ? g * (y + static_cast<T>(kSeluScaleAlpha)) : g * static_cast<T>(kSeluScale);
  }
};
struct SoftsignGradOp {
  template <typename T>
  static T Run(T g, T x) {
    const T d = T(1) + std::abs(x);
    return g / (d * d);
  }
};

// --- loops; results may replace operands ---

template <typename Op, typename T>
void UnaryLoop(const void* in, void* out, int64_t n) {
  using R = decltype(Op::Run(T()));
  const T* x = static_cast<const T*>(in);
  R* y = static_cast<R*>(out);
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = Op::Run(x[i]);
}

template <typename Op, typename T, bool kScalarA, bool kScalarB>
uint32_t BinaryLoop(const void* a, const void* b, void* out, int64_t n) {
  using R = decltype(Op::Run(T(), T()));
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  const T x0 = kScalarA ? x[0] : T(), y0 = kScalarB ? y[0] : T();
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) z[i] = Op::Run(kScalarA ? x0 : x[i], kScalarB ? y0 : y[i]);
  return 0;
}

template <typename Op, typename T, bool kScalarA, bool kScalarB>
uint32_t CheckedBinaryLoop(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  const T x0 = kScalarA ? x[0] : T(), y0 = kScalarB ? y[0] : T();
  uint32_t error = 0;
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    z[i] = Op::Run(kScalarA ? x0 : x[i], kScalarB ? y0 : y[i], &error);
  return error;
}

/// Powers of integers, many at once: no branch depends on a bit of one exponent. That of a negative
/// one is an error, and 0.
template <typename T, bool kScalarA, bool kScalarB>
uint32_t IntegerPowLoop(const void* a, const void* b, void* out, int64_t n) {
  using U = std::make_unsigned_t<T>;
  constexpr int kMany = 32;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  uint32_t error = 0;
  for (int64_t at = 0; at < n; at += kMany) {
    const int count = n - at < kMany ? static_cast<int>(n - at) : kMany;
    T power[kMany] = {}, result[kMany];
    U rest[kMany] = {}, any = 0;
    for (int i = 0; i < count; ++i) {
      power[i] = x[kScalarA ? 0 : at + i];
      rest[i] = static_cast<U>(y[kScalarB ? 0 : at + i]);
    }
    for (int i = 0; i < kMany; ++i) {
      const bool negative = std::is_signed_v<T> && static_cast<T>(rest[i]) < 0;
      error |= negative;
      result[i] = negative ? T(0) : T(1);
      if (negative) rest[i] = 0;
      any |= rest[i];
    }
    for (; any != 0; any >>= 1) {
      for (int i = 0; i < kMany; ++i) {
        result[i] = MulOp::Run(result[i], (rest[i] & 1) != 0 ? power[i] : T(1));
        power[i] = MulOp::Run(power[i], power[i]);
        rest[i] >>= 1;
      }
    }
    for (int i = 0; i < count; ++i) z[at + i] = result[i];
  }
  return error;
}

template <typename Op, typename T>
constexpr BinaryFns Forms() {
  return {BinaryLoop<Op, T, false, false>, BinaryLoop<Op, T, true, false>,
          BinaryLoop<Op, T, false, true>};
}
template <typename Op, typename T>
constexpr BinaryFns CheckedForms() {
  return {CheckedBinaryLoop<Op, T, false, false>, CheckedBinaryLoop<Op, T, true, false>,
          CheckedBinaryLoop<Op, T, false, true>};
}
template <typename Op, typename T>
constexpr BinaryFns GradForm() {
  return {BinaryLoop<Op, T, false, false>, nullptr, nullptr};
}

// The functions of integers, by op; others are left as they are.
template <typename T>
void FillIntegerUnary(UnaryFn* fns) {
  fns[kNeg] = UnaryLoop<NegOp, T>;
  fns[kAbs] = UnaryLoop<AbsOp, T>;
  fns[kSign] = UnaryLoop<SignOp, T>;
  fns[kSquare] = UnaryLoop<SquareOp, T>;
  fns[kRelu] = UnaryLoop<ReluOp, T>;
  fns[kRelu6] = UnaryLoop<Relu6Op, T>;
}
template <typename T>
void FillIntegerBinary(BinaryFns* fns) {
  fns[kAdd] = Forms<AddOp, T>();
  fns[kSub] = Forms<SubOp, T>();
  fns[kMul] = Forms<MulOp, T>();
  fns[kDiv] = CheckedForms<DivOp, T>();
  fns[kTruncateDiv] = fns[kDiv];
  fns[kFloorDiv] = CheckedForms<FloorDivOp, T>();
  fns[kFloorMod] = CheckedForms<FloorModOp, T>();
  fns[kMod] = CheckedForms<ModOp, T>();
  fns[kMaximum] = Forms<MaximumOp, T>();
  fns[kMinimum] = Forms<MinimumOp, T>();
  fns[kPow] = {IntegerPowLoop<T, false, false>, IntegerPowLoop<T, true, false>,
               IntegerPowLoop<T, false, true>};
  fns[kSquaredDifference] = Forms<SquaredDifferenceOp, T>();
  fns[kLess] = Forms<LessOp, T>();
  fns[kLessEqual] = Forms<LessEqualOp, T>();
  fns[kGreater] = Forms<GreaterOp, T>();
  fns[kGreaterEqual] = Forms<GreaterEqualOp, T>();
  fns[kEqual] = Forms<EqualOp, T>();
  fns[kNotEqual] = Forms<NotEqualOp, T>();
  fns[kReluGrad] = GradForm<ReluGradOp, T>();
  fns[kRelu6Grad] = GradForm<Relu6GradOp, T>();
}

}  // namespace
}  // namespace troupe::simd::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_SCALAR_OPS_H_

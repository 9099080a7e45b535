// Element-wise functions of complex numbers.
#include <cmath>
#include <complex>

#include "kernels/math/loops.h"

namespace troupe::internal {
namespace {

using simd::BinaryFns;
using simd::BinaryOp;
using simd::UnaryFn;
using simd::UnaryOp;

template <typename T, auto F>
void UnaryLoop(const void* in, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = F(x[i]);
}

template <typename T, typename R, auto F, int kStepA, int kStepB>
uint32_t BinaryLoop(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) z[i] = F(x[i * kStepA], y[i * kStepB]);
  return 0;
}
template <typename T, typename R, auto F>
constexpr BinaryFns FormsOf() {
  return {BinaryLoop<T, R, F, 1, 1>, BinaryLoop<T, R, F, 0, 1>, BinaryLoop<T, R, F, 1, 0>};
}

template <typename T>
T Sign(T x) {
  const auto size = std::abs(x);
  return size == 0 ? T(0) : x / size;
}

// exp(x) - 1 without cancellation near 0: with z = a + bi it is expm1(a) cos b + (cos b - 1) + i
// exp(a) sin b, and cos b - 1 = -2 sin^2(b / 2).
template <typename T>
T Expm1(T x) {
  const auto s = std::sin(x.imag() / 2);
  const auto real = std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s;
  const auto imag = x.imag() == 0 ? x.imag() : std::exp(x.real()) * std::sin(x.imag());
  return T(real, imag);
}

// Kahan's form, accurate near 0.
template <typename T>
T Log1p(T x) {
  const T u = T(1) + x;
  if (u == T(1)) return x;
  if (u == x || !std::isfinite(u.real()) || !std::isfinite(u.imag())) return std::log(u);
  return x * (std::log(u) / (u - T(1)));
}

template <typename T>
UnaryFn Unary(UnaryOp op) {
  switch (op) {
    case simd::kNeg:
      return UnaryLoop<T, [](T x) { return -x; }>;
    case simd::kSign:
      return UnaryLoop<T, Sign<T>>;
    case simd::kSquare:
      return UnaryLoop<T, [](T x) { return x * x; }>;
    case simd::kSqrt:
      return UnaryLoop<T, [](T x) { return std::sqrt(x); }>;
    case simd::kRsqrt:
      return UnaryLoop<T, [](T x) { return T(1) / std::sqrt(x); }>;
    case simd::kInv:
      return UnaryLoop<T, [](T x) { return T(1) / x; }>;
    case simd::kExp:
      return UnaryLoop<T, [](T x) { return std::exp(x); }>;
    case simd::kExpm1:
      return UnaryLoop<T, Expm1<T>>;
    case simd::kLog:
      return UnaryLoop<T, [](T x) { return std::log(x); }>;
    case simd::kLog1p:
      return UnaryLoop<T, Log1p<T>>;
    case simd::kSin:
      return UnaryLoop<T, [](T x) { return std::sin(x); }>;
    case simd::kCos:
      return UnaryLoop<T, [](T x) { return std::cos(x); }>;
    case simd::kTan:
      return UnaryLoop<T, [](T x) { return std::tan(x); }>;
    case simd::kTanh:
      return UnaryLoop<T, [](T x) { return std::tanh(x); }>;
    case simd::kSigmoid:
      return UnaryLoop<T, [](T x) { return T(1) / (std::exp(-x) + T(1)); }>;
    case simd::kConj:
      return UnaryLoop<T, [](T x) { return std::conj(x); }>;
    default:
      return nullptr;
  }
}

template <typename T>
BinaryFns Binary(BinaryOp op) {
  switch (op) {
    case simd::kAdd:
      return FormsOf<T, T, [](T a, T b) { return a + b; }>();
    case simd::kSub:
      return FormsOf<T, T, [](T a, T b) { return a - b; }>();
    case simd::kMul:
      return FormsOf<T, T, [](T a, T b) { return a * b; }>();
    case simd::kDiv:
      return FormsOf<T, T, [](T a, T b) { return a / b; }>();
    case simd::kDivNoNan:
      return FormsOf<T, T, [](T a, T b) { return b == T(0) ? T(0) : a / b; }>();
    case simd::kPow:
      return FormsOf<T, T, [](T a, T b) { return std::pow(a, b); }>();
    case simd::kSquaredDifference:  // |a - b|^2
      return FormsOf<T, T, [](T a, T b) {
        const T d = a - b;
        return d * std::conj(d);
      }>();
    case simd::kEqual:
      return FormsOf<T, bool, [](T a, T b) { return a == b; }>();
    case simd::kNotEqual:
      return FormsOf<T, bool, [](T a, T b) { return a != b; }>();
    // As TensorFlow has it, only some of the gradients conjugate; callers conjugate y for the
    // others.
    case simd::kTanhGrad:
      return FormsOf<T, T, [](T y, T dy) { return dy * (T(1) - y * y); }>();
    case simd::kSigmoidGrad:
      return FormsOf<T, T, [](T y, T dy) { return dy * y * (T(1) - y); }>();
    case simd::kSqrtGrad:
      return FormsOf<T, T,
                     [](T y, T dy) { return dy == T(0) ? T(0) : T(0.5) * dy / std::conj(y); }>();
    case simd::kRsqrtGrad:
      return FormsOf<T, T, [](T y, T dy) {
        const T c = std::conj(y);
        return dy == T(0) ? T(0) : T(-0.5) * (dy * c) * (c * c);
      }>();
    case simd::kInvGrad:
      return FormsOf<T, T, [](T y, T dy) { return -std::conj(y) * dy * std::conj(y); }>();
    default:
      return {};
  }
}

}  // namespace

UnaryFn ComplexUnary(UnaryOp op, ElementType type) {
  return type == ElementType::kComplex64 ? Unary<complex64>(op) : Unary<complex128>(op);
}

BinaryFns ComplexBinary(BinaryOp op, ElementType type) {
  return type == ElementType::kComplex64 ? Binary<complex64>(op) : Binary<complex128>(op);
}

}  // namespace troupe::internal

// Element-wise functions of complex numbers that have no code of their own per instruction set.
#include <cmath>
#include <complex>

#include "kernels/math/loops.h"
#include "kernels/simd/complex.h"

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

// exp(x) - 1 without cancellation near 0: with z = a + bi it is expm1(a) cos b + (cos b - 1) + i
// exp(a) sin b, and cos b - 1 = -2 sin^2(b / 2).
template <typename T>
T Expm1(T x) {
  const auto s = std::sin(x.imag() / 2);
  const auto real = std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s;
  const auto imag = x.imag() == 0 ? x.imag() : std::exp(x.real()) * std::sin(x.imag());
  return T(real, imag);
}

template <typename T>
void FillUnary(UnaryFn* fns) {
  fns[simd::kNeg] = UnaryLoop<T, [](T x) { return -x; }>;
  fns[simd::kExp] = UnaryLoop<T, [](T x) { return std::exp(x); }>;
  fns[simd::kExpm1] = UnaryLoop<T, Expm1<T>>;
  fns[simd::kSin] = UnaryLoop<T, [](T x) { return std::sin(x); }>;
  fns[simd::kCos] = UnaryLoop<T, [](T x) { return std::cos(x); }>;
  fns[simd::kTan] = UnaryLoop<T, [](T x) { return std::tan(x); }>;
  fns[simd::kTanh] = UnaryLoop<T, [](T x) { return std::tanh(x); }>;
  fns[simd::kSigmoid] = UnaryLoop<T, [](T x) { return T(1) / (std::exp(-x) + T(1)); }>;
  fns[simd::kConj] = UnaryLoop<T, [](T x) { return std::conj(x); }>;
}

template <typename T>
void FillBinary(BinaryFns* fns) {
  fns[simd::kAdd] = FormsOf<T, T, [](T a, T b) { return a + b; }>();
  fns[simd::kSub] = FormsOf<T, T, [](T a, T b) { return a - b; }>();
  fns[simd::kPow] = FormsOf<T, T, [](T a, T b) { return std::pow(a, b); }>();
  fns[simd::kEqual] = FormsOf<T, bool, [](T a, T b) { return a == b; }>();
  fns[simd::kNotEqual] = FormsOf<T, bool, [](T a, T b) { return a != b; }>();
}

template <typename T>
UnaryFn Unary(UnaryOp op, UnaryFn vectorized) {
  static const UnaryTable table(FillUnary<T>);
  return vectorized != nullptr ? vectorized : table.fns[op];
}

template <typename T>
BinaryFns Binary(BinaryOp op, BinaryFns vectorized) {
  static const BinaryTable table(FillBinary<T>);
  return vectorized.aa != nullptr ? vectorized : table.fns[op];
}

}  // namespace

UnaryFn ComplexUnary(UnaryOp op, ElementType type) {
  return type == ElementType::kComplex64 ? Unary<complex64>(op, FloatComplex().unary[op])
                                         : Unary<complex128>(op, DoubleComplex().unary[op]);
}

BinaryFns ComplexBinary(BinaryOp op, ElementType type) {
  return type == ElementType::kComplex64 ? Binary<complex64>(op, FloatComplex().binary[op])
                                         : Binary<complex128>(op, DoubleComplex().binary[op]);
}

}  // namespace troupe::internal

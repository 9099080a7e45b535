// Element-wise functions of complex numbers.
#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <UnaryOp kOp>
struct Unary {
  template <typename R>
  __device__ Complex<R> operator()(Complex<R> x) const {
    const R a = x.real, b = x.imag;
    if constexpr (kOp == UnaryOp::kConj) return {a, -b};
    if constexpr (kOp == UnaryOp::kCos) return {cos(a) * cosh(b), -sin(a) * sinh(b)};
    if constexpr (kOp == UnaryOp::kExp) {
      // No 0 times infinity where the number is real.
      const R size = exp(a);
      return {b == 0 ? size : size * cos(b), b == 0 ? b : size * sin(b)};
    }
    if constexpr (kOp == UnaryOp::kInv) return Complex<R>{1, 0} / x;
    if constexpr (kOp == UnaryOp::kNeg) return {-a, -b};
    if constexpr (kOp == UnaryOp::kSign) {
      const R size = hypot(a, b);
      return size == 0 ? Complex<R>{0, 0} : Complex<R>{a / size, b / size};
    }
    if constexpr (kOp == UnaryOp::kSin) return {sin(a) * cosh(b), cos(a) * sinh(b)};
    if constexpr (kOp == UnaryOp::kTan) {
      // (tan a + i tanh b) / (1 - i tan a tanh b); W. Kahan, "Branch cuts for complex elementary
      // functions", 1987. Where cosh b is too large, the limit.
      const R t = tan(a), s = sinh(b), beta = 1 + t * t, rho = sqrt(1 + s * s);
      if (fabs(b) > R(sizeof(R) == 4 ? 40 : 350)) {
        return {copysign(R(0), t), copysign(R(1), b)};
      }
      const R d = 1 + beta * s * s;
      return isinf(t) ? Complex<R>{0, rho / s} : Complex<R>{t / d, beta * rho * s / d};
    }
  }
};

template <BinaryOp kOp>
struct Binary {
  template <typename R>
  __device__ Complex<R> operator()(Complex<R> a, Complex<R> b) const {
    if constexpr (kOp == BinaryOp::kAdd) return a + b;
    if constexpr (kOp == BinaryOp::kSub) return a - b;
    if constexpr (kOp == BinaryOp::kMul) return a * b;
    if constexpr (kOp == BinaryOp::kDiv) return a / b;
    if constexpr (kOp == BinaryOp::kDivNoNan) {
      return b == Complex<R>{0, 0} ? Complex<R>{0, 0} : a / b;
    }
  }
};

template <typename Fn>
cudaError_t Run(Fn fn, Number type, const void* x, void* y, int64_t n, cudaStream_t stream) {
  return VisitComplex(type, [=](auto tag) {
    using T = Complex<typename decltype(tag)::Type>;
    return MapFlat(fn, FlatWalk(), n, stream, static_cast<T*>(y), static_cast<const T*>(x));
  });
}

template <typename Fn>
cudaError_t Run(Fn fn, Number type, const BinaryCall& call, cudaStream_t stream) {
  return VisitComplex(type, [&](auto tag) {
    using T = Complex<typename decltype(tag)::Type>;
    return MapStrided(fn, call.broadcast, call.n, stream, static_cast<T*>(call.out),
                      static_cast<const T*>(call.a), static_cast<const T*>(call.b));
  });
}

}  // namespace

cudaError_t LaunchUnaryComplex(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                               cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case UnaryOp::NAME:     \
    return Run(Unary<UnaryOp::NAME>(), type, x, y, n, stream)
    TROUPE_CASE(kConj);
    TROUPE_CASE(kCos);
    TROUPE_CASE(kExp);
    TROUPE_CASE(kInv);
    TROUPE_CASE(kNeg);
    TROUPE_CASE(kSign);
    TROUPE_CASE(kSin);
    TROUPE_CASE(kTan);
#undef TROUPE_CASE
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t LaunchBinaryComplex(BinaryOp op, Number type, const BinaryCall& call,
                                cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case BinaryOp::NAME:    \
    return Run(Binary<BinaryOp::NAME>(), type, call, stream)
    TROUPE_CASE(kAdd);
    TROUPE_CASE(kSub);
    TROUPE_CASE(kMul);
    TROUPE_CASE(kDiv);
    TROUPE_CASE(kDivNoNan);
#undef TROUPE_CASE
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda

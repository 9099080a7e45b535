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
    if constexpr (kOp == UnaryOp::kCosh) return {cosh(a) * cos(b), sinh(a) * sin(b)};
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
    if constexpr (kOp == UnaryOp::kSinh) return {sinh(a) * cos(b), cosh(a) * sin(b)};
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

template <typename R>
__device__ bool IsZero(Complex<R> x) {
  return x == Complex<R>{0, 0};
}

/// The logarithm of the size is that of 1 and something where the size is near 1, and that of half
/// the size where it may be too large.
template <typename R>
__device__ Complex<R> Log(Complex<R> x) {
  const R most = fmax(fabs(x.real), fabs(x.imag)), least = fmin(fabs(x.real), fabs(x.imag));
  R size;
  if (most > R(0.5) && most < R(1.5)) {
    size = log1p((most - 1) * (most + 1) + least * least) / 2;
  } else {
    constexpr double kLog2 = 0.69314718055994530942;
    size = most > 1 ? log(hypot(x.real / 2, x.imag / 2)) + R(kLog2) : log(hypot(x.real, x.imag));
  }
  return {size, atan2(x.imag, x.real)};
}

template <BinaryOp kOp>
struct Binary {
  template <typename R>
  __device__ Complex<R> operator()(Complex<R> a, Complex<R> b) const {
    [[maybe_unused]] constexpr Complex<R> zero{0, 0};
    if constexpr (kOp == BinaryOp::kAdd) return a + b;
    if constexpr (kOp == BinaryOp::kSub) return a - b;
    if constexpr (kOp == BinaryOp::kMul) return a * b;
    if constexpr (kOp == BinaryOp::kDiv) return a / b;
    if constexpr (kOp == BinaryOp::kDivNoNan) {
      return IsZero(b) ? zero : a / b;
    }
    if constexpr (kOp == BinaryOp::kMulNoNan) return IsZero(b) ? zero : a * b;
    if constexpr (kOp == BinaryOp::kXdivy) return IsZero(a) ? zero : a / b;
    if constexpr (kOp == BinaryOp::kXlog1py) {
      return IsZero(a) ? zero : a * Log(b + Complex<R>{1, 0});
    }
    if constexpr (kOp == BinaryOp::kXlogy) return IsZero(a) ? zero : a * Log(b);
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
    TROUPE_CASE(kCosh);
    TROUPE_CASE(kExp);
    TROUPE_CASE(kInv);
    TROUPE_CASE(kNeg);
    TROUPE_CASE(kSign);
    TROUPE_CASE(kSin);
    TROUPE_CASE(kSinh);
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
    TROUPE_CASE(kMulNoNan);
    TROUPE_CASE(kXdivy);
    TROUPE_CASE(kXlog1py);
    TROUPE_CASE(kXlogy);
#undef TROUPE_CASE
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda

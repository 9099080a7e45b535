/// Complex numbers of kernels of CUDA.
#ifndef TROUPE_KERNELS_CUDA_COMPLEX_CUH_
#define TROUPE_KERNELS_CUDA_COMPLEX_CUH_

#include "kernels/cuda/parallel.cuh"

namespace troupe::cuda {

template <typename R>
struct alignas(2 * sizeof(R)) Complex {
  R real, imag;
};

template <typename R>
__device__ R real(Complex<R> x) {
  return x.real;
}
template <typename R>
__device__ R imag(Complex<R> x) {
  return x.imag;
}
template <typename R>
__device__ Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <typename R>
__device__ Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.real - b.real, a.imag - b.imag};
}
/// 1 where a part is infinite, else 0, with their signs.
template <typename R>
__device__ Complex<R> InfiniteParts(Complex<R> x) {
  return {copysign(R(isinf(x.real) ? 1 : 0), x.real), copysign(R(isinf(x.imag) ? 1 : 0), x.imag)};
}
/// 0 where a part is NaN.
template <typename R>
__device__ Complex<R> NumericParts(Complex<R> x) {
  return {isnan(x.real) ? copysign(R(0), x.real) : x.real,
          isnan(x.imag) ? copysign(R(0), x.imag) : x.imag};
}
template <typename R>
__device__ bool IsInfinite(Complex<R> x) {
  return isinf(x.real) || isinf(x.imag);
}
template <typename R>
__device__ bool IsFinite(Complex<R> x) {
  return isfinite(x.real) && isfinite(x.imag);
}
template <typename R>
__device__ bool IsNan(Complex<R> x) {
  return isnan(x.real) && isnan(x.imag);
}
template <typename R>
__device__ Complex<R> PlainProduct(Complex<R> a, Complex<R> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
template <typename R>
__device__ Complex<R> Times(R factor, Complex<R> x) {
  return {factor * x.real, factor * x.imag};
}

// Products and quotients of infinities and zeros are those of C's Annex G (G.5.1), as the host's
// compilers have them.

/// A product of which both parts have become NaN.
template <typename R>
__device__ Complex<R> ProductOfInfinities(Complex<R> a, Complex<R> b) {
  const bool a_is = IsInfinite(a), b_is = IsInfinite(b);
  const bool overflows = isinf(a.real * b.real) || isinf(a.imag * b.imag) ||
                         isinf(a.real * b.imag) || isinf(a.imag * b.real);
  if (!a_is && !b_is && !overflows) return {R(NAN), R(NAN)};
  if (a_is) {
    a = InfiniteParts(a);
    b = NumericParts(b);
  }
  if (b_is) {
    b = InfiniteParts(b);
    a = NumericParts(a);
  }
  return Times(R(INFINITY), PlainProduct(NumericParts(a), NumericParts(b)));
}
template <typename R>
__device__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  const Complex<R> product = PlainProduct(a, b);
  return IsNan(product) ? ProductOfInfinities(a, b) : product;
}

/// A quotient of which both parts have become NaN.
template <typename R>
__device__ Complex<R> QuotientOfInfinities(Complex<R> a, Complex<R> b) {
  const auto times_conjugate = [](Complex<R> x, Complex<R> y) {
    return Complex<R>{x.real * y.real + x.imag * y.imag, x.imag * y.real - x.real * y.imag};
  };
  if (b.real == 0 && b.imag == 0 && (!isnan(a.real) || !isnan(a.imag))) {
    return Times(copysign(R(INFINITY), b.real), a);
  }
  // Of a small divisor: too large for being scaled, and so in any case.
  if (sizeof(R) == 8 && fmax(fabs(b.real), fabs(b.imag)) < R(0x1p-52)) a = Times(R(0x1p52), a);
  if (IsInfinite(a) && IsFinite(b)) {
    return Times(R(INFINITY), times_conjugate(InfiniteParts(a), b));
  }
  if (IsInfinite(b) && IsFinite(a)) {
    const R scale = sizeof(R) == 8 ? 0.5 : 1;  // As the host's compilers have it.
    return Times(R(0), times_conjugate(Times(scale, a), InfiniteParts(b)));
  }
  return {R(NAN), R(NAN)};
}
/// In double precision, where products of floats neither overflow nor vanish.
__device__ inline Complex<float> PlainQuotient(Complex<float> a, Complex<float> b) {
  const double c = b.real, d = b.imag, square = c * c + d * d;
  return {static_cast<float>((a.real * c + a.imag * d) / square),
          static_cast<float>((a.imag * c - a.real * d) / square)};
}
/// M. Baudin and R. L. Smith, "A Robust Complex Division in Scilab", arXiv:1210.4539: by the
/// ratio of the divisor's parts, with all numbers scaled where they are too large or too small.
__device__ inline Complex<double> PlainQuotient(Complex<double> a, Complex<double> b) {
  constexpr double kLarge = 0x1.fffffffffffffp1022, kEpsilon = 0x1p-52, kLeast = 0x1p-1022;
  const double size = fmax(fabs(b.real), fabs(b.imag));
  const double least = fmin(fabs(a.real), fabs(a.imag)), most = fmax(fabs(a.real), fabs(a.imag));
  double scale = 1;
  if (size >= kLarge) {
    scale = 0.5;
  } else if (size < kEpsilon ||
             (least < kLeast && most < kLarge * kEpsilon && size < kLarge * kEpsilon)) {
    scale = 1 / kEpsilon;
  }
  a = Times(scale, a);
  b = Times(scale, b);
  // (x + iy) / (c + id) for |c| >= |d|; the other way round it is that of conjugates turned by i.
  const bool turned = fabs(b.real) < fabs(b.imag);
  const double x = turned ? a.imag : a.real, y = turned ? -a.real : a.imag;
  const double c = turned ? b.imag : b.real, d = turned ? -b.real : b.imag;
  const double ratio = d / c, divisor = c + d * ratio;
  if (fabs(ratio) > kLeast) return {(x + y * ratio) / divisor, (y - x * ratio) / divisor};
  return {(x + d * (y / c)) / divisor, (y - d * (x / c)) / divisor};
}
template <typename R>
__device__ Complex<R> operator/(Complex<R> a, Complex<R> b) {
  const Complex<R> quotient = PlainQuotient(a, b);
  return IsNan(quotient) ? QuotientOfInfinities(a, b) : quotient;
}
template <typename R>
__device__ bool operator==(Complex<R> a, Complex<R> b) {
  return a.real == b.real && a.imag == b.imag;
}

/// Calls fn(TypeTag<R>()) with the type of the parts of a complex type.
template <typename Fn>
cudaError_t VisitComplex(Number type, Fn fn) {
  if (type == Number::kComplex64) return fn(TypeTag<float>());
  if (type == Number::kComplex128) return fn(TypeTag<double>());
  return cudaErrorNotSupported;
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_COMPLEX_CUH_

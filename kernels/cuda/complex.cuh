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
__device__ Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <typename R>
__device__ Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <typename R>
__device__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
/// By scaling the divisor, so that its square neither overflows nor vanishes.
template <typename R>
__device__ Complex<R> operator/(Complex<R> a, Complex<R> b) {
  const R scale = fabs(b.real) + fabs(b.imag);
  const Complex<R> x{a.real / scale, a.imag / scale}, y{b.real / scale, b.imag / scale};
  const R square = y.real * y.real + y.imag * y.imag;
  return {(x.real * y.real + x.imag * y.imag) / square,
          (x.imag * y.real - x.real * y.imag) / square};
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

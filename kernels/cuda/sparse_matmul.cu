// Products of sparse and dense matrices: a result is added up by the threads that own it.
#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/segment.cuh"
#include "kernels/cuda/sparse.h"

namespace troupe::cuda {
namespace {

template <typename W>
__device__ W Conjugate(W x, bool) {
  return x;
}
template <typename R>
__device__ Complex<R> Conjugate(Complex<R> x, bool conjugate) {
  return conjugate ? Complex<R>{x.real, -x.imag} : x;
}
template <typename W>
__device__ W Multiply(W a, W b) {
  return a * b;
}
template <typename R>
__device__ Complex<R> Multiply(Complex<R> a, Complex<R> b) {
  return PlainProduct(a, b);
}

template <typename W>
struct ProductSum : SumTerms<W> {
  __device__ W Start() const {
    if constexpr (std::is_arithmetic_v<W>) {
      return W(0);
    } else {
      return W{0, 0};
    }
  }
};

template <typename T>
struct ProductTerms {
  using W = WideType<T>;
  __device__ W operator()(int64_t r, int64_t column) const {
    const int64_t place = product.places[r];
    const int64_t inner = IndexAt(product.indices, 2 * place + (product.adjoint ? 0 : 1));
    if (inner < 0 || inner >= product.inner) {
      ReportLate(check, place, inner, product.inner);
      return ProductSum<W>().Start();
    }
    const W a = static_cast<W>(static_cast<const T*>(product.values)[place]);
    const W b = static_cast<W>(static_cast<const T*>(product.b)[inner * product.columns + column]);
    return Multiply(Conjugate(a, product.adjoint), Conjugate(b, product.conjugate));
  }

  SparseProduct product;
  LateCheck check;
};

template <typename T>
cudaError_t Run(const SparseProduct& product, LateCheck check, cudaStream_t stream) {
  const SegmentShape shape(product.count, product.columns, product.rows, true);
  return RunReduceSorted<T>(ProductTerms<T>{product, check}, product.starts, product.out, shape,
                            ProductSum<WideType<T>>(), stream);
}

}  // namespace

cudaError_t LaunchSparseProduct(const SparseProduct& product, LateCheck check,
                                cudaStream_t stream) {
  switch (product.type) {
    case Number::kHalf:
      return Run<__half>(product, check, stream);
    case Number::kFloat:
      return Run<float>(product, check, stream);
    case Number::kDouble:
      return Run<double>(product, check, stream);
    case Number::kComplex64:
      return Run<Complex<float>>(product, check, stream);
    case Number::kComplex128:
      return Run<Complex<double>>(product, check, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda

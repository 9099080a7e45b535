/// The definition of FactorSvd, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_SVD_IMPL_H_
#define TROUPE_KERNELS_LINALG_SVD_IMPL_H_

#include <Eigen/SVD>
#include <algorithm>
#include <complex>

#include "kernels/linalg/factorizations.h"
#include "kernels/linalg/reflections.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

template <typename R>
bool FactorRealSvd(int64_t m, int64_t n, const R* a, bool full, R* s, R* u, R* v) {
  const auto matrix = ConstMatrix(a, m, n);
  if (!matrix.allFinite()) return false;
  unsigned options = 0;
  if (u != nullptr) {
    options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                   : Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  // Column-major, as its own matrices are: in another order all is compiled twice.
  const Eigen::BDCSVD<Eigen::Matrix<R, Eigen::Dynamic, Eigen::Dynamic>> svd(matrix, options);
  for (int64_t i = 0; i < svd.singularValues().size(); ++i) s[i] = svd.singularValues()[i];
  if (u == nullptr) return true;
  MutableMatrix(u, m, svd.matrixU().cols()) = svd.matrixU();
  MutableMatrix(v, n, svd.matrixV().cols()) = svd.matrixV();
  return true;
}

/// By that of the real bidiagonal matrix that reflections make of a: Eigen's own takes three times
/// as long to compile.
template <typename R>
bool FactorComplexSvd(int64_t m, int64_t n, const std::complex<R>* a, bool full, std::complex<R>* s,
                      std::complex<R>* u, std::complex<R>* v) {
  using Matrix = RowMajor<std::complex<R>>;
  const auto matrix = ConstMatrix(a, m, n);
  if (!matrix.allFinite()) return false;
  const bool wide = m < n;
  const int64_t p = std::min(m, n);
  const R scale = ScaleOf(a, m * n);
  const Matrix tall = wide ? Matrix(matrix.adjoint() / scale) : Matrix(matrix / scale);
  Eigen::internal::UpperBidiagonalization<Matrix> reflected(tall);
  const RowMajor<R> bidiagonal = reflected.bidiagonal().toDenseMatrix();
  RowMajor<R> left(p, p), right(p, p);
  Eigen::Array<R, Eigen::Dynamic, 1> values(p);
  const bool vectors = u != nullptr;
  if (!FactorSvd(p, p, bidiagonal.data(), false, values.data(), vectors ? left.data() : nullptr,
                 vectors ? right.data() : nullptr)) {
    return false;
  }
  for (int64_t i = 0; i < p; ++i) s[i] = values[i] * scale;
  if (!vectors) return true;
  const auto& packed = reflected.householder();
  const auto reflect = [&](const auto& reflectors, const auto& factors, int64_t rows, int64_t fixed,
                           const RowMajor<R>& inner, std::complex<R>* out) {
    const int64_t columns = full ? rows : p;
    auto result = MutableMatrix(out, rows, columns);
    result.setIdentity();
    result.topLeftCorner(p, p) = inner.template cast<std::complex<R>>();
    ApplyReflections(reflectors, factors, columns, out + fixed * columns);
  };
  reflect(packed, packed.diagonal(), wide ? n : m, 0, left, wide ? v : u);
  // Of the rows, from the second on.
  reflect(Matrix(packed.topRows(p).adjoint()).bottomRows(p - 1),
          packed.template diagonal<1>().conjugate(), p, 1, right, wide ? u : v);
  return true;
}

template <typename T>
bool FactorSvd(int64_t m, int64_t n, const T* a, bool full, T* s, T* u, T* v) {
  if constexpr (Eigen::NumTraits<T>::IsComplex) {
    return FactorComplexSvd(m, n, a, full, s, u, v);
  } else {
    return FactorRealSvd(m, n, a, full, s, u, v);
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_SVD_IMPL_H_

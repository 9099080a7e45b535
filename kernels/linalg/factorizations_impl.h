/// Definitions of factorizations.h, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_FACTORIZATIONS_IMPL_H_
#define TROUPE_KERNELS_LINALG_FACTORIZATIONS_IMPL_H_

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/linalg/factorizations.h"
#include "kernels/linalg/row_major.h"
#include "kernels/linalg/tridiagonal.h"

namespace troupe {

template <typename T>
void FactorQr(int64_t m, int64_t n, const T* a, bool full, T* q, T* r) {
  const int64_t p = full ? m : std::min(m, n);
  const Eigen::HouseholderQR<RowMajor<T>> qr(ConstMatrix(a, m, n));
  MutableMatrix(q, m, p) = qr.householderQ() * RowMajor<T>::Identity(m, p);
  MutableMatrix(r, p, n) =
      qr.matrixQR().topRows(p).template triangularView<Eigen::Upper>().toDenseMatrix();
}

template <typename T>
bool FactorLu(int64_t n, const T* a, T* lu, int64_t* rows) {
  const Eigen::PartialPivLU<RowMajor<T>> factors(ConstMatrix(a, n, n));
  if (!(factors.matrixLU().diagonal().cwiseAbs().minCoeff() > 0)) return false;
  MutableMatrix(lu, n, n) = factors.matrixLU();
  for (int64_t i = 0; i < n; ++i) rows[factors.permutationP().indices()[i]] = i;
  return true;
}

template <typename T>
bool HermitianEigen(int64_t n, const T* a, T* e, T* v) {
  using R = typename RealPart<T>::Type;
  RowMajor<T> matrix = ConstMatrix(a, n, n).template triangularView<Eigen::Lower>();
  if (!matrix.allFinite()) return false;
  const R scale = ScaleOf(matrix.data(), n * n);
  matrix = matrix / scale;
  Eigen::Matrix<R, Eigen::Dynamic, 1> values = matrix.diagonal().real();
  RowMajor<T> rows = RowMajor<T>::Identity(n, n);  // The eigenvectors.
  if (n > 1) {
    const Eigen::Tridiagonalization<RowMajor<T>> reduced(matrix);
    values = reduced.diagonal();
    Eigen::Matrix<R, Eigen::Dynamic, 1> below = reduced.subDiagonal();
    if (v != nullptr) rows = RowMajor<T>(reduced.matrixQ()).transpose();
    if (!DiagonalizeTridiagonal(n, values.data(), below.data(), n * kPartsOf<T>,
                                v == nullptr ? nullptr : reinterpret_cast<R*>(rows.data()))) {
      return false;
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t i, int64_t k) { return values[i] < values[k]; });
  for (int64_t k = 0; k < n; ++k) {
    const int64_t from = order[static_cast<size_t>(k)];
    e[k] = T(values[from] * scale);
    if (v != nullptr) MutableMatrix(v, n, n).col(k) = rows.row(from).transpose();
  }
  return true;
}

template <typename T>
T SignAndLogDeterminant(int64_t n, const T* a, typename RealPart<T>::Type* log_abs) {
  using Real = typename RealPart<T>::Type;
  const Eigen::PartialPivLU<RowMajor<T>> factors(ConstMatrix(a, n, n));
  T sign = T(static_cast<Real>(factors.permutationP().determinant()));
  *log_abs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T pivot = factors.matrixLU()(i, i);
    const Real size = std::abs(pivot);
    if (size == 0) {
      *log_abs = -std::numeric_limits<Real>::infinity();
      return T(0);
    }
    *log_abs += std::log(size);
    if constexpr (std::is_same_v<T, Real>) {
      sign *= pivot > 0 ? Real(1) : pivot < 0 ? Real(-1) : pivot;  // Infinity has a sign, NaN not.
    } else {
      sign *= pivot / size;
    }
  }
  return sign;
}

template <typename T>
bool SolveNormalEquations(int64_t m, int64_t n, int64_t columns, const T* a, const T* b, double l2,
                          T* x) {
  const auto matrix = ConstMatrix(a, m, n);
  const auto rhs = ConstMatrix(b, m, columns);
  auto result = MutableMatrix(x, n, columns);
  const bool tall = m >= n;
  RowMajor<T> gramian;
  if (tall) {
    gramian = matrix.adjoint() * matrix;
  } else {
    gramian = matrix * matrix.adjoint();
  }
  gramian.diagonal().array() += T(static_cast<typename RealPart<T>::Type>(l2));
  const Eigen::LLT<RowMajor<T>> llt(gramian);
  if (llt.info() != Eigen::Success) return false;
  if (tall) {
    result = matrix.adjoint() * rhs;
    llt.solveInPlace(result);
  } else {
    const RowMajor<T> solved = llt.solve(rhs);
    result = matrix.adjoint() * solved;
  }
  return true;
}

template <typename T>
void SolveLeastSquares(int64_t m, int64_t n, int64_t columns, const T* a, const T* b, T* x) {
  const Eigen::CompleteOrthogonalDecomposition<RowMajor<T>> decomposition(ConstMatrix(a, m, n));
  MutableMatrix(x, n, columns) = decomposition.solve(ConstMatrix(b, m, columns));
}

template <typename T>
void CholeskyGradient(int64_t n, const T* l, const T* gradient, T* out) {
  const RowMajor<T> factor = ConstMatrix(l, n, n).template triangularView<Eigen::Lower>();
  const RowMajor<T> given = ConstMatrix(gradient, n, n).template triangularView<Eigen::Lower>();
  RowMajor<T> p = (factor.transpose() * given).template triangularView<Eigen::Lower>();
  p.diagonal() *= T(0.5);
  const auto adjoint = factor.transpose().template triangularView<Eigen::Upper>();
  adjoint.solveInPlace(p);  // L^-T P
  p.transposeInPlace();
  adjoint.solveInPlace(p);  // (L^-T P L^-1)^T
  MutableMatrix(out, n, n) = (p + p.transpose()) * T(0.5);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_FACTORIZATIONS_IMPL_H_

/// Definitions of factorizations.h, to be instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_FACTORIZATIONS_IMPL_H_
#define TROUPE_KERNELS_LINALG_FACTORIZATIONS_IMPL_H_

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/linalg/decompositions.h"
#include "kernels/linalg/factorizations.h"
#include "kernels/linalg/panel_product.h"
#include "kernels/linalg/reflections.h"
#include "kernels/linalg/row_major.h"
#include "kernels/linalg/tridiagonal.h"

namespace troupe {

template <typename T>
void FactorQr(int64_t m, int64_t n, const T* a, bool full, T* q, T* r) {
  const int64_t size = std::min(m, n), p = full ? m : size;
  RowMajor<T> qr = ConstMatrix(a, m, n);
  Eigen::Matrix<T, Eigen::Dynamic, 1> factors(size);
  for (int64_t j = 0; j < size; j += kPanelColumns) {
    const int64_t columns = std::min(kPanelColumns, size - j), right = n - j - columns;
    auto panel = qr.block(j, j, m - j, columns);
    auto panel_factors = factors.segment(j, columns);
    Eigen::internal::householder_qr_inplace_unblocked(panel, panel_factors);
    if (right == 0) continue;
    PanelReflections<T>(panel, panel_factors).Apply(true, right, &qr(j, j + columns), n);
  }
  MutableMatrix(r, p, n) = qr.topRows(p).template triangularView<Eigen::Upper>();
  MutableMatrix(q, m, p).setIdentity();
  ApplyReflections(qr, factors, p, q);
}

template <typename T>
bool FactorLu(int64_t n, const T* a, T* lu, int64_t* rows) {
  std::vector<int> swaps(static_cast<size_t>(n));
  std::copy_n(a, n * n, lu);
  EliminateWithPivots(n, lu, swaps.data());
  if (!(ConstMatrix(lu, n, n).diagonal().cwiseAbs().minCoeff() > 0)) return false;
  std::iota(rows, rows + n, 0);
  for (int64_t i = 0; i < n; ++i) std::swap(rows[i], rows[swaps[static_cast<size_t>(i)]]);
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
    if (v != nullptr) {  // The first row and column of their product are those of the identity.
      RowMajor<T> inner = RowMajor<T>::Identity(n - 1, n - 1);
      ApplyReflections(reduced.packedMatrix().bottomRows(n - 1), reduced.householderCoefficients(),
                       n - 1, inner.data());
      rows.bottomRightCorner(n - 1, n - 1) = inner.transpose();
    }
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
  std::vector<int> swaps(static_cast<size_t>(n));
  RowMajor<T> factors = ConstMatrix(a, n, n);
  EliminateWithPivots(n, factors.data(), swaps.data());
  T sign(1);
  for (int64_t i = 0; i < n; ++i) {
    if (swaps[static_cast<size_t>(i)] != i) sign = -sign;
  }
  *log_abs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T pivot = factors(i, i);
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
  const bool tall = m >= n;
  const int64_t p = std::min(m, n);
  // Of a, or of its adjoint: the gramian is adjoint(factor) * factor.
  const RowMajor<T> adjoint = ConstMatrix(a, m, n).adjoint();
  const T *factor = tall ? a : adjoint.data(), *rest = b;
  RowMajor<T> gramian(p, p), root(p, p), product(p, columns), solved(p, columns);
  MultiplyRows(p, p, std::max(m, n), factor, true, factor, gramian.data());
  gramian.diagonal().array() += T(static_cast<typename RealPart<T>::Type>(l2));
  if (!FactorCholesky(p, gramian.data(), root.data())) return false;
  if (tall) {
    MultiplyRows(n, columns, m, a, true, b, product.data());
    rest = product.data();
  }
  SolveTriangular(p, columns, root.data(), true, false, rest, solved.data());
  SolveTriangular(p, columns, root.data(), true, true, solved.data(), tall ? x : product.data());
  if (!tall) MultiplyRows(n, columns, m, adjoint.data(), false, product.data(), x);
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
  RowMajor<T> p(n, n), x(n, n);
  MultiplyRows(n, n, n, factor.data(), true, given.data(), p.data());
  p.template triangularView<Eigen::StrictlyUpper>().setZero();
  p.diagonal() *= T(0.5);
  SolveTriangular(n, n, factor.data(), true, true, p.data(), x.data());  // L^-T P
  x.transposeInPlace();
  SolveTriangular(n, n, factor.data(), true, true, x.data(), p.data());  // (L^-T P L^-1)^T
  MutableMatrix(out, n, n) = (p + p.transpose()) * T(0.5);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_FACTORIZATIONS_IMPL_H_

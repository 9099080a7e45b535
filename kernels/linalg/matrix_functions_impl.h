/// The definitions of GeneralEigen and of functions of matrices of factorizations.h, to be
/// instantiated: Eigen takes long to compile.
#ifndef TROUPE_KERNELS_LINALG_MATRIX_FUNCTIONS_IMPL_H_
#define TROUPE_KERNELS_LINALG_MATRIX_FUNCTIONS_IMPL_H_

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <unsupported/Eigen/MatrixFunctions>

#include "kernels/linalg/complex_schur.h"
#include "kernels/linalg/factorizations.h"
#include "kernels/linalg/row_major.h"

namespace troupe {

template <typename T>
bool GeneralEigen(int64_t n, const T* a, Complex<T>* e, Complex<T>* v) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  using Solver = std::conditional_t<Eigen::NumTraits<T>::IsComplex,
                                    Eigen::ComplexEigenSolver<Matrix>, Eigen::EigenSolver<Matrix>>;
  const auto matrix = ConstMatrix(a, n, n);
  if (!matrix.allFinite()) return false;
  const auto scale = ScaleOf(a, n * n);
  const Solver solver(Matrix(matrix / scale), v != nullptr);
  if (solver.info() != Eigen::Success) return false;
  for (int64_t i = 0; i < n; ++i) e[i] = solver.eigenvalues()[i] * scale;
  if (v != nullptr) MutableMatrix(v, n, n) = solver.eigenvectors();
  return true;
}

template <typename T>
T NotANumber() {
  const auto nan = std::numeric_limits<typename RealPart<T>::Type>::quiet_NaN();
  if constexpr (Eigen::NumTraits<T>::IsComplex) {
    return T(nan, nan);
  } else {
    return nan;
  }
}

template <typename T>
void MatrixExp(int64_t n, const T* a, T* out) {
  auto result = MutableMatrix(out, n, n);
  const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> matrix = ConstMatrix(a, n, n);
  if (matrix.allFinite()) {
    result = matrix.exp();
  } else {
    result.setConstant(NotANumber<T>());
  }
}

/// Writes to `root` that of a block of the diagonal of a real quasi-triangular matrix: a number, or
/// 2 x 2 with conjugate eigenvalues. NaN for a negative number.
template <typename Matrix>
void SetRootOfBlock(const Matrix& t, Eigen::Index at, Eigen::Index size, Matrix* root) {
  using T = typename Matrix::Scalar;
  const T a = t(at, at);
  if (size == 1) {
    (*root)(at, at) = std::sqrt(a);
    return;
  }
  const T b = t(at, at + 1), c = t(at + 1, at), d = t(at + 1, at + 1);
  const T middle = (a + d) / 2, half = (a - d) / 2;
  const T imaginary = std::sqrt(std::max(-(half * half + b * c), T(0)));
  // The root of the eigenvalue middle + i * imaginary has a positive real part.
  const T real = std::sqrt(std::complex<T>(middle, imaginary)).real(), factor = 1 / (2 * real);
  (*root)(at, at) = real + (a - middle) * factor;
  (*root)(at, at + 1) = b * factor;
  (*root)(at + 1, at) = c * factor;
  (*root)(at + 1, at + 1) = real + (d - middle) * factor;
}

/// The real square root of a quasi-triangular matrix, block by block (Higham, "Functions of
/// Matrices", section 6.2). Not finite if there is none, or it is too large. Eigen's own asserts
/// that there is one, and takes long to compile.
template <typename Matrix>
Matrix RootOfQuasiTriangular(const Matrix& t) {
  using T = typename Matrix::Scalar;
  using Index = Eigen::Index;
  const Index n = t.rows();
  Matrix root = Matrix::Zero(n, n);
  for (Index j = 0, columns; j < n; j += columns) {
    columns = j + 1 < n && t(j + 1, j) != 0 ? 2 : 1;
    SetRootOfBlock(t, j, columns, &root);
    for (Index i = j, rows; i > 0;) {
      rows = i > 1 && t(i - 1, i - 2) != 0 ? 2 : 1;
      i -= rows;
      // left x + x right = rest, for the blocks of the diagonal in these rows and columns. The
      // unknowns are numbered column by column.
      const Index count = rows * columns;
      Eigen::Matrix<T, 4, 1> rest;
      for (Index k = 0; k < count; ++k) {
        const Index r = i + k % rows, c = j + k / rows;
        rest[k] = t(r, c);
        for (Index m = i + rows; m < j; ++m) rest[k] -= root(r, m) * root(m, c);
      }
      if (count == 1) {
        root(i, j) = rest[0] / (root(i, i) + root(j, j));
        continue;
      }
      Eigen::Matrix<T, 4, 4> system = Eigen::Matrix<T, 4, 4>::Identity();
      for (Index k = 0; k < count; ++k) {
        for (Index m = 0; m < count; ++m) {
          system(k, m) = (k / rows == m / rows ? root(i + k % rows, i + m % rows) : T(0)) +
                         (k % rows == m % rows ? root(j + m / rows, j + k / rows) : T(0));
        }
      }
      for (Index k = count; k < 4; ++k) rest[k] = 0;
      const Eigen::Matrix<T, 4, 1> x = system.partialPivLu().solve(rest);
      for (Index k = 0; k < count; ++k) root(i + k % rows, j + k / rows) = x[k];
    }
  }
  return root;
}

/// The square root by Schur's factorization. NaNs if there is none of this type.
template <typename T>
void MatrixSqrt(int64_t n, const T* a, T* out) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  auto result = MutableMatrix(out, n, n);
  result.setConstant(NotANumber<T>());
  const Matrix matrix = ConstMatrix(a, n, n);
  if (!matrix.allFinite()) return;
  if constexpr (Eigen::NumTraits<T>::IsComplex) {
    result = matrix.sqrt();
  } else {
    const Eigen::RealSchur<Matrix> schur(matrix);
    if (schur.info() != Eigen::Success || !schur.matrixT().allFinite()) return;
    const Matrix root = RootOfQuasiTriangular(schur.matrixT());
    if (root.allFinite()) result = schur.matrixU() * root * schur.matrixU().adjoint();
  }
}

/// log(I + x) for a triangular x of a norm of at most 1/4: the diagonal Pade approximant of degree
/// 8, written as Gauss-Legendre quadrature of the integral of x (I + t x)^-1 over [0, 1] (Higham,
/// "Functions of Matrices", section 11.4).
template <typename Matrix>
Matrix LogNearIdentity(const Matrix& x) {
  using T = typename Matrix::Scalar;
  using Real = typename RealPart<T>::Type;
  constexpr double kNodes[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                               0.9602898564975363};
  constexpr double kWeights[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                 0.1012285362903763};
  const Matrix identity = Matrix::Identity(x.rows(), x.cols());
  Matrix sum = Matrix::Zero(x.rows(), x.cols());
  for (int i = 0; i < 4; ++i) {
    for (const double side : {-1.0, 1.0}) {
      const T t = T(static_cast<Real>(0.5 + 0.5 * side * kNodes[i]));
      const Matrix denominator = identity + t * x;
      sum += T(static_cast<Real>(0.5 * kWeights[i])) *
             denominator.template triangularView<Eigen::Upper>().solve(x);
    }
  }
  return sum;
}

template <typename T>
void MatrixLog(int64_t n, const T* a, T* out) {
  using Real = typename RealPart<T>::Type;
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  auto result = MutableMatrix(out, n, n);
  result.setConstant(NotANumber<T>());
  const Matrix matrix = ConstMatrix(a, n, n);
  if (!matrix.allFinite()) return;
  const Eigen::ComplexSchur<Matrix> schur(matrix);
  if (schur.info() != Eigen::Success) return;
  // Square roots bring the triangular factor near the identity. 100 do so for any finite number but
  // 0, the logarithm of which is not finite.
  Matrix triangle = schur.matrixT();
  const Matrix identity = Matrix::Identity(n, n);
  constexpr int kMostRoots = 100;
  for (int roots = 0; roots < kMostRoots; ++roots) {
    const Matrix x = triangle - identity;
    if (x.cwiseAbs().colwise().sum().maxCoeff() <= Real(0.25)) {
      result = schur.matrixU() * LogNearIdentity(x) * schur.matrixU().adjoint() *
               T(static_cast<Real>(std::ldexp(1.0, roots)));
      return;
    }
    Matrix root = Matrix::Zero(n, n);
    Eigen::matrix_sqrt_triangular(triangle, root);
    if (!root.allFinite()) return;
    triangle = root.template triangularView<Eigen::Upper>();
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_MATRIX_FUNCTIONS_IMPL_H_

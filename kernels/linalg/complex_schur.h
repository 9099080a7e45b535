/// Eigen's Schur factorization of complex matrices, with the shifts of the QR algorithm chosen
/// here: those of Eigen 3.4.0 read before the matrix after ten iterations on its first two rows.
/// To be included before anything is instantiated that uses it.
#ifndef TROUPE_KERNELS_LINALG_COMPLEX_SCHUR_H_
#define TROUPE_KERNELS_LINALG_COMPLEX_SCHUR_H_

#include <Eigen/Eigenvalues>
#include <cmath>

namespace troupe {

/// The shift for the iteration number `iteration` on row `row` of t, which is a Hessenberg matrix:
/// Wilkinson's, the eigenvalue of the last two rows and columns that is closest to the last
/// element; an exceptional one now and then, for what does not converge.
template <typename Matrix>
typename Matrix::Scalar SchurShift(const Matrix& t, Eigen::Index row, Eigen::Index iteration) {
  using T = typename Matrix::Scalar;
  using std::abs, std::sqrt;
  const T below = t(row, row - 1), last = t(row, row);
  if (iteration == 10 || iteration == 20) {
    const T next = row > 1 ? t(row - 1, row - 2) : T(0);
    return abs(below.real()) + abs(next.real());
  }
  const T above = t(row - 1, row), first = t(row - 1, row - 1);
  // Products of elements of this size would not fit.
  const auto size = abs(first) + abs(above) + abs(below) + abs(last);
  const T half = (first - last) / size / typename Matrix::RealScalar(2);
  const T product = (above / size) * (below / size), root = sqrt(half * half + product);
  const T one = half + root, other = half - root;
  const T divisor = std::norm(one) > std::norm(other) ? one : other;
  return divisor == T(0) ? last : last - size * (product / divisor);
}

}  // namespace troupe

#define TROUPE_SCHUR_SHIFT(Matrix)                                                       \
  template <>                                                                            \
  inline Matrix::Scalar ComplexSchur<Matrix>::computeShift(Index row, Index iteration) { \
    return troupe::SchurShift(m_matT, row, iteration);                                   \
  }
namespace Eigen {
TROUPE_SCHUR_SHIFT(MatrixXcf)
TROUPE_SCHUR_SHIFT(MatrixXcd)
}  // namespace Eigen
#undef TROUPE_SCHUR_SHIFT

#endif  // TROUPE_KERNELS_LINALG_COMPLEX_SCHUR_H_

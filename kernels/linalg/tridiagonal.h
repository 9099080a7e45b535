/// Eigenvalues of symmetric tridiagonal matrices. Eigen's solver turns the eigenvectors one
/// rotation at a time and in narrow registers: with 256 of them it takes three times as long.
#ifndef TROUPE_KERNELS_LINALG_TRIDIAGONAL_H_
#define TROUPE_KERNELS_LINALG_TRIDIAGONAL_H_

#include <cstdint>

namespace troupe {

/// Makes of the diagonal [n] the eigenvalues, in no order, by the implicit QR algorithm (Golub and
/// Van Loan, "Matrix Computations", section 8.3); `below` [n - 1], the elements beside it, is
/// overwritten. All are finite, and their products too. Row i of `rows` [n, columns] is turned as
/// the eigenvector of eigenvalue i is; nullptr: no rows. False if it does not converge. R is float
/// or double.
template <typename R>
bool DiagonalizeTridiagonal(int64_t n, R* diagonal, R* below, int64_t columns, R* rows);
extern template bool DiagonalizeTridiagonal(int64_t, float*, float*, int64_t, float*);
extern template bool DiagonalizeTridiagonal(int64_t, double*, double*, int64_t, double*);

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_TRIDIAGONAL_H_

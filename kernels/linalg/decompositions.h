/// Factorisations of one dense matrix and solutions of linear systems, on the calling thread.
/// Matrices are row-major. T: float, double, complex64, complex128.
#ifndef TROUPE_KERNELS_LINALG_DECOMPOSITIONS_H_
#define TROUPE_KERNELS_LINALG_DECOMPOSITIONS_H_

#include <cstdint>

#include "devices/element_type.h"

namespace troupe {

/// l [n, n], lower triangular with zeros above, such that l * adjoint(l) = a, a Hermitian positive
/// definite matrix of which only the lower triangle is read. False if it is not positive definite:
/// then the lower triangle of l is NaN.
template <typename T>
bool FactorCholesky(int64_t n, const T* a, T* l);

/// Replaces a [n, n] by the factors of its rows in another order: the upper triangle, and the lower
/// one, whose diagonal is 1. For i = 0 to n - 1 in turn, row i was exchanged for row swaps[i].
template <typename T>
void EliminateWithPivots(int64_t n, T* a, int* swaps);

/// x [n, columns] such that a * x = b (adjoint(a) * x = b if `adjoint`); b == nullptr stands for
/// the identity, of n columns. By LU decomposition with partial pivoting. False, and x is not
/// written, if a is singular or its first pivot is NaN.
template <typename T>
bool SolveLu(int64_t n, int64_t columns, const T* a, bool adjoint, const T* b, T* x);

/// The same for a triangular matrix, of which only the lower or the upper triangle is read. A zero
/// on the diagonal gives infinities and NaNs.
template <typename T>
void SolveTriangular(int64_t n, int64_t columns, const T* a, bool lower, bool adjoint, const T* b,
                     T* x);

#define TROUPE_DECOMPOSITIONS(PREFIX, T)                                           \
  PREFIX template bool FactorCholesky<T>(int64_t, const T*, T*);                   \
  PREFIX template void EliminateWithPivots<T>(int64_t, T*, int*);                  \
  PREFIX template bool SolveLu<T>(int64_t, int64_t, const T*, bool, const T*, T*); \
  PREFIX template void SolveTriangular<T>(int64_t, int64_t, const T*, bool, bool, const T*, T*);
TROUPE_DECOMPOSITIONS(extern, float)
TROUPE_DECOMPOSITIONS(extern, double)
TROUPE_DECOMPOSITIONS(extern, complex64)
TROUPE_DECOMPOSITIONS(extern, complex128)

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_DECOMPOSITIONS_H_

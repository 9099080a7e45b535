/// Factorisations, eigenvalues, functions and least squares of one dense matrix, on the calling
/// thread. Matrices are row-major. What is false for a failure has found no result: iterations have
/// not converged, as they do not for NaNs. T: float, double, complex64, complex128.
#ifndef TROUPE_KERNELS_LINALG_FACTORIZATIONS_H_
#define TROUPE_KERNELS_LINALG_FACTORIZATIONS_H_

#include <cstdint>

#include "devices/element_type.h"

namespace troupe {

/// Of float and double, which stand for themselves, and of complex numbers: the type of the parts.
template <typename T>
struct RealPart {
  using Type = T;
};
template <typename R>
struct RealPart<std::complex<R>> {
  using Type = R;
};

/// The complex numbers with such parts.
template <typename T>
using Complex = std::complex<typename RealPart<T>::Type>;

/// a [m, n] = q * r by Householder reflections: q [m, p], r [p, n], p being the smaller of m and n,
/// or m if `full`.
template <typename T>
void FactorQr(int64_t m, int64_t n, const T* a, bool full, T* q, T* r);

/// a [m, n] = u * diag(s) * adjoint(v), with p, the smaller of m and n, singular values in
/// descending order: u [m, p], v [n, p], or [m, m] and [n, n] if `full`; nullptr: not wanted.
template <typename T>
bool FactorSvd(int64_t m, int64_t n, const T* a, bool full, T* s, T* u, T* v);

/// The lower triangle and the unit-diagonal upper one of the factors of a [n, n], and for each row
/// of their product the row of a. False if a is singular.
template <typename T>
bool FactorLu(int64_t n, const T* a, T* lu, int64_t* rows);

/// The eigenvalues e [n], ascending, and the eigenvectors, columns of v [n, n] (nullptr: not
/// wanted), of a Hermitian matrix of which only the lower triangle is read.
template <typename T>
bool HermitianEigen(int64_t n, const T* a, T* e, T* v);

/// The same of any matrix, in no order, but for conjugate ones of real matrices: neighbours.
template <typename T>
bool GeneralEigen(int64_t n, const T* a, Complex<T>* e, Complex<T>* v);

/// The determinant is the result times e to the `log_abs`; 0 and -inf for a singular matrix.
template <typename T>
T SignAndLogDeterminant(int64_t n, const T* a, typename RealPart<T>::Type* log_abs);

/// x [n, columns] for which a [m, n] * x is closest to b [m, columns]. By the normal equations,
/// with `l2` added to their diagonal, false if their matrix is not positive definite.
template <typename T>
bool SolveNormalEquations(int64_t m, int64_t n, int64_t columns, const T* a, const T* b, double l2,
                          T* x);
/// By a complete orthogonal decomposition: the x of least norm.
template <typename T>
void SolveLeastSquares(int64_t m, int64_t n, int64_t columns, const T* a, const T* b, T* x);

/// The symmetric gradient of the matrix whose Cholesky factor is l, for the factor's gradient. Of
/// both the lower triangle is read. T is float or double. Murray, "Differentiation of the Cholesky
/// decomposition", 2016.
template <typename T>
void CholeskyGradient(int64_t n, const T* l, const T* gradient, T* out);

/// The exponential of a [n, n]. NaNs if an element of a is not finite.
template <typename T>
void MatrixExp(int64_t n, const T* a, T* out);
/// The principal square root (T is not complex64) and logarithm (T is complex128) of a [n, n]. NaNs
/// where there is none, or an element of a is not finite.
template <typename T>
void MatrixSqrt(int64_t n, const T* a, T* out);
template <typename T>
void MatrixLog(int64_t n, const T* a, T* out);

#define TROUPE_FACTORIZATIONS(PREFIX, T)                                                      \
  PREFIX template void FactorQr<T>(int64_t, int64_t, const T*, bool, T*, T*);                 \
  PREFIX template bool FactorLu<T>(int64_t, const T*, T*, int64_t*);                          \
  PREFIX template bool HermitianEigen<T>(int64_t, const T*, T*, T*);                          \
  PREFIX template T SignAndLogDeterminant<T>(int64_t, const T*, typename RealPart<T>::Type*); \
  PREFIX template bool SolveNormalEquations<T>(int64_t, int64_t, int64_t, const T*, const T*, \
                                               double, T*);                                   \
  PREFIX template void SolveLeastSquares<T>(int64_t, int64_t, int64_t, const T*, const T*, T*);
#define TROUPE_SVD(PREFIX, T) \
  PREFIX template bool FactorSvd<T>(int64_t, int64_t, const T*, bool, T*, T*, T*);
#define TROUPE_MATRIX_FUNCTIONS(PREFIX, T)                                           \
  PREFIX template bool GeneralEigen<T>(int64_t, const T*, Complex<T>*, Complex<T>*); \
  PREFIX template void MatrixExp<T>(int64_t, const T*, T*);
#define TROUPE_REAL_FACTORIZATIONS(PREFIX, T) \
  PREFIX template void CholeskyGradient<T>(int64_t, const T*, const T*, T*);
#define TROUPE_MATRIX_SQRT(PREFIX, T) PREFIX template void MatrixSqrt<T>(int64_t, const T*, T*);
#define TROUPE_MATRIX_LOG(PREFIX, T) PREFIX template void MatrixLog<T>(int64_t, const T*, T*);

#define TROUPE_OF_ALL_TYPES(WHAT) \
  WHAT(extern, float)             \
  WHAT(extern, double)            \
  WHAT(extern, complex64)         \
  WHAT(extern, complex128)
TROUPE_OF_ALL_TYPES(TROUPE_FACTORIZATIONS)
TROUPE_OF_ALL_TYPES(TROUPE_SVD)
TROUPE_OF_ALL_TYPES(TROUPE_MATRIX_FUNCTIONS)
#undef TROUPE_OF_ALL_TYPES
TROUPE_REAL_FACTORIZATIONS(extern, float)
TROUPE_REAL_FACTORIZATIONS(extern, double)
TROUPE_MATRIX_SQRT(extern, float)
TROUPE_MATRIX_SQRT(extern, double)
TROUPE_MATRIX_SQRT(extern, complex128)
TROUPE_MATRIX_LOG(extern, complex128)

}  // namespace troupe

#endif  // TROUPE_KERNELS_LINALG_FACTORIZATIONS_H_

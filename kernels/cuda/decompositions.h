/// Determinants, decompositions and eigenvalues of dense matrices on CUDA.
#ifndef TROUPE_KERNELS_CUDA_DECOMPOSITIONS_H_
#define TROUPE_KERNELS_CUDA_DECOMPOSITIONS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

// Batches of `count` row-major matrices; types are float, double and the complex ones. Sizes are
// not 0, unless it is said. `first` has room for one number: the first matrix that is refused is
// reported, its number and `count`.

/// The factors of a [n, n], the lower one with a diagonal of ones, and for each row of their
/// product the row of a. A singular matrix is refused.
struct LuCall {
  Number type;
  int64_t count, n;
  const void* a;
  void *lu, *rows;
  bool wide_rows;  ///< Of int64, else int32.
};
cudaError_t LaunchLu(const LuCall& call, unsigned long long* first, LateCheck check,
                     cudaStream_t stream);

/// The determinant, or, if `logarithm` is not nullptr, its sign and the logarithm of its size, as a
/// number of the type. `work` has room for all of `a`.
cudaError_t LaunchDeterminant(Number type, int64_t count, int64_t n, const void* a, void* work,
                              void* sign, void* logarithm, cudaStream_t stream);

/// a [m, n] = q [m, p] * r [p, n] by Householder reflections, p being the smaller of m and n, or m
/// if `full`; n may be 0. `work` has room for `a` and for as many numbers more as there are
/// reflections, of each matrix.
struct QrCall {
  Number type;
  int64_t count, m, n;
  bool full;
  const void* a;
  void *q, *r, *work;
};
cudaError_t LaunchQr(const QrCall& call, cudaStream_t stream);

/// a [m, n] = u * diag(s) * adjoint(v), with p singular values in descending order, p being the
/// smaller of m and n: u [m, p], v [n, p], or [m, m] and [n, n] if `full`; both nullptr: not
/// wanted. NaNs for what is not finite.
struct SvdCall {
  Number type;
  int64_t count, m, n;
  bool full;
  const void* a;
  void *s, *u, *v;
  void* work;  ///< SvdWork numbers of each matrix.
};
inline int64_t SvdWork(int64_t m, int64_t n, bool vectors) {
  const int64_t p = std::min(m, n);
  return m * n + 2 * p + (vectors ? m * n + p * p : 0);
}
cudaError_t LaunchSvd(const SvdCall& call, cudaStream_t stream);

/// The eigenvalues e [n], ascending, and the eigenvectors, columns of v [n, n] (nullptr: not
/// wanted), of Hermitian matrices of which only the lower triangle is read. One that is not finite
/// is refused.
struct EigenCall {
  Number type;
  int64_t count, n;
  const void* a;
  void *e, *v;
  void* work;  ///< EigenWork numbers of each matrix.
};
inline int64_t EigenWork(int64_t n, bool vectors) {
  return n * n + 2 * n + 2 + (vectors ? n * n : 0);
}
cudaError_t LaunchHermitianEigen(const EigenCall& call, unsigned long long* first, LateCheck check,
                                 cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_DECOMPOSITIONS_H_

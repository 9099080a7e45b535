/// Factorizations of dense matrices and solutions of linear systems on CUDA.
#ifndef TROUPE_KERNELS_CUDA_LINALG_H_
#define TROUPE_KERNELS_CUDA_LINALG_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

// Matrices are row-major; types are float, double and the complex ones. Sizes are not 0.

/// l * adjoint(l) = a for `count` matrices [n, n], of which the lower triangle is read. A factor of
/// one that is not positive definite has a lower triangle of NaNs. `l` may be `a`.
cudaError_t LaunchCholesky(Number type, const void* a, void* l, int64_t count, int64_t n,
                           cudaStream_t stream);

/// Systems a * x = b, or adjoint(a) * x = b.
struct SolveCall {
  Number type;
  bool adjoint;
  const void* a;  ///< Of [n, n].
  const void* b;  ///< Of [n, columns]; nullptr: the identity.
  void* x;
  int64_t count, n, columns;
};
/// By elimination with partial pivoting. `work` has room for all of `a`; `first` for one number.
/// The first matrix that is singular is reported: its number, and `count`.
cudaError_t LaunchSolve(const SolveCall& call, void* work, unsigned long long* first,
                        LateCheck check, cudaStream_t stream);
/// With triangular matrices, of which only that triangle is read. `batch` says which of the
/// matrices of a and b system number i has.
cudaError_t LaunchTriangularSolve(const SolveCall& call, bool lower, const Broadcast& batch,
                                  cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_LINALG_H_

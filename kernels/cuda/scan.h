/// Running sums and the like of CUDA.
#ifndef TROUPE_KERNELS_CUDA_SCAN_H_
#define TROUPE_KERNELS_CUDA_SCAN_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// Lines along n of [outer, n, inner] elements. Lines are cut into `pieces` if there are few:
/// the pieces' totals are computed, then scanned, then each piece is scanned from its own on.
struct ScanShape {
  int64_t outer = 1, n = 1, inner = 1;
  bool exclusive = false, reverse = false;
  int64_t pieces = 1, piece = 1;  ///< How many, and how long.

  int64_t totals() const { return pieces == 1 ? 0 : outer * pieces * inner; }
};

enum class ScanOp : uint8_t { kSum, kProduct, kLogSumExp };

ScanShape PlanScan(int64_t outer, int64_t n, int64_t inner);

/// Joins each element to all before it (after it if reverse), with or, if exclusive, without it.
/// Real floating-point numbers and, but for logarithms, int64; small ones are added as floats and
/// rounded last. NaN counts for nothing in a logarithm of a sum of exponentials.
/// `scratch`: totals() numbers of 4 or 8 bytes, as wide as they are added. `out` may be `in`.
cudaError_t LaunchScan(ScanOp op, Number type, const void* in, void* out, const ScanShape& shape,
                       void* scratch, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SCAN_H_

/// Counting on CUDA.
#ifndef TROUPE_KERNELS_CUDA_BINCOUNT_H_
#define TROUPE_KERNELS_CUDA_BINCOUNT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/indexing.h"

namespace troupe::cuda {

/// Numbers of `rows` rows, each with `size` bins of its own. Those from `size` on are left out,
/// negative ones are reported.
struct BincountCall {
  Indices numbers;  ///< int64 or int32.
  int64_t rows, length, size;
};

/// bins[r, k] is how many numbers of row r are k; if `binary`, 1 if any is. Or, with weights of
/// int32, the sum of theirs, which wraps around.
cudaError_t LaunchCountBins(const BincountCall& call, bool binary, const int32_t* weights,
                            int32_t* bins, LateCheck check, cudaStream_t stream);
/// numbers[r, i] becomes r * size + its number: `rows * size` for what is left out. For sums of
/// weights that must be added in order.
cudaError_t LaunchBinOf(const BincountCall& call, int64_t* bins, LateCheck check,
                        cudaStream_t stream);

/// Values of float or double. Those below `low` are in the first interval, those above `high` in
/// the last one; NaN is reported.
struct IntervalCall {
  Number type;
  const void* values;
  int64_t n;
  double low, width;  ///< Of an interval.
  int64_t bins;
};
cudaError_t LaunchCountIntervals(const IntervalCall& call, int32_t* counts, LateCheck check,
                                 cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_BINCOUNT_H_

/// The largest elements of rows on CUDA.
#ifndef TROUPE_KERNELS_CUDA_TOP_K_H_
#define TROUPE_KERNELS_CUDA_TOP_K_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// Rows of n elements, of any real type. NaN is larger than everything; of equal elements the first
/// comes first.
struct TopKCall {
  Number type;
  bool wide_indices;  ///< int64, else int32.
  const void* in;
  int64_t rows, n, k;
  void* values;   ///< [rows, k] of the type,
  void* indices;  ///< and where they are in their rows.
};

/// Up to so many a row are found one after the other.
inline constexpr int64_t kSmallK = 16;

/// For k <= kSmallK.
cudaError_t LaunchTopFew(const TopKCall& call, cudaStream_t stream);
/// What `LaunchSort` sorts: keys that are the larger the smaller an element is. Of 8 bytes for
/// types of that size, else of 4.
cudaError_t LaunchTopKeys(const TopKCall& call, void* keys, cudaStream_t stream);
/// What it sorts then: the rows (keys of 4 bytes, or 8 if `wide`) of elements in that order.
cudaError_t LaunchTopRows(const TopKCall& call, const uint32_t* places, bool wide, void* keys,
                          cudaStream_t stream);
/// Takes the first k of each row, for places in the order of rows and then of elements.
cudaError_t LaunchTakeTop(const TopKCall& call, const uint32_t* places, cudaStream_t stream);

/// out[r]: whether fewer than k of the n predictions of row r are larger than that of its target
/// (int64, else int32), the target is one of them, and all are finite.
cudaError_t LaunchInTopK(bool wide_targets, const float* predictions, const void* targets,
                         int64_t rows, int64_t n, int64_t k, bool* out, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_TOP_K_H_

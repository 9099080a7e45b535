/// Sorting on CUDA.
#ifndef TROUPE_KERNELS_CUDA_SORT_H_
#define TROUPE_KERNELS_CUDA_SORT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::cuda {

/// Keys (of 4 or 8 bytes, unsigned) and the places where they were, sorted by the key, equal ones
/// in their old order. There are two arrays of each, and passes read the one and write the other.
struct SortBuffers {
  bool wide = false;  ///< Keys of 8 bytes.
  void* keys[2] = {};
  uint32_t* places[2] = {};
  uint64_t* counts = nullptr;  ///< SortCounts(n).
};

inline constexpr int64_t kMaxSorted = INT32_MAX;
/// What `SortBuffers::counts` has to hold for n keys.
int64_t SortCounts(int64_t n);

/// Sorts the n keys in keys[0], at most kMaxSorted, by their lowest `bits` bits. The places are
/// those in places[0], or, if `fresh`, 0 to n - 1. `*result`: the array with the results.
cudaError_t LaunchSort(const SortBuffers& buffers, int64_t n, int bits, bool fresh, int* result,
                       cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SORT_H_

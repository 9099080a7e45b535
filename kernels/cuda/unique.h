/// Distinct elements on CUDA: sorted, elements that are equal are neighbours, the first one of them
/// first.
#ifndef TROUPE_KERNELS_CUDA_UNIQUE_H_
#define TROUPE_KERNELS_CUDA_UNIQUE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// keys[i] = a number that is the same for equal elements, of so many bits (`UniqueKeyBits`); of 8
/// bytes if there are 64, else of 4. All NaNs have the largest one.
int UniqueKeyBits(Number type);
cudaError_t LaunchUniqueKeys(Number type, const void* in, void* keys, int64_t n,
                             cudaStream_t stream);

/// What is known of n elements when their keys have been sorted.
struct UniqueOrder {
  int64_t n = 0;
  uint32_t* places = nullptr;   ///< Where the elements were.
  uint8_t* heads = nullptr;     ///< Whether each one, in this order, is the first of its like,
  uint8_t* is_first = nullptr;  ///< and in that of the input. A NaN equals nothing.
};
/// Fills `order` from sorted keys and their places.
cudaError_t LaunchUniqueHeads(Number type, const void* keys, const uint32_t* places,
                              const UniqueOrder& order, cudaStream_t stream);

/// The distinct elements, by what `LaunchPlaces` finds in `heads` and `is_first`.
struct UniqueFound {
  int64_t distinct = 0;
  const int64_t* heads = nullptr;
  const int64_t* first = nullptr;
  int32_t* numbers = nullptr;  ///< Scratch memory for n.
};
/// idx[i] = the number of element i among the distinct ones, counts[j] = how many have number j
/// (nullptr: is not asked); int64 if `wide`, else int32.
cudaError_t LaunchUniqueNumbers(const UniqueOrder& order, const UniqueFound& found, bool wide,
                                void* idx, void* counts, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_UNIQUE_H_

/// Looking for elements that are not zero, on CUDA.
#ifndef TROUPE_KERNELS_CUDA_WHERE_H_
#define TROUPE_KERNELS_CUDA_WHERE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::cuda {

struct WhereCall {
  static constexpr int kMaxRank = 64;
  const void* in;
  int64_t size;  ///< Of an element: `words` words of up to 8 bytes.
  int words = 1;
  uint64_t mask;  ///< The bits of a word of which one is set unless it is zero.
  int64_t n;      ///< Elements; at least one.
  int rank;
  int64_t dims[kMaxRank];
};

/// How many numbers `counts` has for n elements.
int64_t WhereCounts(int64_t n);
/// Puts into counts what `LaunchPlaces` needs, and into `total` how many elements are not zero.
cudaError_t LaunchCount(const WhereCall& call, uint64_t* counts, int64_t* total,
                        cudaStream_t stream);
/// Writes their coordinates to out[total, rank], in their order.
cudaError_t LaunchPlaces(const WhereCall& call, const uint64_t* counts, int64_t* out,
                         cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_WHERE_H_

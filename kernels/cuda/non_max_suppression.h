/// Picking boxes that do not overlap on CUDA.
#ifndef TROUPE_KERNELS_CUDA_NON_MAX_SUPPRESSION_H_
#define TROUPE_KERNELS_CUDA_NON_MAX_SUPPRESSION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::cuda {

/// Makes what `LaunchSort` sorts: a key for each score, the smaller the larger it is; kLeftOut for
/// those that are not above the threshold.
cudaError_t LaunchScoreKeys(const float* scores, int64_t n, float threshold, uint32_t* keys,
                            cudaStream_t stream);
inline constexpr uint32_t kLeftOut = UINT32_MAX;

struct SuppressCall {
  const float* boxes;      ///< [n, 4]: two opposite corners each.
  const uint32_t* keys;    ///< Sorted,
  const uint32_t* places;  ///< with the boxes that they are of.
  int64_t n, max_count;
  float overlap_threshold;
  int32_t* picked;   ///< [max_count]; zeros follow.
  int64_t* count;    ///< May be null.
  int32_t* count32;  ///< May be null.
};
/// Picks boxes in the order of the keys that overlap with none before by more than the threshold.
cudaError_t LaunchSuppress(const SuppressCall& call, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_NON_MAX_SUPPRESSION_H_

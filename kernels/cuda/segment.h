/// Sums of rows by segments on CUDA.
#ifndef TROUPE_KERNELS_CUDA_SEGMENT_H_
#define TROUPE_KERNELS_CUDA_SEGMENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

/// out[s] is the sum of the rows of `data` that have the id s, in their order; zeros if none has.
struct SegmentCall {
  Number type;  ///< A real floating-point type, or int32.
  bool wide_ids;
  const void* data;
  const void* ids;  ///< int64, or int32.
  void* out;
  int64_t rows, length;  ///< Of `data`.
  int64_t segments;
};

/// Up to so many rows each segment looks at every id.
inline constexpr int64_t kFewRows = 512;

/// For up to kFewRows rows, in any order. Ids below 0 are left out, those from `segments` on are
/// reported: position, id, limit.
cudaError_t LaunchSumOfFew(const SegmentCall& call, LateCheck check, cudaStream_t stream);
/// What `LaunchSort` sorts: ids, or `segments` for those that are left out. Reports as above.
cudaError_t LaunchSegmentKeys(const SegmentCall& call, bool wide_keys, void* keys, LateCheck check,
                              cudaStream_t stream);
/// For keys (of 8 or 4 bytes) in order: the row of the r-th is places[r], or r for nullptr.
/// `starts`: segments + 1 places for where segments begin.
cudaError_t LaunchSumSorted(const SegmentCall& call, bool wide_keys, const void* keys,
                            const uint32_t* places, int64_t* starts, cudaStream_t stream);
/// Puts the last id into `last`, and reports ids that are negative or less than the one before
/// them: position, id, the one before.
cudaError_t LaunchCheckSorted(const SegmentCall& call, int64_t* last, LateCheck check,
                              cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SEGMENT_H_

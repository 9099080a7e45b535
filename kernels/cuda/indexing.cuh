/// Reading indices on the device.
#ifndef TROUPE_KERNELS_CUDA_INDEXING_CUH_
#define TROUPE_KERNELS_CUDA_INDEXING_CUH_

#include "kernels/cuda/indexing.h"
#include "kernels/cuda/late_check.cuh"

namespace troupe::cuda {

__device__ inline int64_t IndexAt(const Indices& indices, int64_t i) {
  switch (indices.type) {
    case Number::kInt8:
      return static_cast<const int8_t*>(indices.data)[i];
    case Number::kUint8:
      return static_cast<const uint8_t*>(indices.data)[i];
    case Number::kInt32:
      return static_cast<const int32_t*>(indices.data)[i];
    default:
      return static_cast<const int64_t*>(indices.data)[i];
  }
}

/// The number of the slice that row `row` names; -1 if there is none.
__device__ inline int64_t SlotOf(const NdIndices& nd, int64_t row, const LateCheck& check) {
  int64_t slot = 0;
  for (int64_t d = 0; d < nd.depth; ++d) {
    const int64_t at = row * nd.depth + d, index = IndexAt(nd.indices, at);
    if (index < 0 || index >= nd.sizes[d]) {
      if (!nd.ignores_bad) ReportLate(check, at, index, nd.sizes[d]);
      return -1;
    }
    slot = slot * nd.sizes[d] + index;
  }
  return slot;
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_INDEXING_CUH_

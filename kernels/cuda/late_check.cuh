/// How kernels of CUDA say that they have found an error (`LateErrors::Check`).
#ifndef TROUPE_KERNELS_CUDA_LATE_CHECK_CUH_
#define TROUPE_KERNELS_CUDA_LATE_CHECK_CUH_

#include <cuda_runtime_api.h>

#include "kernels/late_record.h"

namespace troupe::cuda {

/// Ends the step with the check's error, of these values, unless another thread has reported one.
/// The kernel goes on; what it leaves is never seen.
__device__ inline void ReportLate(const LateCheck& check, int64_t a, int64_t b = 0, int64_t c = 0) {
  LateRecord* const record = check.record;
  if (atomicCAS(&record->claimed, 0u, 1u) != 0) return;
  record->node = check.node;
  record->explain = check.explain;
  record->values[0] = a;
  record->values[1] = b;
  record->values[2] = c;
  __threadfence_system();
  atomicExch(&record->complete, 1u);
}

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_LATE_CHECK_CUH_

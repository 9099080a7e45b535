/// Finding numbers that are none, on cards.
#ifndef TROUPE_KERNELS_CUDA_CHECK_NUMERICS_H_
#define TROUPE_KERNELS_CUDA_CHECK_NUMERICS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

inline constexpr unsigned kHasNan = 1, kHasMinusInfinity = 2, kHasPlusInfinity = 4;

/// Enqueues a report of what the n numbers at `x` have of the above, if any: the check's first
/// value; `note` is the second one. `found` is scratch memory.
cudaError_t LaunchCheckNumerics(Number type, const void* x, int64_t n, unsigned* found,
                                const LateCheck& check, int64_t note, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CHECK_NUMERICS_H_

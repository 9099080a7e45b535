/// Conversions between element types, on cards.
#ifndef TROUPE_KERNELS_CUDA_CAST_H_
#define TROUPE_KERNELS_CUDA_CAST_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// Enqueues y[i] = x[i], converted, for i < n: what `Cast` says, but that numbers which do not fit
/// an integer become the nearest that does, and NaN becomes 0. `truncate`: bits of the mantissa
/// that `to` does not have are cut off. y may be x if elements have the same size.
cudaError_t LaunchCast(Number from, Number to, bool truncate, const void* x, void* y, int64_t n,
                       cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CAST_H_

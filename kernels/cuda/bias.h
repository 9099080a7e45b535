/// Biases of CUDA.
#ifndef TROUPE_KERNELS_CUDA_BIAS_H_
#define TROUPE_KERNELS_CUDA_BIAS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// out[i] = x[i] + bias[i / inner % channels] for i < n; real floating-point types and int32.
/// `out` may be `x`.
cudaError_t LaunchBiasAdd(Number type, const void* x, const void* bias, void* out, int64_t n,
                          int64_t inner, int64_t channels, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_BIAS_H_

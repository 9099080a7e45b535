/// Poolings of volumes on CUDA.
#ifndef TROUPE_KERNELS_CUDA_VOLUME_POOL_H_
#define TROUPE_KERNELS_CUDA_VOLUME_POOL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/cuda/windows.h"

namespace troupe::cuda {

/// Windows over volumes.
struct VolumePool {
  int64_t batch, channels;
  WindowAxis planes, rows, columns;
  bool channels_first;  ///< NCDHW, else NDHWC.
};

/// All are for half, bfloat16 and float, and for tensors that are not empty. Sums are formed as
/// floats, in a fixed order.

/// The largest element of each window. A NaN lasts until the next number.
cudaError_t LaunchVolumeMax(Number type, const VolumePool& p, const void* input, void* output,
                            cudaStream_t stream);
/// All elements of a window that equal the pooled one get its gradient.
cudaError_t LaunchVolumeMaxGrad(Number type, const VolumePool& p, const void* input,
                                const void* pooled, const void* gradient, void* output,
                                cudaStream_t stream);
/// Each window takes the gradient at its first element that equals the pooled one, or 0.
cudaError_t LaunchVolumeMaxGradGrad(Number type, const VolumePool& p, const void* input,
                                    const void* pooled, const void* gradient, void* output,
                                    cudaStream_t stream);
/// The mean of each window's elements that are not padding.
cudaError_t LaunchVolumeAvg(Number type, const VolumePool& p, const void* input, void* output,
                            cudaStream_t stream);
cudaError_t LaunchVolumeAvgGrad(Number type, const VolumePool& p, const void* gradient,
                                void* output, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_VOLUME_POOL_H_

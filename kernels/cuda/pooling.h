/// Poolings of CUDA.
#ifndef TROUPE_KERNELS_CUDA_POOLING_H_
#define TROUPE_KERNELS_CUDA_POOLING_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// One dimension of the windows.
struct PoolingAxis {
  int64_t input, output, size, stride, pad_before;
};

/// Windows over images.
struct Pooling {
  int64_t batch, depth;
  PoolingAxis rows, columns;
  bool channels_first;  ///< NCHW, else NHWC.
};

/// All are for half, bfloat16, float and double, and for outputs that are not empty. Sums are
/// formed in a fixed order, window by window.

/// The largest element of each window; NaN is smaller than all others, and so is nothing.
cudaError_t LaunchMaxPool(Number type, const Pooling& pooling, const void* input, void* output,
                          cudaStream_t stream);
/// The same over groups of `window` channels, of which there are `outputs`; NHWC.
cudaError_t LaunchMaxPoolDepth(Number type, int64_t outputs, int64_t window, const void* input,
                               void* output, cudaStream_t stream);
/// Each window's gradient goes to its first largest element. An image has less than 2^31 pixels.
/// `scratch` has room for an int32 for each window and channel.
cudaError_t LaunchMaxPoolGrad(Number type, const Pooling& pooling, const void* input,
                              const void* gradient, int32_t* scratch, void* output,
                              cudaStream_t stream);
/// Each window takes the gradient at its first element that equals the pooled one, or 0.
cudaError_t LaunchMaxPoolGradGrad(Number type, const Pooling& pooling, const void* input,
                                  const void* pooled, const void* gradient, void* output,
                                  cudaStream_t stream);
/// The mean of each window's elements that are not padding.
cudaError_t LaunchAvgPool(Number type, const Pooling& pooling, const void* input, void* output,
                          cudaStream_t stream);
cudaError_t LaunchAvgPoolGrad(Number type, const Pooling& pooling, const void* gradient,
                              void* output, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_POOLING_H_

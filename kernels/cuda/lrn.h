/// Local response normalization of CUDA.
#ifndef TROUPE_KERNELS_CUDA_LRN_H_
#define TROUPE_KERNELS_CUDA_LRN_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/number.h"
#include "kernels/simd/lrn.h"

namespace troupe::cuda {

/// Of pixels of form.depth channels: half, bfloat16 and float, computed as floats.
cudaError_t LaunchLrn(Number type, const LrnForm& form, int64_t pixels, const void* x, void* y,
                      cudaStream_t stream);
/// `scratch`: 2 * pixels * depth floats.
cudaError_t LaunchLrnGrad(Number type, const LrnForm& form, int64_t pixels, const void* dy,
                          const void* x, const void* y, float* scratch, void* dx,
                          cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_LRN_H_

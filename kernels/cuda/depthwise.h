/// Depthwise convolutions of CUDA.
#ifndef TROUPE_KERNELS_CUDA_DEPTHWISE_H_
#define TROUPE_KERNELS_CUDA_DEPTHWISE_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/number.h"
#include "kernels/cuda/tap_sums.h"
#include "kernels/cuda/windows.h"

namespace troupe::cuda {

/// Images of `depth` channels, which become `multiplier` channels each. A filter is
/// [rows, columns, depth, multiplier].
struct Depthwise {
  int64_t batch, depth, multiplier;
  WindowAxis rows, columns;
  bool channels_first;  ///< NCHW, else NHWC.

  /// How the filter's gradient is summed.
  TapSums filter_sums() const {
    return {batch * rows.output * columns.output, rows.size * columns.size, depth * multiplier,
            channels_first};
  }
};

/// All are for half, bfloat16, float and double, and for tensors that are not empty. Small numbers
/// are added as floats, and rounded last; sums have one order.
cudaError_t LaunchDepthwise(Number type, const Depthwise& d, const void* input, const void* filter,
                            void* output, cudaStream_t stream);
cudaError_t LaunchDepthwiseInputGrad(Number type, const Depthwise& d, const void* filter,
                                     const void* gradient, void* output, cudaStream_t stream);
/// `scratch`: filter_sums().scratch() numbers of 4 bytes, or of 8 for double.
cudaError_t LaunchDepthwiseFilterGrad(Number type, const Depthwise& d, const void* input,
                                      const void* gradient, void* scratch, void* output,
                                      cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_DEPTHWISE_H_

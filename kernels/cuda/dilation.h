/// Grayscale dilation of CUDA.
#ifndef TROUPE_KERNELS_CUDA_DILATION_H_
#define TROUPE_KERNELS_CUDA_DILATION_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/number.h"
#include "kernels/cuda/tap_sums.h"
#include "kernels/cuda/windows.h"

namespace troupe::cuda {

/// Images [batch, rows, columns, depth] and a filter [rows, columns, depth].
struct Dilation {
  int64_t batch, depth;
  WindowAxis rows, columns;

  int64_t outputs() const { return batch * rows.output * columns.output * depth; }
  /// How the filter's gradient is summed.
  TapSums filter_sums() const {
    return {batch * rows.output * columns.output, rows.size * columns.size, depth,
            /*channels_first=*/false};
  }
};

/// All are for half, bfloat16, float and double, and for tensors that are not empty.

/// The largest sum of an element and its tap; NaN is smaller than all others.
cudaError_t LaunchDilation(Number type, const Dilation& d, const void* input, const void* filter,
                           void* output, cudaStream_t stream);
/// taps[i]: the tap of output i's first largest sum, NaN only if that is the first one; -1 if there
/// is none.
cudaError_t LaunchDilationTaps(Number type, const Dilation& d, const void* input,
                               const void* filter, int32_t* taps, cudaStream_t stream);
/// Gradients go to where these are, in a fixed order.
cudaError_t LaunchDilationInputGrad(Number type, const Dilation& d, const int32_t* taps,
                                    const void* gradient, void* output, cudaStream_t stream);
/// `scratch`: filter_sums().scratch() numbers of 4 bytes, or of 8 for double.
cudaError_t LaunchDilationFilterGrad(Number type, const Dilation& d, const int32_t* taps,
                                     const void* gradient, void* scratch, void* output,
                                     cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_DILATION_H_

/// Max poolings of CUDA that say where the largest elements are.
#ifndef TROUPE_KERNELS_CUDA_POOL_ARGMAX_H_
#define TROUPE_KERNELS_CUDA_POOL_ARGMAX_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/cuda/windows.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

/// Windows over images [batch, rows, columns, depth].
struct ArgmaxPool {
  int64_t batch, depth;
  WindowAxis rows, columns;
  bool include_batch;  ///< Indices count all images' elements, else those of each.
};

/// All are for half, bfloat16, float and double, and for tensors that are not empty.

/// The first of the largest elements of each window, and its index; NaN if that is its first one,
/// else it is smaller than all others.
cudaError_t LaunchMaxPoolArgmax(Number type, const ArgmaxPool& p, const void* input, void* output,
                                int64_t* argmax, cudaStream_t stream);
/// Each element gets the gradients of the outputs that have its index, in their order. `strays` is
/// scratch memory for one number. Reports an index that is none of the output's image: the output,
/// the index, and the number of its image's elements, or, if `include_batch`, the first of these.
cudaError_t LaunchMaxPoolArgmaxGrad(Number type, const ArgmaxPool& p, const void* gradient,
                                    const int64_t* argmax, int32_t* strays, const LateCheck& check,
                                    void* output, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_POOL_ARGMAX_H_

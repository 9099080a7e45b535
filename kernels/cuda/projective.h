/// Projective transforms of images on CUDA.
#ifndef TROUPE_KERNELS_CUDA_PROJECTIVE_H_
#define TROUPE_KERNELS_CUDA_PROJECTIVE_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/number.h"
#include "kernels/image/projective_formulas.h"

namespace troupe::cuda {

/// Images [batch, from_height, from_width, channels] become of `height` and `width`.
struct Projection {
  int64_t batch, from_height, from_width, channels;
  int64_t height, width;
  const float* transforms;  ///< Of 8 numbers,
  int64_t transform_step;   ///< so far apart for the images.
  bool bilinear;
  Outside outside;
  float fill_value;
};

/// Of uint8, int32, int64, half, float and double; the output is not empty.
cudaError_t LaunchProjection(Number type, const Projection& p, const void* images, void* out,
                             cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_PROJECTIVE_H_

/// Crops of images, resized, on CUDA.
#ifndef TROUPE_KERNELS_CUDA_CROP_H_
#define TROUPE_KERNELS_CUDA_CROP_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

/// Images [batch, height, width, channels] and crops [boxes, crop_height, crop_width, channels].
/// Box i, at [4 i] of `boxes`, is [y1, x1, y2, x2] of image indices[i].
struct Crops {
  int64_t batch, height, width, channels;
  int64_t count, crop_height, crop_width;
  const float* boxes;
  const int32_t* indices;
  bool nearest;
};

/// Reports boxes that are of no image or not finite: the box, its index, or -1, and the number of
/// images, or -1. What the functions below give for these is not defined.
cudaError_t LaunchCheckCrops(const Crops& c, const LateCheck& check, cudaStream_t stream);

/// The rest is for outputs that are not empty, and images of half, float and double.

/// Pixels outside of the image are `outside`.
cudaError_t LaunchCrop(Number type, const Crops& c, const void* images, float outside, float* crops,
                       cudaStream_t stream);
/// Sums are formed in the order of boxes, then of their pixels' positions.
cudaError_t LaunchCropGradImage(Number type, const Crops& c, const float* grads, void* out,
                                cudaStream_t stream);
cudaError_t LaunchCropGradBoxes(Number type, const Crops& c, const float* grads, const void* images,
                                float* out, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_CROP_H_

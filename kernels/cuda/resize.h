/// Resizing of images on CUDA.
#ifndef TROUPE_KERNELS_CUDA_RESIZE_H_
#define TROUPE_KERNELS_CUDA_RESIZE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// An axis that has `from` pixels and gets `to`, each `scale` old ones large.
struct ResizedAxis {
  int64_t from, to;
  float scale;
  bool align_corners, half_pixel_centers;
  bool nearest;  ///< New pixels are old ones, else they lie between two.
};

/// Images [batch, rows, columns, channels].
struct Resizing {
  int64_t batch, channels;
  ResizedAxis rows, columns;
};

/// All are for outputs that are not empty.

/// Of half, bfloat16, float and double, which are interpolated as floats.
cudaError_t LaunchResizeBilinear(Number type, const Resizing& r, const void* in, float* out,
                                 cudaStream_t stream);
/// Of elements of 1 to 16 bytes.
cudaError_t LaunchResizeNearest(int64_t bytes, const Resizing& r, const void* in, void* out,
                                cudaStream_t stream);
/// Gradients of either. Small numbers are added as floats, in the order of the pixels, first along
/// rows. Types are floating-point ones, the same, or `from` is float. `scratch`: batch *
/// rows.to * columns.from * channels numbers of 4 bytes, or of 8 if `from` is double.
cudaError_t LaunchResizeGrad(Number from, Number to, const Resizing& r, const void* gradient,
                             void* scratch, void* out, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_RESIZE_H_

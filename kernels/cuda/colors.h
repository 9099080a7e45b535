/// Colors of pixels on CUDA.
#ifndef TROUPE_KERNELS_CUDA_COLORS_H_
#define TROUPE_KERNELS_CUDA_COLORS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

enum class ColorOp : uint8_t { kToHsv, kToRgb };
/// Of pixels of three channels, float or double.
cudaError_t LaunchConvertColors(ColorOp op, Number type, const void* in, int64_t pixels, void* out,
                                cudaStream_t stream);

enum class ColorChange : uint8_t { kTurnHue, kScaleSaturation };
/// Of pixels of three channels, float or half, which is computed as float. `by` is in the card's
/// memory; `out` may be `in`.
cudaError_t LaunchChangeColors(ColorChange change, Number type, const void* in, const float* by,
                               int64_t pixels, void* out, cudaStream_t stream);

/// Pixels that move away from the mean of their channel in their image. All are in the card's
/// memory.
struct Contrast {
  int64_t images, pixels, channels;
  const float* means;  ///< [images, channels]
  const float* factor;
  const float *low = nullptr, *high = nullptr;  ///< What results are cut to, if it is there.
};
/// Float or half; `out` may be `in`.
cudaError_t LaunchContrast(Number type, const Contrast& c, const void* in, void* out,
                           cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_COLORS_H_

/// Where pixels of a crop lie in an image, for processors and cards. Plain types only, for all
/// compilers.
#ifndef TROUPE_KERNELS_IMAGE_CROP_POSITION_H_
#define TROUPE_KERNELS_IMAGE_CROP_POSITION_H_

#include <math.h>

#include <cstdint>

#include "kernels/common/device_function.h"

namespace troupe {

/// Along an axis: a part of an image of `size` pixels becomes `crop_size` pixels.
struct CropAxis {
  int64_t crop_size, size;
  float from, to;  ///< 0 and 1 are the first and the last pixel.

  /// Where pixel `i` of the crop lies, counted in pixels of the image.
  TROUPE_DEVICE_FUNCTION float At(int64_t i) const {
    const auto last = static_cast<float>(size - 1);
    if (crop_size > 1) {
      const float step = (to - from) * last / static_cast<float>(crop_size - 1);
      return from * last + static_cast<float>(i) * step;
    }
    return static_cast<float>(0.5 * static_cast<double>(from + to) * static_cast<double>(last));
  }
};

/// The pixels of the image around one of the crop. -1 is outside.
struct CropPosition {
  int64_t lower = -1, upper = -1;
  float fraction = 0;

  TROUPE_DEVICE_FUNCTION static CropPosition Of(const CropAxis& axis, int64_t i) {
    const float at = axis.At(i);
    if (!(at >= 0 && at <= static_cast<float>(axis.size - 1))) return {-1, -1, 0};
    const float floor = floorf(at);
    return {static_cast<int64_t>(floor), static_cast<int64_t>(ceilf(at)), at - floor};
  }
  TROUPE_DEVICE_FUNCTION bool inside() const { return lower >= 0; }
  TROUPE_DEVICE_FUNCTION int64_t nearest() const { return fraction < 0.5f ? lower : upper; }
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_CROP_POSITION_H_

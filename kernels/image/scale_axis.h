/// The axis of an image that is scaled and moved, for ScaleAndTranslate.
#ifndef TROUPE_KERNELS_IMAGE_SCALE_AXIS_H_
#define TROUPE_KERNELS_IMAGE_SCALE_AXIS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/image/resize_axis.h"

namespace troupe {

/// How an old pixel counts for a new one, by their distance.
struct ScaleFilter {
  float radius;              ///< Further away it counts for nothing.
  float (*weight)(float x);  ///< x >= 0.
};

/// By its name in TensorFlow. InvalidArgument for others.
absl::StatusOr<ScaleFilter> FindScaleFilter(std::string_view name);

struct ScaleOptions {
  ScaleFilter filter;
  bool antialias;  ///< Makes the filter wider where the image becomes smaller.
};

/// The position x of the old image, with pixel i at i + 0.5, becomes scale * x + translation. New
/// pixels that were outside of it are made of none. `scale` is positive. ResourceExhausted if the
/// weights are too many to be counted by 32 bits.
absl::StatusOr<ResizeAxis> ScaledAxis(int64_t from, int64_t to, float scale, float translation,
                                      const ScaleOptions& options);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_SCALE_AXIS_H_

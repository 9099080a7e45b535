/// Shapes of images whose colors are changed.
#ifndef TROUPE_KERNELS_IMAGE_COLOR_SHAPE_H_
#define TROUPE_KERNELS_IMAGE_COLOR_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

inline constexpr int64_t kRgb = 3;

/// FailedPrecondition or InvalidArgument unless `images` are of pixels of three channels.
inline absl::Status CheckPixels(const Shape& images) {
  if (images.rank() < 1) {
    return InvalidArgument("`images` must have a dimension of 3 channels");
  }
  if (images.dim(images.rank() - 1) == kRgb) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("`images` must have 3 channels, got shape ", images.ToString()));
}

/// InvalidArgument unless `images` are [..., height, width, 3] and `by` is a scalar.
inline absl::Status CheckAdjusted(const Shape& images, const Shape& by) {
  if (images.rank() < 3 || images.dim(images.rank() - 1) != kRgb) {
    return InvalidArgument("`images` must be [..., height, width, 3], got shape ",
                           images.ToString());
  }
  if (by.rank() == 0) return absl::OkStatus();
  return InvalidArgument("input 1 must be a scalar, got shape ", by.ToString());
}

struct ImagePixels {
  int64_t images, pixels, channels;  ///< `pixels` of each image.
};

/// Of [..., height, width, channels]; else InvalidArgument.
inline absl::StatusOr<ImagePixels> PixelsOf(const Shape& images) {
  const int rank = images.rank();
  if (rank < 3) {
    return InvalidArgument("`images` must be [..., height, width, channels], got shape ",
                           images.ToString());
  }
  ImagePixels s{1, images.dim(rank - 3) * images.dim(rank - 2), images.dim(rank - 1)};
  for (int d = 0; d < rank - 3; ++d) s.images *= images.dim(d);
  return s;
}

/// InvalidArgument unless it is a scalar.
inline absl::Status CheckScalar(const Shape& scalar, const char* what) {
  if (scalar.rank() == 0) return absl::OkStatus();
  return InvalidArgument("`", what, "` must be a scalar, got shape ", scalar.ToString());
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_COLOR_SHAPE_H_

#include "kernels/image/resize_shape.h"

#include "kernels/common/integer_input.h"

namespace troupe {
namespace {

/// Positions are floats, and indices 32 bits wide.
constexpr int64_t kMaxSize = INT32_MAX;
/// Above, indices that are computed as floats leave pixels out.
constexpr int64_t kMaxNearest = int64_t{1} << 24;

absl::Status CheckMode(const ResizeMode& mode) {
  if (!mode.align_corners || !mode.half_pixel_centers) return absl::OkStatus();
  return InvalidArgument("`align_corners` and `half_pixel_centers` exclude each other");
}

absl::Status CheckImages(const Tensor& images, std::string_view what) {
  if (images.rank() != 4) {
    return InvalidArgument("`", what, "` must be [batch, height, width, channels], got shape ",
                           images.shape().ToString());
  }
  if (images.dim(1) > 0 && images.dim(2) > 0 && images.dim(1) < kMaxSize &&
      images.dim(2) < kMaxSize) {
    return absl::OkStatus();
  }
  return InvalidArgument("`", what, "` must have 1 to 2^31 - 2 rows and columns, got shape ",
                         images.shape().ToString());
}

}  // namespace

ResizeMode ResizeModeOf(const KernelConstruction& construction) {
  return {construction.Attr<bool>("align_corners"), construction.Attr<bool>("half_pixel_centers")};
}

absl::StatusOr<HeightAndWidth> ReadImageSize(const Tensor& size, std::string_view what) {
  TROUPE_ASSIGN_OR_RETURN(const DimVector values, ReadIntegerVector(size, what));
  if (values.size() != 2) {
    return InvalidArgument("`", what, "` must be a height and a width, got ", values.size(),
                           " numbers");
  }
  if (values[0] <= 0 || values[1] <= 0) {
    return InvalidArgument("`", what, "` must be positive, got ", values[0], " x ", values[1]);
  }
  return HeightAndWidth{values[0], values[1]};
}

absl::StatusOr<ResizeShape> ResizeShapeOf(const Tensor& images, const Tensor& size,
                                          const ResizeMode& mode) {
  TROUPE_RETURN_IF_ERROR(CheckMode(mode));
  TROUPE_RETURN_IF_ERROR(CheckImages(images, "images"));
  if (images.dim(3) == 0) return InvalidArgument("`images` must have channels");
  TROUPE_ASSIGN_OR_RETURN(const HeightAndWidth to, ReadImageSize(size, "size"));
  return ResizeShape{images.dim(0), images.dim(3), images.dim(1),
                     images.dim(2), to.height,     to.width};
}

absl::StatusOr<ResizeShape> NearestShapeOf(const Tensor& images, const Tensor& size,
                                           const ResizeMode& mode) {
  TROUPE_ASSIGN_OR_RETURN(const ResizeShape s, ResizeShapeOf(images, size, mode));
  if (s.from_height < kMaxNearest && s.from_width < kMaxNearest) return s;
  return InvalidArgument("`images` must have less than ", kMaxNearest,
                         " rows and columns, got shape ", images.shape().ToString());
}

absl::StatusOr<ResizeShape> NearestGradShapeOf(const Tensor& grads, const Tensor& size) {
  if (grads.rank() != 4) {
    return InvalidArgument("`grads` must be [batch, height, width, channels], got shape ",
                           grads.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const HeightAndWidth original, ReadImageSize(size, "size"));
  return ResizeShape{grads.dim(0),   grads.dim(3), original.height,
                     original.width, grads.dim(1), grads.dim(2)};
}

absl::StatusOr<ResizeShape> ResizeGradShapeOf(const Tensor& grads, const Tensor& original,
                                              const ResizeMode& mode) {
  TROUPE_RETURN_IF_ERROR(CheckMode(mode));
  TROUPE_RETURN_IF_ERROR(CheckImages(grads, "grads"));
  TROUPE_RETURN_IF_ERROR(CheckImages(original, "original_image"));
  if (grads.dim(0) != original.dim(0) || grads.dim(3) != original.dim(3)) {
    return InvalidArgument("`grads` and `original_image` must agree in batch and channels, got ",
                           grads.shape().ToString(), " and ", original.shape().ToString());
  }
  return ResizeShape{grads.dim(0),    grads.dim(3), original.dim(1),
                     original.dim(2), grads.dim(1), grads.dim(2)};
}

}  // namespace troupe

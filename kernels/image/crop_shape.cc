#include "kernels/image/crop_shape.h"

#include <string_view>

#include "kernels/common/integer_input.h"
#include "kernels/image/resize_shape.h"

namespace troupe {
namespace {

absl::Status CheckImages(const Tensor& image, std::string_view what) {
  if (image.rank() == 4 && image.dim(1) > 0 && image.dim(2) > 0) return absl::OkStatus();
  return InvalidArgument("`", what, "` must be [batch, height, width, channels] with pixels, got ",
                         image.shape().ToString());
}

absl::Status CheckBoxes(const CropBoxes& b) {
  if (b.boxes.rank() == 2 && b.boxes.dim(1) == 4 && b.indices.rank() == 1 &&
      b.indices.dim(0) == b.boxes.dim(0)) {
    return absl::OkStatus();
  }
  return InvalidArgument("`boxes` must be [n, 4] and `box_ind` [n], got shapes ",
                         b.boxes.shape().ToString(), " and ", b.indices.shape().ToString());
}

/// Gradients of crops: of as many as there are boxes, and with the image's channels.
absl::Status CheckGradients(const Tensor& grads, int64_t channels) {
  if (grads.dim(3) == channels) return absl::OkStatus();
  return InvalidArgument("`grads` have ", grads.dim(3), " channels, the image ", channels);
}
absl::Status CheckCount(const CropShape& s, const CropBoxes& boxes) {
  if (s.boxes == boxes.boxes.dim(0)) return absl::OkStatus();
  return InvalidArgument("`grads` are of ", s.boxes, " crops; there are ", boxes.boxes.dim(0),
                         " boxes");
}

}  // namespace

absl::StatusOr<CropShape> CropShapeOf(const Tensor& image, const CropBoxes& boxes,
                                      const Tensor& crop_size) {
  TROUPE_RETURN_IF_ERROR(CheckImages(image, "image"));
  TROUPE_RETURN_IF_ERROR(CheckBoxes(boxes));
  TROUPE_ASSIGN_OR_RETURN(const HeightAndWidth size, ReadImageSize(crop_size, "crop_size"));
  return CropShape{image.dim(0),       image.dim(1), image.dim(2), image.dim(3),
                   boxes.boxes.dim(0), size.height,  size.width};
}

absl::StatusOr<CropShape> CropGradImageShapeOf(const Tensor& grads, const CropBoxes& boxes,
                                               const Tensor& image_size) {
  TROUPE_RETURN_IF_ERROR(CheckImages(grads, "grads"));
  TROUPE_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(image_size, "image_size"));
  if (size.size() != 4 || size[0] < 0 || size[1] <= 0 || size[2] <= 0) {
    return InvalidArgument("`image_size` must be [batch, height, width, channels] with pixels");
  }
  TROUPE_RETURN_IF_ERROR(CheckGradients(grads, size[3]));
  TROUPE_RETURN_IF_ERROR(CheckBoxes(boxes));
  const CropShape s{size[0], size[1], size[2], size[3], grads.dim(0), grads.dim(1), grads.dim(2)};
  TROUPE_RETURN_IF_ERROR(CheckCount(s, boxes));
  return s;
}

absl::StatusOr<CropShape> CropGradBoxesShapeOf(const Tensor& grads, const Tensor& image,
                                               const CropBoxes& boxes) {
  TROUPE_RETURN_IF_ERROR(CheckImages(grads, "grads"));
  TROUPE_RETURN_IF_ERROR(CheckImages(image, "image"));
  TROUPE_RETURN_IF_ERROR(CheckGradients(grads, image.dim(3)));
  TROUPE_RETURN_IF_ERROR(CheckBoxes(boxes));
  const CropShape s{image.dim(0), image.dim(1), image.dim(2), image.dim(3),
                    grads.dim(0), grads.dim(1), grads.dim(2)};
  TROUPE_RETURN_IF_ERROR(CheckCount(s, boxes));
  return s;
}

absl::Status BadCropIndex(int64_t i, int64_t image, int64_t batch) {
  return absl::OutOfRangeError(
      StrCat("`box_ind`[", i, "] is ", image, "; there are ", batch, " images"));
}

absl::Status InfiniteCropBox(int64_t i) { return InvalidArgument("box ", i, " is not finite"); }

}  // namespace troupe

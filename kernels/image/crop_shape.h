/// Shapes of CropAndResize and its gradients.
#ifndef TROUPE_KERNELS_IMAGE_CROP_SHAPE_H_
#define TROUPE_KERNELS_IMAGE_CROP_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// What the three ops have in common.
struct CropShape {
  int64_t batch, height, width, channels;  ///< Of images.
  int64_t boxes, crop_height, crop_width;

  Shape image_shape() const { return {batch, height, width, channels}; }
  Shape crops_shape() const { return {boxes, crop_height, crop_width, channels}; }
};

/// Two of the inputs: boxes [n, 4], and the images that they are of [n].
struct CropBoxes {
  const Tensor &boxes, &indices;
};

/// Sizes are on the host. InvalidArgument if shapes do not fit each other; values of boxes are not
/// looked at.
absl::StatusOr<CropShape> CropShapeOf(const Tensor& image, const CropBoxes& boxes,
                                      const Tensor& crop_size);
absl::StatusOr<CropShape> CropGradImageShapeOf(const Tensor& grads, const CropBoxes& boxes,
                                               const Tensor& image_size);
absl::StatusOr<CropShape> CropGradBoxesShapeOf(const Tensor& grads, const Tensor& image,
                                               const CropBoxes& boxes);

/// OutOfRange: box `i` is of image `image`, of `batch` images.
absl::Status BadCropIndex(int64_t i, int64_t image, int64_t batch);
/// InvalidArgument.
absl::Status InfiniteCropBox(int64_t i);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_CROP_SHAPE_H_

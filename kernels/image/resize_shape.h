/// Shapes of images that are resized.
#ifndef TROUPE_KERNELS_IMAGE_RESIZE_SHAPE_H_
#define TROUPE_KERNELS_IMAGE_RESIZE_SHAPE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "kernels/image/resize_axis.h"
#include "kernels/kernel.h"

namespace troupe {

/// From `from_height` x `from_width` to `height` x `width`.
struct ResizeShape {
  int64_t batch, channels;
  int64_t from_height, from_width;
  int64_t height, width;
};

/// The attributes of a node, `half_pixel_centers` if its op has it.
ResizeMode ResizeModeOf(const KernelConstruction& construction);

/// `size`, a vector of a height and a width. InvalidArgument unless both are positive; `what` names
/// it.
struct HeightAndWidth {
  int64_t height, width;
};
absl::StatusOr<HeightAndWidth> ReadImageSize(const Tensor& size, std::string_view what);

/// For images [batch, height, width, channels], none of them empty, that become of `size`.
absl::StatusOr<ResizeShape> ResizeShapeOf(const Tensor& images, const Tensor& size,
                                          const ResizeMode& mode);
/// The same for pixels that are the nearest ones, of which indices are computed as floats.
absl::StatusOr<ResizeShape> NearestShapeOf(const Tensor& images, const Tensor& size,
                                           const ResizeMode& mode);
/// For their gradients, of images of `size`.
absl::StatusOr<ResizeShape> NearestGradShapeOf(const Tensor& grads, const Tensor& size);
/// For gradients of images that were resized from `original`.
absl::StatusOr<ResizeShape> ResizeGradShapeOf(const Tensor& grads, const Tensor& original,
                                              const ResizeMode& mode);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_RESIZE_SHAPE_H_

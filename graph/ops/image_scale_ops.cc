// ScaleAndTranslate and its gradient.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/image_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status ScaledShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRank(c->input(0), 4));
  for (int i : {2, 3}) {  // `scale` and `translation`
    TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(i), 1));
    TROUPE_RETURN_IF_ERROR(WithValue(vector.dim(0), 2).status());
  }
  return SizedImages(c, images.dim(0), 1, images.dim(3));
}

absl::Status LikeImageShape(InferenceContext* c) { return SetShape(c, c->input(1)); }

}  // namespace

REGISTER_OP("ScaleAndTranslate")
    .Signature("images: T, size: int32, scale: float, translation: float -> resized_images: float")
    .Attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}")
    .Attr("kernel_type: string = 'lanczos3'")
    .Attr("antialias: bool = true")
    .SetShapeFn(ScaledShape)
    .Doc(
        "Scales images [batch, height, width, channels] about their corner, moves them, and cuts "
        "them to `size` = [height, width]. A position [y, x], with the first pixel at [0.5, 0.5], "
        "becomes `scale` [2] times it plus `translation` [2]. `kernel_type` is how pixels count by "
        "their distance: lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or "
        "mitchellcubic. `antialias` makes distances smaller where an image becomes smaller. What "
        "was outside of the image is 0.");

REGISTER_OP("ScaleAndTranslateGrad")
    .Signature("grads: T, original_image: T, scale: float, translation: float -> output: T")
    .Attr("T: {float}")
    .Attr("kernel_type: string = 'lanczos3'")
    .Attr("antialias: bool = true")
    .SetShapeFn(LikeImageShape)
    .Doc(
        "Gradient of `ScaleAndTranslate`, with the same attributes, `scale` and `translation`, for "
        "images of the shape of `original_image`; so has `output`. `grads` is that of the result.");

}  // namespace troupe

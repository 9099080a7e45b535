// Images as tensors: resizing, colors, crops, patches, transforms.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/image_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

// --- resizing ------------------------------------------------------------------------------------

absl::Status ResizedShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRank(c->input(0), 4));
  return SizedImages(c, images.dim(0), 1, images.dim(3));
}

absl::Status LikeOriginalShape(InferenceContext* c) { return SetShape(c, c->input(1)); }

constexpr char kImageTypes[] =
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";
/// TensorFlow names bfloat16 twice.
constexpr char kBilinearTypes[] =
    "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}";

OpDefBuilder Define(const char* name, const char* signature, const char* types,
                    bool half_pixel_centers, ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature).Attr(types).Attr("align_corners: bool = false");
  if (half_pixel_centers) op.Attr("half_pixel_centers: bool = false");
  op.SetShapeFn(shape_fn).Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kResizeOps[] = {
    Define(
        "ResizeArea", "images: T, size: int32 -> resized_images: float", kImageTypes, false,
        ResizedShape,
        "Resizes images [batch, height, width, channels] to `size` = [height, width]. A pixel is "
        "the mean of the area that it covers. `align_corners` puts the centers of the corner "
        "pixels over one another."),
    Define("ResizeBicubic", "images: T, size: int32 -> resized_images: float", kImageTypes, true,
           ResizedShape,
           "As `ResizeArea`, by cubic convolution of 4 x 4 pixels. `half_pixel_centers` puts the "
           "centers of pixels at half-integer coordinates."),
    Define("ResizeBicubicGrad", "grads: float, original_image: T -> output: T",
           "T: {float, double}", true, LikeOriginalShape,
           "Gradient of `ResizeBicubic` for an input of the shape of `original_image`."),
    Define("ResizeBilinear", "images: T, size: int32 -> resized_images: float", kBilinearTypes,
           true, ResizedShape, "As `ResizeBicubic`, by linear interpolation between 2 x 2 pixels."),
    Define("ResizeBilinearGrad", "grads: float, original_image: T -> output: T",
           "T: {float, bfloat16, half, double}", true, LikeOriginalShape,
           "Gradient of `ResizeBilinear` for an input of the shape of `original_image`."),
    Define("ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T", kImageTypes,
           true, ResizedShape, "As `ResizeBicubic`; a pixel is the nearest one of `images`."),
    Define("ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T",
           "T: {uint8, int8, int32, half, float, double, bfloat16}", true, ResizedShape,
           "Gradient of `ResizeNearestNeighbor` for images of the height and width `size`."),
};

// --- colors --------------------------------------------------------------------------------------

/// Output 0 like input 0; `scalars` inputs after it are scalars.
absl::Status WithScalars(InferenceContext* c, int scalars) {
  for (int i = 1; i <= scalars; ++i) {
    TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  }
  return UnchangedOfRankAtLeast<3>(c);
}
absl::Status ContrastShape(InferenceContext* c) { return WithScalars(c, 3); }
absl::Status ContrastV2Shape(InferenceContext* c) { return WithScalars(c, 1); }

absl::Status ThreeChannelsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRankAtLeast(c->input(0), 1));
  if (images.unknown_rank()) return SetShape(c, images);
  TROUPE_ASSIGN_OR_RETURN(const int64_t channels, WithValue(C::DimOf(images, -1), 3));
  return SetShape(c, C::ReplaceDim(images, images.rank() - 1, channels));
}

REGISTER_OP("AdjustContrast")
    .Signature(
        "images: T, contrast_factor: float, min_value: float, max_value: float -> output: float")
    .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
    .Deprecated(2, "Use AdjustContrastv2.")
    .SetShapeFn(ContrastShape)
    .Doc("As `AdjustContrastv2`; results are cut to [min_value, max_value].");

REGISTER_OP("AdjustContrastv2")
    .Signature("images: T, contrast_factor: float -> output: T")
    .Attr("T: {half, float} = DT_FLOAT")
    .SetShapeFn(ContrastV2Shape)
    .Doc(
        "Moves each pixel of `images` [..., height, width, channels] away from the mean of its "
        "channel in its image: (x - mean) contrast_factor + mean.");

REGISTER_OP("AdjustHue")
    .Signature("images: T, delta: float -> output: T")
    .Attr("T: {half, float} = DT_FLOAT")
    .SetShapeFn(UnchangedOfRankAtLeast<3>)
    .Doc("Turns the hue of RGB images [..., height, width, 3] by `delta`; 1 is a full turn.");

REGISTER_OP("AdjustSaturation")
    .Signature("images: T, scale: float -> output: T")
    .Attr("T: {half, float} = DT_FLOAT")
    .SetShapeFn(UnchangedOfRankAtLeast<3>)
    .Doc(
        "Multiplies the saturation of RGB images [..., height, width, 3] by `scale` and cuts it to "
        "[0, 1].");

REGISTER_OP("HSVToRGB")
    .Signature("images: T -> output: T")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .SetShapeFn(ThreeChannelsShape)
    .Doc("Converts pixels [..., 3] of hue, saturation and value to RGB; all are in [0, 1].");

REGISTER_OP("RGBToHSV")
    .Signature("images: T -> output: T")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .SetShapeFn(ThreeChannelsShape)
    .Doc(
        "Converts RGB pixels [..., 3] to hue, saturation and value; all are in [0, 1]. Red has hue "
        "0, green 1/3, blue 2/3.");

// --- crops, patches, transforms ------------------------------------------------------------------

/// The number of boxes: the common first size of `boxes` [n, 4] and `indices` [n].
absl::StatusOr<int64_t> BoxCount(const PartialShape& boxes, const PartialShape& indices) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix, C::WithRank(boxes, 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(indices, 1));
  TROUPE_RETURN_IF_ERROR(WithValue(matrix.dim(1), 4).status());
  return C::MergeDim(matrix.dim(0), vector.dim(0));
}

absl::Status CropAndResizeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape image, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const int64_t count, BoxCount(c->input(1), c->input(2)));
  return SizedImages(c, count, 3, image.dim(3));
}

absl::Status CropGradImageShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->InputAsShape(3));
  return SetShape(c, C::WithRank(shape, 4));
}

absl::Status CropGradBoxesShape(InferenceContext* c) { return SetShape(c, c->input(2)); }

REGISTER_OP("CropAndResize")
    .Signature("image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float")
    .Attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
    .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
    .Attr("extrapolation_value: float = 0")
    .SetShapeFn(CropAndResizeShape)
    .Doc(
        "Cuts boxes out of images [batch, height, width, channels] and resizes each to `crop_size` "
        "= [height, width]. Box i is `boxes`[i] = [y1, x1, y2, x2] of image `box_ind`[i], where 0 "
        "and 1 are the first and the last row or column; y1 > y2 flips it. Outside of the image "
        "is `extrapolation_value`.");

REGISTER_OP("CropAndResizeGradBoxes")
    .Signature("grads: float, image: T, boxes: float, box_ind: int32 -> output: float")
    .Attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
    .Attr("method: {'bilinear'} = 'bilinear'")
    .SetShapeFn(CropGradBoxesShape)
    .Doc("Gradient of `CropAndResize` for its boxes.");

REGISTER_OP("CropAndResizeGradImage")
    .Signature("grads: float, boxes: float, box_ind: int32, image_size: int32 -> output: T")
    .Attr("T: {float, half, double}")
    .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
    .SetShapeFn(CropGradImageShape)
    .Doc("Gradient of `CropAndResize` for an image of the shape `image_size`.");

absl::Status GlimpseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape offsets, C::WithRank(c->input(2), 2));
  TROUPE_RETURN_IF_ERROR(WithValue(offsets.dim(1), 2).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, C::MergeDim(input.dim(0), offsets.dim(0)));
  return SizedImages(c, batch, 1, input.dim(3));
}

OpDefBuilder DefineGlimpse(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("input: float, size: int32, offsets: float -> glimpse: float")
      .Attr("centered: bool = true")
      .Attr("normalized: bool = true")
      .Attr("uniform_noise: bool = true")
      .Attr("noise: string = 'uniform'")
      .SetShapeFn(GlimpseShape)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kGlimpseOps[] = {
    DefineGlimpse(
        "ExtractGlimpse",
        "Cuts a window of `size` = [height, width] out of each image of `input` [batch, height, "
        "width, channels], around `offsets`[i] = [y, x]. These are pixels, or, if `normalized`, "
        "parts of the image; from its corner on, or, if `centered`, halves of them from its center "
        "on. Outside of the image is `noise`: 'uniform', 'gaussian' or 'zero'."),
    DefineGlimpse(
        "ExtractGlimpseV2",
        "As `ExtractGlimpse`, but `offsets` are those of the window's corner, and never halves, "
        "unless both `centered` and `normalized`: then they are as there."),
};

absl::Status PatchesShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, FourIntegers(c, "ksizes"));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, FourIntegers(c, "strides"));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> rates, FourIntegers(c, "rates"));
  for (int d = 1; d <= 2; ++d) {
    if (sizes[d] > 0 && strides[d] > 0 && rates[d] > 0) continue;
    return InvalidArgument("dimension ", d, ": patch ", sizes[d], ", stride ", strides[d],
                           ", rate ", rates[d], "; all must be positive");
  }
  std::string name;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("padding", &name));
  const Padding padding = name == "SAME" ? Padding::kSame : Padding::kValid;
  std::vector<int64_t> out = {images.dim(0), -1, -1, images.dim(3)};
  for (int d = 1; d <= 2; ++d) {
    TROUPE_ASSIGN_OR_RETURN(
        out[d], WindowPositions(images.dim(d), sizes[d], rates[d], strides[d], padding, 0, 0));
    TROUPE_ASSIGN_OR_RETURN(out[3], MultiplyDims(out[3], sizes[d]));
  }
  // As in TensorFlow, both or neither.
  if (out[1] < 0 || out[2] < 0) out[1] = out[2] = -1;
  return SetShape(c, PartialShape(out));
}

REGISTER_OP("ExtractImagePatches")
    .Signature("images: T -> patches: T")
    .Attr("ksizes: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("rates: list(int) >= 4")
    .Attr(
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
        "uint64, complex64, complex128, bool}")
    .Attr("padding: {'SAME', 'VALID'}")
    .SetShapeFn(PatchesShape)
    .Doc(
        "Takes patches of `ksizes` = [1, rows, columns, 1] pixels, `rates` apart, at distances "
        "`strides`, out of images [batch, height, width, channels], and puts the pixels of each "
        "one after the other: [batch, patch rows, patch columns, rows * columns * channels].");

absl::Status ProjectedShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRank(c->input(0), 4));
  return SizedImages(c, images.dim(0), 2, images.dim(3));
}

REGISTER_OP("ImageProjectiveTransformV2")
    .Signature("images: dtype, transforms: float, output_shape: int32 -> transformed_images: dtype")
    .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
    .Attr("interpolation: string")
    .Attr("fill_mode: string = 'CONSTANT'")
    .SetShapeFn(ProjectedShape)
    .Doc(
        "Gives images [batch, height, width, channels] of the height and width `output_shape`, the "
        "pixel (x, y) of which comes from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the "
        "input, k = c0 x + c1 y + 1. `transforms` has a row [a0, a1, a2, b0, b1, b2, c0, c1] for "
        "each image, or one for all. `interpolation` is NEAREST or BILINEAR; `fill_mode` says what "
        "lies outside: CONSTANT (0), REFLECT, WRAP or NEAREST.");

REGISTER_OP("ImageProjectiveTransformV3")
    .Signature(
        "images: dtype, transforms: float, output_shape: int32, fill_value: float -> "
        "transformed_images: dtype")
    .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
    .Attr("interpolation: string")
    .Attr("fill_mode: string = 'CONSTANT'")
    .SetShapeFn(ProjectedShape)
    .Doc(
        "As `ImageProjectiveTransformV2`, but what lies outside is `fill_value` where the fill "
        "mode is CONSTANT.");

absl::Status RandomCropShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape image, C::WithRank(c->input(0), 3));
  TROUPE_ASSIGN_OR_RETURN(const ImageSize size, ImageSizeInput(c, 1));
  return SetShape(c, PartialShape({size.height, size.width, image.dim(2)}));
}

REGISTER_OP("RandomCrop")
    .Signature("image: T, size: int64 -> output: T")
    .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .SetIsStateful()
    .Deprecated(8, "Use a random offset and Slice.")
    .SetShapeFn(RandomCropShape)
    .Doc("Cuts `size` = [height, width] out of an image [height, width, channels], anywhere.");

}  // namespace
}  // namespace troupe

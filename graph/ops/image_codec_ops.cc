// Images as files: decoding and encoding.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// The attribute `channels`, -1 if the file decides.
absl::StatusOr<int64_t> ChannelsAttr(InferenceContext* c) {
  int64_t channels;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("channels", &channels));
  if (channels < 0) {
    return InvalidArgument("`channels` is ", channels, "; it must not be negative");
  }
  return channels == 0 ? -1 : channels;
}

absl::Status DecodedShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t channels, ChannelsAttr(c));
  return SetShape(c, PartialShape({-1, -1, channels}));
}

absl::Status DecodedImageShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(DecodedShape(c));
  bool expand_animations;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("expand_animations", &expand_animations));
  return expand_animations ? UnknownShape(c) : absl::OkStatus();
}

absl::Status DecodedGifShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 0).status());
  return SetShape(c, PartialShape({-1, -1, -1, 3}));
}

absl::Status CroppedJpegShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(DecodedShape(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape window, C::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(WithValue(window.dim(0), 4).status());
  const Tensor& constant = c->input_tensor(1);
  if (!constant.valid()) return absl::OkStatus();
  const std::vector<int64_t> values = IntegerValues(constant);
  if (values[2] < 0 || values[3] < 0) return absl::OkStatus();
  return SetShape(c, PartialShape({values[2], values[3], C::DimOf(c->output(0), 2)}));
}

absl::Status JpegShapeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 0).status());
  return SetShape(c, C::VectorOf(3));
}

absl::Status EncodedShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 3).status());
  return ScalarShape(c);
}

absl::Status EncodedPngShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRankAtLeast(c->input(0), 3));
  return SetShape(c, C::Subshape(images, 0, -3));
}

/// The attributes by which a JPEG is decoded.
OpDefBuilder DefineJpeg(const char* name, const char* signature, ShapeFn shape_fn,
                        const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("channels: int = 0")
      .Attr("ratio: int = 1")
      .Attr("fancy_upscaling: bool = true")
      .Attr("try_recover_truncated: bool = false")
      .Attr("acceptable_fraction: float = 1.0")
      .Attr("dct_method: string = ''")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kJpegOps[] = {
    DefineJpeg("DecodeJpeg", "contents: string -> image: uint8", DecodedShape,
               "Decodes the JPEG file `contents` to [height, width, channels]. `channels` is 1 "
               "(gray), 3 (RGB) or 0 (as in the file). `ratio` is 1, 2, 4 or 8: the image is "
               "made smaller by it as it is decoded. `fancy_upscaling` smooths colors that are "
               "stored at a lower resolution. `dct_method` is INTEGER_FAST (also '') or "
               "INTEGER_ACCURATE. `try_recover_truncated` takes what there is of a file that "
               "ends early, `acceptable_fraction` a file of which that part of the rows can be "
               "read. A PNG, or a GIF with one frame, is decoded too."),
    DefineJpeg("DecodeAndCropJpeg", "contents: string, crop_window: int32 -> image: uint8",
               CroppedJpegShape,
               "Decodes the window `crop_window` = [y, x, height, width] of the JPEG file "
               "`contents`, for less than the whole costs. The attributes are those of "
               "`DecodeJpeg`."),
};

REGISTER_OP("DecodePng")
    .Signature("contents: string -> image: dtype")
    .Attr("channels: int = 0")
    .Attr("dtype: {uint8, uint16} = DT_UINT8")
    .SetShapeFn(DecodedShape)
    .Doc(
        "Decodes the PNG file `contents` to [height, width, channels]. `channels` is 1 (gray), 3 "
        "(RGB), 4 (RGB with alpha) or 0 (as in the file). A JPEG, or a GIF with one frame, is "
        "decoded too.");

REGISTER_OP("DecodeBmp")
    .Signature("contents: string -> image: uint8")
    .Attr("channels: int = 0")
    .SetShapeFn(DecodedShape)
    .Doc(
        "Decodes the uncompressed BMP file `contents` of 8, 24 or 32 bits a pixel to [height, "
        "width, channels]. `channels` is 3 (RGB), 4 (RGB with alpha) or 0 (as in the file).");

REGISTER_OP("DecodeGif")
    .Signature("contents: string -> image: uint8")
    .SetShapeFn(DecodedGifShape)
    .Doc(
        "Decodes the GIF file `contents` to [frames, height, width, 3]. What a frame leaves out is "
        "as in the frame before it. A PNG or JPEG counts as one frame.");

REGISTER_OP("DecodeImage")
    .Signature("contents: string -> image: dtype")
    .Attr("channels: int = 0")
    .Attr("dtype: {uint8, uint16, float} = DT_UINT8")
    .Attr("expand_animations: bool = true")
    .SetShapeFn(DecodedImageShape)
    .Doc(
        "Decodes the file `contents`, a JPEG, PNG, GIF or BMP as its first bytes say. The shape is "
        "[height, width, channels]; [frames, height, width, 3] for a GIF, of which the first frame "
        "is taken unless `expand_animations`. `float` pixels are in [0, 1]; `uint16` ones are 256 "
        "times the bytes of formats that have no 16 bits.");

REGISTER_OP("ExtractJpegShape")
    .Signature("contents: string -> image_shape: output_type")
    .Attr("output_type: {int32, int64} = DT_INT32")
    .SetShapeFn(JpegShapeShape)
    .Doc("The shape [height, width, channels] of the JPEG file `contents`, by its header alone.");

REGISTER_OP("EncodeJpeg")
    .Signature("image: uint8 -> contents: string")
    .Attr("format: {'', 'grayscale', 'rgb'} = ''")
    .Attr("quality: int = 95")
    .Attr("progressive: bool = false")
    .Attr("optimize_size: bool = false")
    .Attr("chroma_downsampling: bool = true")
    .Attr("density_unit: {'in', 'cm'} = 'in'")
    .Attr("x_density: int = 300")
    .Attr("y_density: int = 300")
    .Attr("xmp_metadata: string = ''")
    .SetShapeFn(EncodedShape)
    .Doc(
        "Encodes `image` of the shape [height, width, 1 or 3] as a JPEG file. `quality` is between "
        "0 and 100. `optimize_size` takes longer for a smaller file, `progressive` one that can "
        "be shown before it is complete; `chroma_downsampling` halves the resolution of colors. "
        "`x_density` and `y_density` are pixels per `density_unit`.");

REGISTER_OP("EncodeJpegVariableQuality")
    .Signature("images: uint8, quality: int32 -> contents: string")
    .SetShapeFn(EncodedShape)
    .Doc(
        "Encodes the image `images` of the shape [height, width, 1 or 3] as the JPEG file "
        "`contents`. `quality`, a scalar, is between 0 and 100.");

REGISTER_OP("EncodePng")
    .Signature("image: T -> contents: string")
    .Attr("compression: int = -1")
    .Attr("T: {uint8, uint16} = DT_UINT8")
    .SetShapeFn(EncodedPngShape)
    .Doc(
        "Encodes each image of the shape [..., height, width, channels] as a PNG file. `channels` "
        "is 1 (gray), 2 (gray with alpha), 3 (RGB) or 4 (RGB with alpha). `compression` is "
        "between 0 and 9; -1 is zlib's default.");

}  // namespace
}  // namespace troupe

// Convolutions beside Conv2D: depthwise, of volumes, of either, and with what comes before them.
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::StatusOr<std::vector<int64_t>> Integers(C* c, std::string_view name, size_t count) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<int64_t> values, c->attrs().Get<std::vector<int64_t>>(name));
  if (values.size() != count) {
    return InvalidArgument("The attribute ", name, " must have ", count, " numbers but has ",
                           values.size());
  }
  return values;
}

absl::Status DepthwiseShape(C* c) {
  TROUPE_ASSIGN_OR_RETURN(const ImageLayout layout, ImageLayoutOf(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(1), 4));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, FourIntegers(c, "dilations"));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, FourIntegers(c, "strides"));
  std::vector<int64_t> pads;
  TROUPE_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(c, layout, &pads));
  TROUPE_ASSIGN_OR_RETURN(const int64_t depth,
                          C::MergeDim(input.dim(layout.channels), filter.dim(2)));
  std::vector<int64_t> sizes(4);
  sizes[layout.batch] = input.dim(layout.batch);
  TROUPE_ASSIGN_OR_RETURN(sizes[layout.channels], MultiplyDims(depth, filter.dim(3)));
  int filter_dim = 0;
  for (const int d : {layout.height, layout.width}) {
    TROUPE_ASSIGN_OR_RETURN(
        sizes[d], WindowPositions(input.dim(d), filter.dim(filter_dim++), dilations[d], strides[d],
                                  padding, pads[2 * d], pads[2 * d + 1]));
  }
  return SetShape(c, PartialShape(sizes));
}

/// The shape that input `i` holds, of rank `rank`.
absl::Status ShapeFromInput(C* c, int i, int rank) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape sizes, c->InputAsShape(i));
  return SetShape(c, C::WithRank(sizes, rank));
}
template <int kInput, int kRank>
absl::Status SizesShape(C* c) {
  return ShapeFromInput(c, kInput, kRank);
}

/// Output 0 like input kInput, a tensor of rank 5.
template <int kInput>
absl::Status VolumeShape(C* c) {
  return SetShape(c, C::WithRank(c->input(kInput), 5));
}

/// What is known of a convolution of any number of spatial dimensions.
struct WindowShape {
  int batch_dims = 1;
  bool channels_first = false;
  std::vector<int64_t> strides, dilations;  ///< As many as there are dimensions, in their order.
  Padding padding = Padding::kValid;
  std::vector<int64_t> pads;  ///< Two each.

  /// The output for an input with batch_dims batch dimensions and `filter`, of the right ranks.
  absl::StatusOr<PartialShape> Output(const PartialShape& input, const PartialShape& filter) const {
    std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
    const int spatial = filter.rank() - 2, first = batch_dims + (channels_first ? 1 : 0);
    for (int i = 0; i < spatial; ++i) {
      const int d = (channels_first ? 2 : 1) + i;  // of one batch dimension
      TROUPE_ASSIGN_OR_RETURN(sizes[first + i],
                              WindowPositions(input.dim(first + i), filter.dim(i), dilations[d],
                                              strides[d], padding, pads[2 * d], pads[2 * d + 1]));
    }
    sizes[channels_first ? batch_dims : sizes.size() - 1] = filter.dim(spatial + 1);
    return PartialShape(sizes);
  }
};

absl::Status CheckFilterDepth(int64_t depth, const PartialShape& filter) {
  const int64_t filter_depth = filter.dim(filter.rank() - 2);
  if (filter_depth == 0) return InvalidArgument("The filter has no input channels");
  if (depth != -1 && filter_depth != -1 && depth % filter_depth != 0) {
    return InvalidArgument("The ", depth, " channels of the input are no multiple of the ",
                           filter_depth, " of the filter of shape ", filter.ToString());
  }
  return absl::OkStatus();
}

absl::Status Conv3DShape(C* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 5));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(1), 5));
  WindowShape windows;
  windows.channels_first = c->attrs().GetOr<std::string>("data_format", "NDHWC") == "NCDHW";
  TROUPE_ASSIGN_OR_RETURN(windows.strides, Integers(c, "strides", 5));
  TROUPE_ASSIGN_OR_RETURN(windows.dilations, Integers(c, "dilations", 5));
  TROUPE_ASSIGN_OR_RETURN(windows.padding, PaddingOf(c, ImageLayout(), &windows.pads));
  windows.pads.assign(10, 0);
  TROUPE_RETURN_IF_ERROR(CheckFilterDepth(input.dim(windows.channels_first ? 1 : 4), filter));
  return SetShape(c, windows.Output(input, filter));
}

absl::Status CheckGroups(C* c, int64_t depth, const PartialShape& filter) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t groups, c->attrs().Get<int64_t>("groups"));
  if (groups < 1) return InvalidArgument("The number of groups must be positive, not ", groups);
  const int64_t filter_depth = filter.dim(filter.rank() - 2), out = filter.dim(filter.rank() - 1);
  if (depth != -1 && depth % groups != 0) {
    return InvalidArgument("The ", depth, " channels of the input are no multiple of the number ",
                           "of groups, ", groups);
  }
  if (out != -1 && out % groups != 0) {
    return InvalidArgument("The ", out, " outputs of the filter of shape ", filter.ToString(),
                           " are no multiple of the number of groups, ", groups);
  }
  if (depth != -1 && filter_depth > 0 && depth / filter_depth != groups) {
    return InvalidArgument("The ", depth, " channels of the input and the ", filter_depth,
                           " of the filter do not make ", groups, " groups");
  }
  return absl::OkStatus();
}

absl::Status ConvShape(C* c) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch_dims, c->attrs().Get<int64_t>("batch_dims"));
  const PartialShape& input = c->input(0);
  if (input.unknown_rank() || c->input(1).unknown_rank()) return UnknownShape(c);
  if (batch_dims < 0) return InvalidArgument("batch_dims must not be negative, got ", batch_dims);
  const int64_t spatial = batch_dims < input.rank() ? input.rank() - batch_dims - 1 : -1;
  if (spatial != 2 && spatial != 3) {
    return InvalidArgument("The input must have 2 or 3 spatial dimensions beside ", batch_dims,
                           " batch dimensions and the channels, but has the shape ",
                           input.ToString());
  }
  const int rank = static_cast<int>(spatial) + 2;
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(1), rank));
  WindowShape windows;
  windows.batch_dims = static_cast<int>(batch_dims);
  TROUPE_ASSIGN_OR_RETURN(const std::string format, c->attrs().Get<std::string>("data_format"));
  windows.channels_first = format == "CHANNELS_FIRST";
  TROUPE_ASSIGN_OR_RETURN(windows.strides, Integers(c, "strides", rank));
  TROUPE_ASSIGN_OR_RETURN(windows.dilations, c->attrs().Get<std::vector<int64_t>>("dilations"));
  if (windows.dilations.empty()) windows.dilations.assign(rank, 1);
  if (windows.dilations.size() != static_cast<size_t>(rank)) {
    return InvalidArgument("The attribute dilations must have ", rank, " numbers but has ",
                           windows.dilations.size());
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string padding, c->attrs().Get<std::string>("padding"));
  if (padding == "EXPLICIT") {
    windows.padding = Padding::kExplicit;
    TROUPE_ASSIGN_OR_RETURN(windows.pads, Integers(c, "explicit_paddings", 2 * rank));
    for (const int64_t pad : windows.pads) {
      if (pad < 0) return InvalidArgument("explicit_paddings has a negative number: ", pad);
    }
  } else {
    TROUPE_RETURN_IF_ERROR(Integers(c, "explicit_paddings", 0).status());
    windows.padding = padding == "SAME" ? Padding::kSame : Padding::kValid;
    windows.pads.assign(2 * rank, 0);
  }
  const int64_t depth = input.dim(windows.channels_first ? windows.batch_dims : input.rank() - 1);
  TROUPE_RETURN_IF_ERROR(CheckFilterDepth(depth, filter));
  TROUPE_RETURN_IF_ERROR(CheckGroups(c, depth, filter));
  return SetShape(c, windows.Output(input, filter));
}

/// `input` with `paddings`, a matrix of two numbers for each dimension, added.
absl::StatusOr<PartialShape> PaddedShape(const PartialShape& input, const Tensor& paddings) {
  const std::vector<int64_t> pads = IntegerValues(paddings);
  std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
  for (size_t d = 0; d < sizes.size(); ++d) {
    for (int side = 0; side < 2; ++side) {
      const int64_t pad = pads[2 * d + side];
      if (pad < 0) return InvalidArgument("Paddings must not be negative, got ", pad);
      TROUPE_ASSIGN_OR_RETURN(sizes[d], AddDims(sizes[d], pad));
    }
  }
  return PartialShape(sizes);
}

/// The convolution of a padded input; input `paddings` has the numbers, the one behind it is the
/// filter.
absl::Status PaddedConvShape(C* c, PartialShape input, int paddings_input) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape paddings, C::WithRank(c->input(paddings_input), 2));
  if (c->input(paddings_input).unknown_rank()) {
    return InvalidArgument("The rank of the paddings must be known");
  }
  TROUPE_RETURN_IF_ERROR(WithValue(paddings.dim(0), 4).status());
  TROUPE_RETURN_IF_ERROR(WithValue(paddings.dim(1), 2).status());
  if (c->input_tensor(paddings_input).valid()) {
    TROUPE_ASSIGN_OR_RETURN(input, PaddedShape(input, c->input_tensor(paddings_input)));
  } else {
    input = C::UnknownOfRank(4);
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(paddings_input + 1), 4));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(input.dim(3), filter.dim(2)).status());
  WindowShape windows;
  TROUPE_ASSIGN_OR_RETURN(windows.strides, Integers(c, "strides", 4));
  windows.dilations.assign(4, 1);
  TROUPE_ASSIGN_OR_RETURN(windows.padding, PaddingOf(c, ImageLayout(), &windows.pads));
  return SetShape(c, windows.Output(input, filter));
}

absl::Status FusedPadConv2DShape(C* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  return PaddedConvShape(c, input, 1);
}

absl::Status FusedResizeAndPadConv2DShape(C* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape size, c->InputAsShape(1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape image, C::WithRank(size, 2));
  input = C::ReplaceDim(input, 1, image.dim(0));
  return PaddedConvShape(c, C::ReplaceDim(input, 2, image.dim(1)), 2);
}

OpDefBuilder Depthwise(const char* name, const char* signature, ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

OpDefBuilder Volume(const char* name, const char* signature, ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1, 1]")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

OpDefBuilder OldVolume(const char* name, ShapeFn shape_fn, const char* instead, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("input: T, filter: T, out_backprop: T -> output: T")
      .Attr("T: {half, float, double}")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("dilations: list(int) = [1, 1, 1, 1, 1]")
      .Deprecated(10, instead)
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    Depthwise("DepthwiseConv2dNative", "input: T, filter: T -> output: T", DepthwiseShape,
              "Convolves each channel of images `input` [batch, height, width, channels] (or NCHW) "
              "with filters of its own, `filter` [height, width, channels, outputs of a channel]. "
              "Gives channels * outputs channels, those of one input channel side by side. "
              "`strides` and `dilations` have one number for each dimension of `input`, "
              "`explicit_paddings` two (for padding EXPLICIT)."),
    Depthwise("DepthwiseConv2dNativeBackpropFilter",
              "input: T, filter_sizes: int32, out_backprop: T -> output: T", SizesShape<1, 4>,
              "Gradient of `DepthwiseConv2dNative` with regard to the filter, whose shape is "
              "`filter_sizes`; `out_backprop` is that of its output."),
    Depthwise("DepthwiseConv2dNativeBackpropInput",
              "input_sizes: int32, filter: T, out_backprop: T -> output: T", SizesShape<0, 4>,
              "Gradient of `DepthwiseConv2dNative` with regard to the input, whose shape is "
              "`input_sizes`; `out_backprop` is that of its output."),
    Volume("Conv3D", "input: T, filter: T -> output: T", Conv3DShape,
           "Convolves volumes `input` [batch, depth, height, width, channels] (or NCDHW) with "
           "`filter` [depth, height, width, channels, outputs]. `strides` and `dilations` have one "
           "number for each dimension of `input`."),
    Volume("Conv3DBackpropFilterV2", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
           SizesShape<1, 5>,
           "Gradient of `Conv3D` with regard to the filter, whose shape is `filter_sizes`; "
           "`out_backprop` is that of its output."),
    Volume("Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T -> output: T",
           SizesShape<0, 5>,
           "Gradient of `Conv3D` with regard to the input, whose shape is `input_sizes`; "
           "`out_backprop` is that of its output.")
        .Attr("Tshape: {int32, int64} = DT_INT32"),
    OldVolume("Conv3DBackpropFilter", VolumeShape<1>, "Use Conv3DBackpropFilterV2",
              "Gradient of `Conv3D` with regard to the filter, which tells its shape; "
              "`out_backprop` is that of its output."),
    OldVolume("Conv3DBackpropInput", VolumeShape<0>, "Use Conv3DBackpropInputV2",
              "Gradient of `Conv3D` with regard to the input, which tells its shape; "
              "`out_backprop` is that of its output."),
};

}  // namespace

REGISTER_OP("Conv")
    .Signature("input: T, filter: T -> output: T")
    .Attr("T: {half, bfloat16, float, double, int32}")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'")
    .Attr("dilations: list(int) = []")
    .Attr("batch_dims: int = 1")
    .Attr("groups: int = 1")
    .SetShapeFn(ConvShape)
    .Doc(
        "Convolves images or volumes `input`, which has `batch_dims` batch dimensions, then 2 or 3 "
        "spatial ones and the channels (or the channels first), with `filter` [spatial sizes, "
        "channels / groups, outputs]. `strides` and `dilations` (none: ones) have one number for "
        "the batch, each spatial dimension and the channels, `explicit_paddings` two (for padding "
        "EXPLICIT).");

REGISTER_OP("FusedPadConv2D")
    .Signature("input: T, paddings: int32, filter: T -> output: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .SetShapeFn(FusedPadConv2DShape)
    .Doc(
        "Pads images `input` [batch, height, width, channels] by mirroring them, `paddings` [4, 2] "
        "pixels before and after each dimension (in mode SYMMETRIC with the pixels of the border, "
        "in mode REFLECT without), then convolves them with `filter` [height, width, channels, "
        "outputs] as `Conv2D` does, with its `strides` and `padding`. Made for one image: every "
        "image "
        "of a batch gives what the first one does.");

REGISTER_OP("FusedResizeAndPadConv2D")
    .Signature("input: T, size: int32, paddings: int32, filter: T -> output: T")
    .Attr("T: {half, float, double}")
    .Attr("resize_align_corners: bool = false")
    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .SetShapeFn(FusedResizeAndPadConv2DShape)
    .Doc(
        "Resizes images `input` [batch, height, width, channels] to `size` (height, width) with "
        "bilinear interpolation (`resize_align_corners`: the corners' pixels stay), then pads and "
        "convolves them as `FusedPadConv2D` does.");

}  // namespace troupe

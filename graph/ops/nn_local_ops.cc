// Pooling and other ops on neighborhoods: with the places of maxima, of volumes, with windows of
// different sizes; dilation, local normalization.
#include <cmath>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::StatusOr<Padding> PlainPadding(InferenceContext* c) {
  std::vector<int64_t> none;
  return PaddingOf(c, ImageLayout(), &none);
}

/// `input` pooled by windows of `sizes` over all dimensions but the batch and, if !over_channels,
/// the channels, both as in the data format.
absl::StatusOr<PartialShape> PooledShape(InferenceContext* c, const PartialShape& input,
                                         const std::vector<int64_t>& sizes, int channels,
                                         bool over_channels) {
  std::vector<int64_t> strides;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("strides", &strides));
  TROUPE_ASSIGN_OR_RETURN(const Padding padding, PlainPadding(c));
  const size_t rank = static_cast<size_t>(input.rank());
  if (sizes.size() != rank || strides.size() != rank) {
    return InvalidArgument("The windows' sizes and strides must have ", rank, " numbers but have ",
                           sizes.size(), " and ", strides.size());
  }
  std::vector<int64_t> out(input.dims().begin(), input.dims().end());
  for (int d = 1; d < input.rank(); ++d) {
    if (d == channels && !over_channels) continue;
    TROUPE_ASSIGN_OR_RETURN(out[d],
                            WindowPositions(input.dim(d), sizes[d], 1, strides[d], padding, 0, 0));
  }
  return PartialShape(out);
}

absl::Status MaxPoolWithArgmaxShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, FourIntegers(c, "ksize"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape output, PooledShape(c, input, ksize, 3, true));
  c->set_output(0, output);
  c->set_output(1, output);
  return absl::OkStatus();
}

template <int kRank>
absl::Status LikeInput(InferenceContext* c) {
  return SetShape(c, C::WithRank(c->input(0), kRank));
}

absl::Status Pool3DShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 5));
  TROUPE_ASSIGN_OR_RETURN(const auto ksize, c->attrs().Get<std::vector<int64_t>>("ksize"));
  TROUPE_ASSIGN_OR_RETURN(const std::string format, c->attrs().Get<std::string>("data_format"));
  return SetShape(c, PooledShape(c, input, ksize, format == "NCDHW" ? 1 : 4, false));
}

absl::Status MaxPool3DGradGradShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(Pool3DShape(c));
  TROUPE_RETURN_IF_ERROR(C::Merge(c->input(0), c->input(2)).status());
  return C::Merge(c->input(1), c->output(0)).status();
}

absl::Status AvgPool3DGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape sizes, c->InputAsShape(0));
  return SetShape(c, C::WithRank(sizes, 5));
}

absl::Status VolumePatchesShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 5));
  TROUPE_ASSIGN_OR_RETURN(const auto ksizes, c->attrs().Get<std::vector<int64_t>>("ksizes"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape patches, PooledShape(c, input, ksizes, 4, false));
  int64_t depth = input.dim(4);
  for (int d = 1; d < 4; ++d) {
    if (ksizes[d] <= 0) return InvalidArgument("ksizes must be positive, got ", ksizes[d]);
    TROUPE_ASSIGN_OR_RETURN(depth, MultiplyDims(depth, ksizes[d]));
  }
  return SetShape(c, C::ReplaceDim(patches, 4, depth));
}

absl::Status FractionalPoolShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const auto ratios, c->attrs().Get<std::vector<float>>("pooling_ratio"));
  if (ratios.size() != 4) {
    return InvalidArgument("pooling_ratio must have 4 numbers but has ", ratios.size());
  }
  std::vector<int64_t> sizes(4, -1);
  for (int d = 0; d < 4; ++d) {
    if (!(ratios[d] >= 1)) {
      return InvalidArgument("A pooling ratio must be at least 1 but is ", ratios[d]);
    }
    if (input.dim(d) == -1) continue;
    sizes[d] = static_cast<int64_t>(
        std::floor(static_cast<double>(input.dim(d)) / static_cast<double>(ratios[d])));
  }
  c->set_output(0, PartialShape(sizes));
  // TensorFlow says the number of regions, though there is one border more.
  c->set_output(1, C::VectorOf(sizes[1]));
  c->set_output(2, C::VectorOf(sizes[2]));
  return absl::OkStatus();
}

absl::Status FractionalAvgPoolGradShape(InferenceContext* c) {
  const Tensor& sizes = c->input_tensor(0);
  if (!sizes.valid()) {
    c->set_output(0, C::UnknownOfRank(4));
    return absl::OkStatus();
  }
  return SetShape(c, c->InputAsShape(0));
}

absl::Status Dilation2DShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(1), 3));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, FourIntegers(c, "strides"));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> rates, FourIntegers(c, "rates"));
  TROUPE_ASSIGN_OR_RETURN(const Padding padding, PlainPadding(c));
  std::vector<int64_t> sizes(4);
  sizes[0] = input.dim(0);
  TROUPE_ASSIGN_OR_RETURN(sizes[3], C::MergeDim(input.dim(3), filter.dim(2)));
  for (int d = 1; d < 3; ++d) {
    TROUPE_ASSIGN_OR_RETURN(sizes[d], WindowPositions(input.dim(d), filter.dim(d - 1), rates[d],
                                                      strides[d], padding, 0, 0));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status DilationFilterShape(InferenceContext* c) {
  c->set_output(0, c->input(1));
  return absl::OkStatus();
}

absl::Status LrnGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(shape, C::Merge(shape, c->input(1)));
  return SetShape(c, C::Merge(shape, c->input(2)));
}

OpDefBuilder Pool3D(const char* name, const char* signature, const char* types, ShapeFn shape_fn,
                    const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("ksize: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'")
      .Attr(types)
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

OpDefBuilder FractionalPool(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64")
      .Attr("pooling_ratio: list(float) >= 4")
      .Attr("pseudo_random: bool = false")
      .Attr("overlapping: bool = false")
      .Attr("deterministic: bool = false")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("T: {float, double, int32, int64}")
      .SetShapeFn(FractionalPoolShape)
      .Doc(doc);
  return op;
}

OpDefBuilder FractionalGrad(const char* name, const char* signature, ShapeFn shape_fn,
                            const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("overlapping: bool = false")
      .Attr("T: {float, double, int32, int64}")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

OpDefBuilder Dilation(const char* name, const char* signature, ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("T: realnumbertype")
      .Attr("strides: list(int) >= 4")
      .Attr("rates: list(int) >= 4")
      .Attr("padding: {'SAME', 'VALID'}")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

OpDefBuilder LocalNorm(const char* name, const char* signature, ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("depth_radius: int = 5")
      .Attr("bias: float = 1.0")
      .Attr("alpha: float = 1.0")
      .Attr("beta: float = 0.5")
      .Attr("T: {half, bfloat16, float} = DT_FLOAT")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

constexpr char kMaxTypes[] = "T: {half, bfloat16, float}";
constexpr char kFloatTypes[] = "T: {half, bfloat16, float, double}";

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    Pool3D("AvgPool3D", "input: T -> output: T", kFloatTypes, Pool3DShape,
           "Takes the mean of each window of `ksize` elements at distances `strides` of volumes "
           "`input` [batch, depth, height, width, channels] (or NCDHW); both have a number for "
           "each dimension, 1 for batch and channels."),
    Pool3D("AvgPool3DGrad", "orig_input_shape: int32, grad: T -> output: T", kFloatTypes,
           AvgPool3DGradShape,
           "Gradient of `AvgPool3D` for an input of the shape `orig_input_shape`; `grad` is that "
           "of its output."),
    Pool3D("MaxPool3D", "input: T -> output: T", kMaxTypes, Pool3DShape,
           "Takes the largest element of each window of `ksize` elements at distances `strides` of "
           "volumes `input` [batch, depth, height, width, channels] (or NCDHW); both have a number "
           "for each dimension, 1 for batch and channels."),
    Pool3D("MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T -> output: T",
           "T: {half, bfloat16, float} = DT_FLOAT", LikeInput<5>,
           "Gradient of `MaxPool3D`: sends `grad` to all elements of a window of `orig_input` that "
           "equal its largest one, in `orig_output`. Gives the shape of `orig_input`.")
        .Attr("TInput: {half, bfloat16, float} = DT_FLOAT"),
    Pool3D("MaxPool3DGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T",
           "T: realnumbertype", MaxPool3DGradGradShape,
           "Second gradient of `MaxPool3D`: takes `grad` from where the first of the largest "
           "elements of `orig_input` was. Gives the shape of `orig_output`."),
    FractionalPool("FractionalAvgPool",
                   "Takes the mean of each region of images `value` [batch, height, width, "
                   "channels]. Regions are `pooling_ratio` times smaller than the image (1 for "
                   "batch and channels); their sizes are random, or with `pseudo_random` nearly "
                   "even; with `overlapping` their borders belong to both sides. `seed` and "
                   "`seed2` make them the same in every run if `deterministic`. The sequences say "
                   "where regions begin, and where the last one ends."),
    FractionalPool(
        "FractionalMaxPool",
        "Takes the largest element of each region of images `value` [batch, height, "
        "width, channels]. Regions are `pooling_ratio` times smaller than the image (1 "
        "for batch and channels); their sizes are random, or with `pseudo_random` nearly "
        "even; with `overlapping` their borders belong to both sides. `seed` and "
        "`seed2` make them the same in every run if `deterministic`. The sequences say "
        "where regions begin, and where the last one ends."),
    FractionalGrad("FractionalAvgPoolGrad",
                   "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, "
                   "col_pooling_sequence: int64 -> output: T",
                   FractionalAvgPoolGradShape,
                   "Gradient of `FractionalAvgPool` for an input of shape "
                   "`orig_input_tensor_shape`: spreads `out_backprop` over the regions that the "
                   "sequences tell, one element wider if `overlapping`."),
    FractionalGrad("FractionalMaxPoolGrad",
                   "orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, "
                   "col_pooling_sequence: int64 -> output: T",
                   LikeInput<4>,
                   "Gradient of `FractionalMaxPool`: sends `out_backprop` to where the largest "
                   "elements of `orig_input`, in `orig_output`, were, in the regions that the "
                   "sequences tell, one element wider if `overlapping`."),
    Dilation("Dilation2D", "input: T, filter: T -> output: T", Dilation2DShape,
             "Gives for windows over images `input` [batch, height, width, channels] the largest "
             "sum of an element and of that of `filter` [height, width, channels]. `strides` are "
             "the distances of windows, `rates` those of their elements, for each dimension of "
             "`input`, 1 for batch and channels."),
    Dilation("Dilation2DBackpropFilter",
             "input: T, filter: T, out_backprop: T -> filter_backprop: T", DilationFilterShape,
             "Gradient of `Dilation2D` with regard to `filter`; `out_backprop` is that of its "
             "output."),
    Dilation("Dilation2DBackpropInput", "input: T, filter: T, out_backprop: T -> in_backprop: T",
             UnchangedShape,
             "Gradient of `Dilation2D` with regard to `input`; `out_backprop` is that of its "
             "output."),
    LocalNorm("LRN", "input: T -> output: T", LikeInput<4>,
              "Divides each element of images `input` [batch, height, width, channels] by (bias + "
              "alpha * the sum of squares of the pixel's channels at most `depth_radius` away) ^ "
              "beta."),
    LocalNorm("LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T",
              LrnGradShape,
              "Gradient of `LRN`: `input_grads` is that of its output, `output_image`, for "
              "`input_image`. All have the same shape."),
};

}  // namespace

REGISTER_OP("MaxPoolWithArgmax")
    .Signature("input: T -> output: T, argmax: Targmax")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("Targmax: {int32, int64} = DT_INT64")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("include_batch_in_index: bool = false")
    .Attr("T: realnumbertype")
    .SetShapeFn(MaxPoolWithArgmaxShape)
    .Doc(
        "Takes the largest element of each window of `ksize` elements at distances `strides` of "
        "images `input` [batch, height, width, channels]. `argmax` says which element of its "
        "image, flattened, that was: (row * width + column) * channels + channel; with "
        "`include_batch_in_index`, of all of `input`.");

REGISTER_OP("MaxPoolGradWithArgmax")
    .Signature("input: T, grad: T, argmax: Targmax -> output: T")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("include_batch_in_index: bool = false")
    .Attr("Targmax: {int32, int64}")
    .Attr("T: realnumbertype")
    .SetShapeFn(LikeInput<4>)
    .Doc(
        "Gradient of `MaxPoolWithArgmax`: sends `grad` to the elements that `argmax` names. Gives "
        "the shape of `input`.");

REGISTER_OP("ExtractVolumePatches")
    .Signature("input: T -> patches: T")
    .Attr("ksizes: list(int) >= 5")
    .Attr("strides: list(int) >= 5")
    .Attr("T: realnumbertype")
    .Attr("padding: {'SAME', 'VALID'}")
    .SetShapeFn(VolumePatchesShape)
    .Doc(
        "Takes patches of `ksizes` = [1, planes, rows, columns, 1] elements at distances `strides` "
        "out of volumes `input` [batch, depth, height, width, channels], and puts the elements of "
        "each one after the other in the last dimension.");

}  // namespace troupe

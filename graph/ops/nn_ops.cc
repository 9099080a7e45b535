// Convolution, biases, batch normalisation and losses.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// Where the channels of a tensor are: -1 (the last) or 1, by the attribute `data_format`. At least
/// the rank that the format needs.
absl::StatusOr<PartialShape> WithChannels(InferenceContext* c, const PartialShape& shape,
                                          int* channels) {
  const bool channels_second = c->attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW";
  *channels = channels_second ? 1 : -1;
  return C::WithRankAtLeast(shape, channels_second ? 3 : 2);
}

absl::Status BiasAddShape(InferenceContext* c) {
  int channels;
  TROUPE_ASSIGN_OR_RETURN(const PartialShape value, WithChannels(c, c->input(0), &channels));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape bias, C::WithRank(c->input(1), 1));
  if (value.unknown_rank()) return UnknownShape(c);
  const int64_t value_channels = C::DimOf(value, channels);
  if (!C::MergeDim(value_channels, bias.dim(0)).ok()) {
    return InvalidArgument("A bias of shape ", bias.ToString(),
                           " cannot be added to a value of shape ", value.ToString(), " with ",
                           value_channels, " channels");
  }
  c->set_output(
      0, C::ReplaceDim(value, channels, value_channels != -1 ? value_channels : bias.dim(0)));
  return absl::OkStatus();
}

absl::Status BiasAddGradShape(InferenceContext* c) {
  int channels;
  TROUPE_ASSIGN_OR_RETURN(const PartialShape gradient, WithChannels(c, c->input(0), &channels));
  return SetShape(c, C::VectorOf(C::DimOf(gradient, channels)));
}

absl::Status Conv2DShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ImageLayout layout, ImageLayoutOf(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(1), 4));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, FourIntegers(c, "dilations"));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, FourIntegers(c, "strides"));
  const int64_t depth = input.dim(layout.channels), filter_depth = filter.dim(2);
  if (depth != -1 && filter_depth != -1) {
    if (filter_depth == 0) return InvalidArgument("The filter has no input channels");
    if (depth % filter_depth != 0) {
      return InvalidArgument("The ", depth, " channels of the input of shape ", input.ToString(),
                             " are no multiple of the ", filter_depth, " of the filter of shape ",
                             filter.ToString());
    }
    const int64_t groups = depth / filter_depth;
    if (depth != filter_depth && filter.dim(3) != -1) {
      if (groups == 0) return InvalidArgument("The input has no channels");
      if (filter.dim(3) % groups != 0) {
        return InvalidArgument("The ", filter.dim(3), " outputs of the filter of shape ",
                               filter.ToString(), " are no multiple of the number of groups, ",
                               groups);
      }
    }
  }
  std::vector<int64_t> pads;
  TROUPE_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(c, layout, &pads));
  std::vector<int64_t> sizes(4);
  sizes[layout.batch] = input.dim(layout.batch);
  sizes[layout.channels] = filter.dim(3);
  int filter_dim = 0;
  for (const int d : {layout.height, layout.width}) {
    TROUPE_ASSIGN_OR_RETURN(
        sizes[d], WindowPositions(input.dim(d), filter.dim(filter_dim++), dilations[d], strides[d],
                                  padding, pads[2 * d], pads[2 * d + 1]));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status Conv2DBackpropFilterShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape sizes, c->InputAsShape(1));
  TROUPE_ASSIGN_OR_RETURN(sizes, C::WithRank(sizes, 4));
  return SetShape(c, sizes);
}

absl::Status Conv2DBackpropInputShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const ImageLayout layout, ImageLayoutOf(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape gradient, C::WithRank(c->input(2), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape filter, C::WithRank(c->input(1), 4));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(gradient.dim(layout.channels), filter.dim(3)).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape given, c->InputAsShape(0));
  if (given.unknown_rank()) given = C::UnknownOfRank(4);
  std::vector<int64_t> sizes(4);
  if (given.rank() == 4) {
    TROUPE_RETURN_IF_ERROR(
        C::MergeDim(given.dim(layout.batch), gradient.dim(layout.batch)).status());
    sizes.assign(given.dims().begin(), given.dims().end());
  } else if (given.rank() == 2) {
    // Height and width only; the filter then tells the channels of the single group.
    sizes[layout.channels] = filter.dim(2);
    sizes[layout.height] = given.dim(0);
    sizes[layout.width] = given.dim(1);
  } else {
    return InvalidArgument("`input_sizes` must have 4 numbers, or 2 (height and width), not ",
                           given.rank());
  }
  sizes[layout.batch] = gradient.dim(layout.batch);
  return SetShape(c, PartialShape(sizes));
}

/// The attribute `data_format` of batch normalisation: the rank and where the channels are.
absl::StatusOr<std::pair<int, int>> NormLayout(InferenceContext* c) {
  const std::string format = c->attrs().GetOr<std::string>("data_format", "NHWC");
  if (format == "NHWC") return std::pair(4, 3);
  if (format == "NCHW") return std::pair(4, 1);
  if (format == "NDHWC") return std::pair(5, 4);
  if (format == "NCDHW") return std::pair(5, 1);
  return InvalidArgument("data_format is ", format, " but must be NHWC, NCHW, NDHWC or NCDHW");
}

/// `channels` merged with the lengths of the vectors that are inputs [begin, end).
absl::StatusOr<int64_t> MergeVectors(InferenceContext* c, int begin, int end, int64_t channels) {
  for (int i = begin; i < end; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(i), 1));
    TROUPE_ASSIGN_OR_RETURN(channels, C::MergeDim(channels, vector.dim(0)));
  }
  return channels;
}

absl::Status FusedBatchNormShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const auto layout, NormLayout(c));
  const auto [rank, at] = layout;
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(0), rank));
  TROUPE_ASSIGN_OR_RETURN(const bool is_training, c->attrs().Get<bool>("is_training"));
  // While training on the batch alone, mean and variance are empty and not looked at.
  const bool vectors_used =
      !is_training || c->attrs().GetOr<float>("exponential_avg_factor", 1.0f) != 1.0f;
  TROUPE_ASSIGN_OR_RETURN(const int64_t channels,
                          MergeVectors(c, 1, vectors_used ? 5 : 3, x.dim(at)));
  c->set_output(0, C::ReplaceDim(x, at, channels));
  for (int i = 1; i < 5; ++i) c->set_output(i, C::VectorOf(channels));
  if (c->num_outputs() == 6) c->set_output(5, PartialShape());
  return absl::OkStatus();
}

absl::Status FusedBatchNormGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const auto layout, NormLayout(c));
  const auto [rank, at] = layout;
  TROUPE_ASSIGN_OR_RETURN(const PartialShape y, C::WithRank(c->input(0), rank));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRank(c->input(1), rank));
  TROUPE_ASSIGN_OR_RETURN(int64_t channels, C::MergeDim(y.dim(at), x.dim(at)));
  TROUPE_ASSIGN_OR_RETURN(channels, MergeVectors(c, 2, 5, channels));
  c->set_output(0, C::ReplaceDim(y, at, channels));
  c->set_output(1, C::VectorOf(channels));
  c->set_output(2, C::VectorOf(channels));
  c->set_output(3, C::VectorOf(0));
  c->set_output(4, C::VectorOf(0));
  return absl::OkStatus();
}

/// For inputs t, then `num_vectors` vectors of a number for each of its channels, then perhaps
/// gradients of t's shape.
absl::StatusOr<PartialShape> GlobalNormShape(InferenceContext* c, int num_vectors) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape t, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(int64_t channels, MergeVectors(c, 1, 1 + num_vectors, t.dim(3)));
  t = C::ReplaceDim(t, 3, channels);
  for (int i = 1 + num_vectors; i < c->num_inputs(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(t, C::Merge(t, c->input(i)));
  }
  return t;
}

absl::Status BatchNormWithGlobalShape(InferenceContext* c) {
  return SetShape(c, GlobalNormShape(c, 4));
}

absl::Status BatchNormWithGlobalGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape t, GlobalNormShape(c, 3));
  c->set_output(0, t);
  for (int i = 1; i < 5; ++i) c->set_output(i, C::VectorOf(t.dim(3)));
  return absl::OkStatus();
}

absl::Status SoftmaxCrossEntropyShape(InferenceContext* c) {
  const PartialShape &features = c->input(0), &labels = c->input(1);
  PartialShape both;
  const auto matrix = C::WithRank(features, 2);
  const auto merged = matrix.ok() ? C::Merge(*matrix, labels) : matrix;
  if (merged.ok()) {
    both = *merged;
  } else {
    TROUPE_ASSIGN_OR_RETURN(both, BroadcastShapes(features, labels, false));
    if (both.rank() != 2) {
      return InvalidArgument("Features of shape ", features.ToString(), " and labels of shape ",
                             labels.ToString(), " must broadcast to a matrix");
    }
  }
  c->set_output(0, C::VectorOf(both.dim(0)));
  c->set_output(1, both);
  return absl::OkStatus();
}

absl::Status SparseSoftmaxCrossEntropyShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape features, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape labels, C::WithRank(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, C::MergeDim(features.dim(0), labels.dim(0)));
  c->set_output(0, C::VectorOf(batch));
  c->set_output(1, C::ReplaceDim(features, 0, batch));
  return absl::OkStatus();
}

OpDefBuilder Convolution(const char* name, const char* signature, const char* type,
                         ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr(type)
      .Attr("strides: list(int)")
      .Attr("use_cudnn_on_gpu: bool = true")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]")
      .SetShapeFn(shape_fn)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kConvolutions[] = {
    Convolution("Conv2D", "input: T, filter: T -> output: T",
                "T: {half, bfloat16, float, double, int32}", Conv2DShape,
                "Convolves images `input` [batch, height, width, channels] (or NCHW) with `filter` "
                "[height, width, channels / groups, outputs]. `strides` and `dilations` have one "
                "number for each dimension of `input`."),
    Convolution("Conv2DBackpropFilter",
                "input: T, filter_sizes: int32, out_backprop: T -> output: T",
                "T: {half, bfloat16, float, double}", Conv2DBackpropFilterShape,
                "Gradient of `Conv2D` with regard to the filter, whose shape is `filter_sizes`."),
    Convolution("Conv2DBackpropInput",
                "input_sizes: int32, filter: T, out_backprop: T -> output: T",
                "T: {half, bfloat16, float, double, int32}", Conv2DBackpropInputShape,
                "Gradient of `Conv2D` with regard to the input, whose shape is `input_sizes`."),
};

}  // namespace

REGISTER_OP("BatchNormWithGlobalNormalization")
    .Signature("t: T, m: T, v: T, beta: T, gamma: T -> result: T")
    .Attr("T: numbertype")
    .Attr("variance_epsilon: float")
    .Attr("scale_after_normalization: bool")
    .Deprecated(9, "Use tf.nn.batch_normalization()")
    .SetShapeFn(BatchNormWithGlobalShape)
    .Doc(
        "Normalises `t` [batch, height, width, channels] with the channels' means `m` and "
        "variances "
        "`v`: (t - m) / sqrt(v + variance_epsilon) * gamma + beta, all vectors of the channels; "
        "`gamma` is left out unless `scale_after_normalization`.");

REGISTER_OP("BatchNormWithGlobalNormalizationGrad")
    .Signature("t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T")
    .Attr("T: numbertype")
    .Attr("variance_epsilon: float")
    .Attr("scale_after_normalization: bool")
    .Deprecated(9, "Use tf.nn.batch_normalization()")
    .SetShapeFn(BatchNormWithGlobalGradShape)
    .Doc(
        "Gradients of `BatchNormWithGlobalNormalization` with regard to its inputs, in their "
        "order; `backprop` is that of its result.");

REGISTER_OP("BiasAdd")
    .Signature("value: T, bias: T -> output: T")
    .Attr("T: numbertype")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .SetShapeFn(BiasAddShape)
    .Doc(
        "Adds the vector `bias` to the channels of `value`: its last dimension, or the second "
        "(NCHW).");

REGISTER_OP("BiasAddGrad")
    .Signature("out_backprop: T -> output: T")
    .Attr("T: numbertype")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .SetShapeFn(BiasAddGradShape)
    .Doc(
        "Gradient of `BiasAdd` with regard to `bias`: sums `out_backprop` over all dimensions "
        "but the channels. Gives a vector.");

REGISTER_OP("BiasAddV1")
    .Signature("value: T, bias: T -> output: T")
    .Attr("T: numbertype")
    .SetShapeFn(BiasAddShape)
    .Doc("Adds the vector `bias` to the last dimension of `value`.");

REGISTER_OP("FusedBatchNorm")
    .Signature(
        "x: T, scale: T, offset: T, mean: T, variance: T -> y: T, batch_mean: T, batch_variance: "
        "T, reserve_space_1: T, reserve_space_2: T")
    .Attr("T: {float}")
    .Attr("epsilon: float = 1e-04")
    .Attr("exponential_avg_factor: float = 1.0")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Attr("is_training: bool = true")
    .SetShapeFn(FusedBatchNormShape)
    .Doc(
        "Normalises `x` over all dimensions but the channels, then multiplies by `scale` and "
        "adds `offset`. While training, mean and variance are those of the batch; else `mean` "
        "and `variance` are used.");

REGISTER_OP("FusedBatchNormV2")
    .Signature(
        "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: "
        "U, reserve_space_1: U, reserve_space_2: U")
    .Attr("T: {half, bfloat16, float}")
    .Attr("U: {float}")
    .Attr("epsilon: float = 1e-04")
    .Attr("exponential_avg_factor: float = 1.0")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Attr("is_training: bool = true")
    .SetShapeFn(FusedBatchNormShape)
    .Doc(
        "Normalises `x` over all dimensions but the channels, then multiplies by `scale` and "
        "adds `offset`. While training, mean and variance are those of the batch, blended into "
        "the given ones by `exponential_avg_factor`; else `mean` and `variance` are used.");

REGISTER_OP("FusedBatchNormV3")
    .Signature(
        "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: "
        "U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U")
    .Attr("T: {half, bfloat16, float}")
    .Attr("U: {bfloat16, float}")
    .Attr("epsilon: float = 1e-04")
    .Attr("exponential_avg_factor: float = 1.0")
    .Attr("data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'")
    .Attr("is_training: bool = true")
    .SetShapeFn(FusedBatchNormShape)
    .Doc(
        "Normalises `x` over all dimensions but the channels, then multiplies by `scale` and "
        "adds `offset`. While training, mean and variance are those of the batch, blended into "
        "the given ones by `exponential_avg_factor`; else `mean` and `variance` are used.");

REGISTER_OP("FusedBatchNormGrad")
    .Signature(
        "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> x_backprop: T, "
        "scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T")
    .Attr("T: {float}")
    .Attr("epsilon: float = 1e-04")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Attr("is_training: bool = true")
    .SetShapeFn(FusedBatchNormGradShape)
    .Doc(
        "Gradients of `FusedBatchNorm` with regard to `x`, `scale` and `offset`, from what it "
        "reserved.");

REGISTER_OP("FusedBatchNormGradV2")
    .Signature(
        "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U -> x_backprop: "
        "T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U")
    .Attr("T: {half, bfloat16, float}")
    .Attr("U: {float}")
    .Attr("epsilon: float = 1e-04")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Attr("is_training: bool = true")
    .SetShapeFn(FusedBatchNormGradShape)
    .Doc(
        "Gradients of `FusedBatchNormV2` with regard to `x`, `scale` and `offset`, from what it "
        "reserved.");

REGISTER_OP("FusedBatchNormGradV3")
    .Signature(
        "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, "
        "reserve_space_3: U -> x_backprop: T, scale_backprop: U, offset_backprop: U, "
        "reserve_space_4: U, reserve_space_5: U")
    .Attr("T: {half, bfloat16, float}")
    .Attr("U: {float}")
    .Attr("epsilon: float = 1e-04")
    .Attr("data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'")
    .Attr("is_training: bool = true")
    .SetShapeFn(FusedBatchNormGradShape)
    .Doc(
        "Gradients of `FusedBatchNormV3` with regard to `x`, `scale` and `offset`, from what it "
        "reserved.");

REGISTER_OP("L2Loss")
    .Signature("t: T -> output: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(ScalarShape)
    .Doc("Computes sum(t^2) / 2, a scalar.");

REGISTER_OP("SoftmaxCrossEntropyWithLogits")
    .Signature("features: T, labels: T -> loss: T, backprop: T")
    .Attr("T: {half, bfloat16, float, double}")
    .SetShapeFn(SoftmaxCrossEntropyShape)
    .Doc(
        "Computes the cross entropy of softmax(features) [batch, classes] and the distributions "
        "`labels`, broadcast over the batch: `loss` [batch]; `backprop` is its gradient.");

REGISTER_OP("SparseSoftmaxCrossEntropyWithLogits")
    .Signature("features: T, labels: Tlabels -> loss: T, backprop: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Attr("Tlabels: {int32, int64} = DT_INT64")
    .SetShapeFn(SparseSoftmaxCrossEntropyShape)
    .Doc(
        "Computes the cross entropy of softmax(features) [batch, classes] and the classes "
        "`labels` [batch]: `loss` [batch]; `backprop` is its gradient.");

}  // namespace troupe

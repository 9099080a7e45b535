// Quantization: to integers with a range and back, and arithmetic on them.
#include <string_view>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// Inputs [first, last] are scalars.
absl::Status CheckScalars(InferenceContext* c, int first, int last) {
  for (int i = first; i <= last; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  return absl::OkStatus();
}

/// Output 0 like that of `op`, which does the same to real numbers; the ranges of the inputs, from
/// input `first` on, are scalars, and so are outputs 1 and 2, the range of the output.
absl::Status WithRanges(InferenceContext* c, std::string_view op, int first) {
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration, OpRegistry::Global()->LookUp(op));
  TROUPE_RETURN_IF_ERROR(registration->shape_fn(c));
  TROUPE_RETURN_IF_ERROR(CheckScalars(c, first, c->num_inputs() - 1));
  c->set_output(1, C::Scalar());
  c->set_output(2, C::Scalar());
  return absl::OkStatus();
}

/// The shape of a range, inputs `first` and `first + 1`: scalars, or with an attribute `axis`
/// other than -1 vectors of as many elements as input `of` has along that axis.
absl::StatusOr<PartialShape> RangeShape(InferenceContext* c, int of, int first) {
  TROUPE_ASSIGN_OR_RETURN(const int32_t axis, c->attrs().Get<int32_t>("axis"));
  if (axis < -1) return InvalidArgument("axis must be at least -1, got ", axis);
  const int rank = axis == -1 ? 0 : 1;
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(first), rank).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape range, C::WithRank(c->input(first + 1), rank));
  if (axis != -1) {
    if (axis >= Shape::kMaxRank) return InvalidArgument("There is no axis ", axis);
    TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(of), axis + 1));
    TROUPE_RETURN_IF_ERROR(C::MergeDim(range.dim(0), C::DimOf(input, axis)).status());
  }
  return range;
}

/// Of a product with a bias, input 2: one element for each column.
absl::Status MatMulWithBiasShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* matmul, OpRegistry::Global()->LookUp("MatMul"));
  TROUPE_RETURN_IF_ERROR(matmul->shape_fn(c));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  TROUPE_RETURN_IF_ERROR(CheckScalars(c, 3, c->num_inputs() - 1));
  for (int i = 1; i < c->num_outputs(); ++i) c->set_output(i, C::Scalar());
  return absl::OkStatus();
}

absl::Status QuantizeShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape range, RangeShape(c, 0, 1));
  c->set_output(0, c->input(0));
  c->set_output(1, range);
  c->set_output(2, range);
  return absl::OkStatus();
}

/// Dequantize, and to and fro; output 0 is like input 0.
absl::Status UnchangedWithAxisShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(RangeShape(c, 0, 1).status());
  return UnchangedShape(c);
}

absl::Status QuantizeAndDequantizeV3Shape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckScalars(c, 3, 3));
  return UnchangedWithAxisShape(c);
}

/// Inputs: gradient, input, range. Outputs: gradients of the input and of the range.
absl::Status QuantizeAndDequantizeGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape range, RangeShape(c, 1, 2));
  TROUPE_RETURN_IF_ERROR(SetShape(c, C::Merge(c->input(0), c->input(1))));
  c->set_output(1, range);
  c->set_output(2, range);
  return absl::OkStatus();
}

/// What has the shape of input 0, and a range of its own.
absl::Status ElementwiseShape(InferenceContext* c) { return WithRanges(c, "Identity", 1); }

absl::Status RangeOnlyShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckScalars(c, 1, 2));
  return ScalarShape(c);
}

absl::Status FakeQuantVarsShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckScalars(c, 1, 2));
  return UnchangedShape(c);
}

absl::Status FakeQuantVarsGradientShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(SetShape(c, C::Merge(c->input(0), c->input(1))));
  TROUPE_RETURN_IF_ERROR(CheckScalars(c, 2, 3));
  c->set_output(1, C::Scalar());
  c->set_output(2, C::Scalar());
  return absl::OkStatus();
}

/// A vector of the size of the last dimension of `inputs`, as inputs `first` and `first + 1` are.
absl::StatusOr<PartialShape> ChannelRangeShape(InferenceContext* c, const PartialShape& inputs,
                                               int first) {
  PartialShape range = C::VectorOf(C::DimOf(inputs, -1));
  TROUPE_ASSIGN_OR_RETURN(range, C::Merge(range, c->input(first)));
  return C::Merge(range, c->input(first + 1));
}

absl::Status FakeQuantChannelsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape inputs, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_RETURN_IF_ERROR(ChannelRangeShape(c, inputs, 1).status());
  return SetShape(c, inputs);
}

absl::Status FakeQuantChannelsGradientShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape inputs, C::Merge(c->input(0), c->input(1)));
  TROUPE_ASSIGN_OR_RETURN(inputs, C::WithRankAtLeast(inputs, 1));
  TROUPE_ASSIGN_OR_RETURN(inputs, C::WithRankAtMost(inputs, 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape range, ChannelRangeShape(c, inputs, 2));
  c->set_output(0, inputs);
  c->set_output(1, range);
  c->set_output(2, range);
  return absl::OkStatus();
}

/// Input 0 is of images.
absl::Status InstanceNormShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 4).status());
  return ElementwiseShape(c);
}

absl::Status ResizeBilinearShape(InferenceContext* c) { return WithRanges(c, "ResizeBilinear", 2); }

/// Inputs: images and four vectors of their channels, a range behind each.
absl::Status GlobalNormalizationShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRank(c->input(0), 4));
  int64_t channels = images.dim(3);
  for (int i = 1; i < 5; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(3 * i), 1));
    TROUPE_ASSIGN_OR_RETURN(channels, C::MergeDim(channels, vector.dim(0)));
  }
  c->set_output(0, C::ReplaceDim(images, 3, channels));
  c->set_output(1, C::Scalar());
  c->set_output(2, C::Scalar());
  return absl::OkStatus();
}

/// Inputs 1 and 2, a range for each channel, are vectors.
absl::Status CheckChannelRanges(InferenceContext* c) {
  for (int i = 1; i <= 2; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 1).status());
  return absl::OkStatus();
}

absl::Status RequantizePerChannelShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckChannelRanges(c));
  return WithRanges(c, "Identity", 3);
}

absl::Status RangePerChannelShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(CheckChannelRanges(c));
  c->set_output(0, C::Scalar());
  c->set_output(1, C::Scalar());
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("QuantizeV2")
    .Signature(
        "input: float, min_range: float, max_range: float -> output: T, output_min: float, "
        "output_max: float")
    .Attr("T: quantizedtype")
    .Attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
    .Attr("round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .Attr("ensure_minimum_range: float = 0.01")
    .SetShapeFn(QuantizeShape)
    .Doc(
        "Rounds `input`, clipped to the range, to integers of type T; also gives the range that "
        "they have, which holds 0 and is at least `ensure_minimum_range` wide, relatively. "
        "MIN_COMBINED spreads the integers evenly over the range; MIN_FIRST rounds the range's "
        "minimum by itself; SCALED maps 0 to 0, without the smallest integer if `narrow_range`. "
        "The range is of two scalars, or has a vector's element for each slice along `axis`.");

REGISTER_OP("Dequantize")
    .Signature("input: T, min_range: float, max_range: float -> output: dtype")
    .Attr("T: quantizedtype")
    .Attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .Attr("dtype: {bfloat16, float} = DT_FLOAT")
    .SetShapeFn(UnchangedWithAxisShape)
    .Doc(
        "The real numbers that `input` stands for, by the inverse of QuantizeV2 with the same "
        "attributes.");

REGISTER_OP("Requantize")
    .Signature(
        "input: Tinput, input_min: float, input_max: float, requested_output_min: float, "
        "requested_output_max: float -> output: out_type, output_min: float, output_max: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype")
    .SetShapeFn(ElementwiseShape)
    .Doc("What `input` stands for, in integers of type out_type and of the requested range.");

REGISTER_OP("RequantizePerChannel")
    .Signature(
        "input: T, input_min: float, input_max: float, requested_output_min: float, "
        "requested_output_max: float -> output: out_type, output_min: float, output_max: float")
    .Attr("T: quantizedtype = DT_QINT32")
    .Attr("out_type: quantizedtype = DT_QUINT8")
    .SetShapeFn(RequantizePerChannelShape)
    .Doc(
        "What `input`, images [batch, height, width, channels] or of three dimensions, stands for, "
        "in integers of type out_type. The vectors `input_min` and `input_max` have a range for "
        "each channel. Ranges count as symmetric about 0.");

REGISTER_OP("RequantizationRangePerChannel")
    .Signature(
        "input: T, input_min: float, input_max: float -> output_min: float, output_max: float")
    .Attr("T: quantizedtype = DT_QINT32")
    .Attr("clip_value_max: float")
    .SetShapeFn(RangePerChannelShape)
    .Doc(
        "The range, symmetric about 0 or from 0 on, of what elements of `input` [batch, height, "
        "width, channels] stand for, at most `clip_value_max`: what to requantize it to.");

REGISTER_OP("RequantizationRange")
    .Signature(
        "input: Tinput, input_min: float, input_max: float -> output_min: float, output_max: "
        "float")
    .Attr("Tinput: quantizedtype")
    .SetShapeFn(RangeOnlyShape)
    .Doc(
        "The smallest (at most 0) and the largest number that elements of `input` stand for: the "
        "range to requantize it to.");

REGISTER_OP("QuantizeDownAndShrinkRange")
    .Signature(
        "input: Tinput, input_min: float, input_max: float -> output: out_type, output_min: "
        "float, output_max: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype")
    .SetShapeFn(ElementwiseShape)
    .Doc("Requantize to the range that RequantizationRange finds.");

REGISTER_OP("QuantizedMatMul")
    .Signature(
        "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> out: Toutput, "
        "min_out: float, max_out: float")
    .Attr("T1: quantizedtype")
    .Attr("T2: quantizedtype")
    .Attr("Toutput: quantizedtype = DT_QINT32")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("Tactivation: quantizedtype = DT_QUINT8")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "MatMul", 2); })
    .Doc(
        "The product of the matrices `a` and `b`, of which either may be transposed first. "
        "Tactivation is not used.");

namespace {

OpDefBuilder MatMulWithBias(const char* name, const char* signature, const char* output_type,
                            const char* doc, bool has_bias_type = true) {
  OpDefBuilder op(name);
  op.Signature(signature).Attr("T1: quantizedtype").Attr("T2: quantizedtype");
  if (has_bias_type) op.Attr("Tbias: {float, qint32}");
  op.Attr(output_type)
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'")
      .SetShapeFn(MatMulWithBiasShape)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kMatMulsWithBias[] = {
    MatMulWithBias("QuantizedMatMulWithBias",
                   "a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float, "
                   "max_b: float -> out: Toutput, min_out: float, max_out: float",
                   "Toutput: quantizedtype = DT_QINT32",
                   "The product of the matrices `a` and `b` plus `bias`, which has an element for "
                   "each column. Integers of `b` stand for multiples of the larger end of its "
                   "range over 127; those of `a` for its range in 255 steps from its minimum "
                   "(MIN_FIRST), or for multiples of its larger end over 255 (SCALED). A bias of "
                   "integers counts in steps of the result, and has the product of `a`'s minimum "
                   "in it."),
    MatMulWithBias("QuantizedMatMulWithBiasAndRelu",
                   "a: T1, b: T2, bias: float, min_a: float, max_a: float, min_b: float, "
                   "max_b: float -> out: Toutput, min_out: float, max_out: float",
                   "Toutput: quantizedtype = DT_QINT32",
                   "QuantizedMatMulWithBias, and 0 in place of what is negative.", false),
    MatMulWithBias("QuantizedMatMulWithBiasAndRequantize",
                   "a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float, "
                   "max_b: float, min_freezed_output: float, max_freezed_output: float -> "
                   "out: Toutput, min_out: float, max_out: float",
                   "Toutput: quantizedtype = DT_QUINT8",
                   "QuantizedMatMulWithBias in multiples of the larger end of the range "
                   "`min_freezed_output` to `max_freezed_output` over 255."),
    MatMulWithBias("QuantizedMatMulWithBiasAndReluAndRequantize",
                   "a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float, "
                   "max_b: float, min_freezed_output: float, max_freezed_output: float -> "
                   "out: Toutput, min_out: float, max_out: float",
                   "Toutput: quantizedtype = DT_QUINT8",
                   "QuantizedMatMulWithBiasAndRequantize, and 0 in place of what is negative."),
    MatMulWithBias("QuantizedMatMulWithBiasAndDequantize",
                   "a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float, "
                   "max_b: float, min_freezed_output: float, max_freezed_output: float -> "
                   "out: Toutput",
                   "Toutput: {float}",
                   "What the result of QuantizedMatMulWithBias stands for. The range of the output "
                   "is not used.")};

}  // namespace

REGISTER_OP("QuantizedConv2D")
    .Signature(
        "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, "
        "max_filter: float -> output: out_type, min_output: float, max_output: float")
    .Attr("Tinput: quantizedtype")
    .Attr("Tfilter: quantizedtype")
    .Attr("out_type: quantizedtype = DT_QINT32")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("dilations: list(int) = [1, 1, 1, 1]")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "Conv2D", 2); })
    .Doc(
        "Convolves images [batch, height, width, channels] with a filter [height, width, in "
        "channels, out channels]; what is outside an image counts as 0.");

REGISTER_OP("QuantizedBiasAdd")
    .Signature(
        "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: "
        "float -> output: out_type, min_out: float, max_out: float")
    .Attr("T1: quantizedtype")
    .Attr("T2: quantizedtype")
    .Attr("out_type: quantizedtype")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "BiasAdd", 2); })
    .Doc("Adds the vector `bias` along the last dimension of `input`.");

REGISTER_OP("QuantizedRelu")
    .Signature(
        "features: Tinput, min_features: float, max_features: float -> activations: out_type, "
        "min_activations: float, max_activations: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype = DT_QUINT8")
    .SetShapeFn(ElementwiseShape)
    .Doc("max(features, 0). The range stays.");

REGISTER_OP("QuantizedRelu6")
    .Signature(
        "features: Tinput, min_features: float, max_features: float -> activations: out_type, "
        "min_activations: float, max_activations: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype = DT_QUINT8")
    .SetShapeFn(ElementwiseShape)
    .Doc("min(max(features, 0), 6). The range stays.");

REGISTER_OP("QuantizedReluX")
    .Signature(
        "features: Tinput, max_value: float, min_features: float, max_features: float -> "
        "activations: out_type, min_activations: float, max_activations: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype = DT_QUINT8")
    .SetShapeFn(ElementwiseShape)
    .Doc("min(max(features, 0), max_value). The range stays.");

REGISTER_OP("QuantizedMaxPool")
    .Signature(
        "input: T, min_input: float, max_input: float -> output: T, min_output: float, "
        "max_output: float")
    .Attr("T: quantizedtype")
    .Attr("ksize: list(int)")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "MaxPool", 1); })
    .Doc("The largest element of every window over images of layout NHWC. The range stays.");

REGISTER_OP("QuantizedAvgPool")
    .Signature(
        "input: T, min_input: float, max_input: float -> output: T, min_output: float, "
        "max_output: float")
    .Attr("T: quantizedtype")
    .Attr("ksize: list(int)")
    .Attr("strides: list(int)")
    .Attr("padding: {'SAME', 'VALID'}")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "AvgPool", 1); })
    .Doc(
        "The average, rounded toward 0, of every window over images of layout NHWC. The range "
        "stays.");

REGISTER_OP("QuantizedReshape")
    .Signature(
        "tensor: T, shape: Tshape, input_min: float, input_max: float -> output: T, output_min: "
        "float, output_max: float")
    .Attr("T: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "Reshape", 2); })
    .Doc("Reshape. The range stays.");

REGISTER_OP("QuantizedAdd")
    .Signature(
        "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> z: Toutput, "
        "min_z: float, max_z: float")
    .Attr("T1: quantizedtype")
    .Attr("T2: quantizedtype")
    .Attr("Toutput: quantizedtype = DT_QINT32")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "AddV2", 2); })
    .Doc("Adds `x` and `y`, of which one is repeated along leading dimensions.");

REGISTER_OP("QuantizedMul")
    .Signature(
        "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> z: Toutput, "
        "min_z: float, max_z: float")
    .Attr("T1: quantizedtype")
    .Attr("T2: quantizedtype")
    .Attr("Toutput: quantizedtype = DT_QINT32")
    .SetShapeFn([](InferenceContext* c) { return WithRanges(c, "AddV2", c->num_inputs()); })
    .Doc("Multiplies `x` and `y`, of which one is repeated along leading dimensions.");

REGISTER_OP("QuantizedInstanceNorm")
    .Signature("x: T, x_min: float, x_max: float -> y: T, y_min: float, y_max: float")
    .Attr("T: quantizedtype")
    .Attr("output_range_given: bool = false")
    .Attr("given_y_min: float = 0")
    .Attr("given_y_max: float = 0")
    .Attr("variance_epsilon: float = 1e-5")
    .Attr("min_separation: float = 1e-3")
    .SetShapeFn(InstanceNormShape)
    .Doc(
        "Normalizes every channel of every image of `x` [batch, height, width, channels] to mean "
        "0 and variance 1. The range is that of the results unless `output_range_given`, and at "
        "least `min_separation` wide.");

REGISTER_OP("QuantizedResizeBilinear")
    .Signature(
        "images: T, size: int32, min: float, max: float -> resized_images: T, out_min: float, "
        "out_max: float")
    .Attr("T: {quint8, qint32, float}")
    .Attr("align_corners: bool = false")
    .Attr("half_pixel_centers: bool = false")
    .SetShapeFn(ResizeBilinearShape)
    .Doc("ResizeBilinear. The range stays.");

REGISTER_OP("QuantizedBatchNormWithGlobalNormalization")
    .Signature(
        "t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float, m_max: float, v: Tinput, "
        "v_min: float, v_max: float, beta: Tinput, beta_min: float, beta_max: float, gamma: "
        "Tinput, gamma_min: float, gamma_max: float -> result: out_type, result_min: float, "
        "result_max: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype")
    .Attr("variance_epsilon: float")
    .Attr("scale_after_normalization: bool")
    .SetShapeFn(GlobalNormalizationShape)
    .Doc(
        "BatchNormWithGlobalNormalization in fixed point. The range of the result is from -2^20 "
        "to 2^20.");

REGISTER_OP("QuantizeAndDequantize")
    .Signature("input: T -> output: T")
    .Attr("signed_input: bool = true")
    .Attr("num_bits: int = 8")
    .Attr("range_given: bool = false")
    .Attr("input_min: float = 0")
    .Attr("input_max: float = 0")
    .Attr("T: {bfloat16, half, float, double}")
    .Deprecated(22, "Replaced by QuantizeAndDequantizeV2")
    .SetShapeFn(UnchangedShape)
    .Doc("QuantizeAndDequantizeV2, half to even, with the range as attributes.");

REGISTER_OP("QuantizeAndDequantizeV2")
    .Signature("input: T, input_min: T, input_max: T -> output: T")
    .Attr("signed_input: bool = true")
    .Attr("num_bits: int = 8")
    .Attr("range_given: bool = false")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .SetShapeFn(UnchangedWithAxisShape)
    .Doc(
        "What is left of `input` when it is quantized to `num_bits` bits, 0 to 0, and back. The "
        "range is that of the input unless `range_given`; it has an element for each slice along "
        "`axis` unless that is -1.");

REGISTER_OP("QuantizeAndDequantizeV3")
    .Signature("input: T, input_min: T, input_max: T, num_bits: int32 -> output: T")
    .Attr("signed_input: bool = true")
    .Attr("range_given: bool = true")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .SetShapeFn(QuantizeAndDequantizeV3Shape)
    .Doc("QuantizeAndDequantizeV2, half to even, with `num_bits` as a tensor.");

REGISTER_OP("QuantizeAndDequantizeV4")
    .Signature("input: T, input_min: T, input_max: T -> output: T")
    .Attr("signed_input: bool = true")
    .Attr("num_bits: int = 8")
    .Attr("range_given: bool = false")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .SetShapeFn(UnchangedWithAxisShape)
    .Doc("QuantizeAndDequantizeV2 with a gradient of 0 outside of the range.");

REGISTER_OP("QuantizeAndDequantizeV4Grad")
    .Signature(
        "gradients: T, input: T, input_min: T, input_max: T -> input_backprop: T, "
        "input_min_backprop: T, input_max_backprop: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Attr("axis: int = -1")
    .SetShapeFn(QuantizeAndDequantizeGradShape)
    .Doc("`gradients` where `input` is in the range, else 0; 0 for the range itself.");

REGISTER_OP("FakeQuantWithMinMaxArgs")
    .Signature("inputs: float -> outputs: float")
    .Attr("min: float = -6")
    .Attr("max: float = 6")
    .Attr("num_bits: int = 8")
    .Attr("narrow_range: bool = false")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "What is left of `inputs` when they are quantized to 2 to 16 bits and back. The range is "
        "shifted so that an integer stands for 0.");

REGISTER_OP("FakeQuantWithMinMaxArgsGradient")
    .Signature("gradients: float, inputs: float -> backprops: float")
    .Attr("min: float = -6")
    .Attr("max: float = 6")
    .Attr("num_bits: int = 8")
    .Attr("narrow_range: bool = false")
    .SetShapeFn(UnchangedShape)
    .Doc("`gradients` where the input is in the shifted range, else 0.");

REGISTER_OP("FakeQuantWithMinMaxVars")
    .Signature("inputs: float, min: float, max: float -> outputs: float")
    .Attr("num_bits: int = 8")
    .Attr("narrow_range: bool = false")
    .SetShapeFn(FakeQuantVarsShape)
    .Doc("FakeQuantWithMinMaxArgs with the scalars `min` and `max` as the range.");

REGISTER_OP("FakeQuantWithMinMaxVarsGradient")
    .Signature(
        "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, "
        "backprop_wrt_min: float, backprop_wrt_max: float")
    .Attr("num_bits: int = 8")
    .Attr("narrow_range: bool = false")
    .SetShapeFn(FakeQuantVarsGradientShape)
    .Doc(
        "`gradients` where the input is in the shifted range, else 0; and the sums of those below "
        "it, for `min`, and above it, for `max`.");

REGISTER_OP("FakeQuantWithMinMaxVarsPerChannel")
    .Signature("inputs: float, min: float, max: float -> outputs: float")
    .Attr("num_bits: int = 8")
    .Attr("narrow_range: bool = false")
    .SetShapeFn(FakeQuantChannelsShape)
    .Doc("FakeQuantWithMinMaxVars with a range for each element of the last dimension.");

REGISTER_OP("FakeQuantWithMinMaxVarsPerChannelGradient")
    .Signature(
        "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, "
        "backprop_wrt_min: float, backprop_wrt_max: float")
    .Attr("num_bits: int = 8")
    .Attr("narrow_range: bool = false")
    .SetShapeFn(FakeQuantChannelsGradientShape)
    .Doc("FakeQuantWithMinMaxVarsGradient for each element of the last dimension.");

}  // namespace troupe

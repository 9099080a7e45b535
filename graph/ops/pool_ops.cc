// Pooling.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// Output 0 from input 0 and the windows' sizes and strides, 4 of each; the windows slide over the
/// channels as well if `over_channels`.
absl::Status PooledShape(InferenceContext* c, const std::vector<int64_t>& ksize,
                         const std::vector<int64_t>& strides, bool over_channels) {
  TROUPE_ASSIGN_OR_RETURN(const ImageLayout layout, ImageLayoutOf(c));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRank(c->input(0), 4));
  std::vector<int64_t> pads;
  TROUPE_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(c, layout, &pads));
  std::vector<int64_t> sizes(input.dims().begin(), input.dims().end());
  for (const int d : {layout.height, layout.width, layout.channels}) {
    if (d == layout.channels && !over_channels) continue;
    TROUPE_ASSIGN_OR_RETURN(sizes[d], WindowPositions(input.dim(d), ksize[d], 1, strides[d],
                                                      padding, pads[2 * d], pads[2 * d + 1]));
  }
  return SetShape(c, PartialShape(sizes));
}

absl::Status PooledByAttrs(InferenceContext* c, bool over_channels) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 4).status());
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, FourIntegers(c, "strides"));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, FourIntegers(c, "ksize"));
  return PooledShape(c, ksize, strides, over_channels);
}

/// Sizes and strides are the last two inputs.
absl::Status PooledByInputs(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 4).status());
  const int at = c->num_inputs() - 2;
  for (int i = at; i < at + 2; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, C::WithRank(c->input(i), 1));
    TROUPE_RETURN_IF_ERROR(WithValue(vector.dim(0), 4).status());
  }
  if (!c->input_tensor(at).valid() || !c->input_tensor(at + 1).valid()) return UnknownShape(c);
  return PooledShape(c, IntegerValues(c->input_tensor(at)), IntegerValues(c->input_tensor(at + 1)),
                     true);
}

/// For second gradients, whose output is shaped like the pooled tensor: `grad` is shaped like the
/// input.
absl::Status CheckSecondGradient(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::Merge(c->input(0), c->input(2)).status());
  return C::Merge(c->input(1), c->output(0)).status();
}

absl::Status AvgPoolShape(InferenceContext* c) { return PooledByAttrs(c, false); }

absl::Status AvgPoolGradShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, c->InputAsShape(0));
  TROUPE_ASSIGN_OR_RETURN(shape, C::WithRank(shape, 4));
  return SetShape(c, shape);
}

absl::Status MaxPoolShape(InferenceContext* c) { return PooledByAttrs(c, true); }

absl::Status MaxPoolV2Shape(InferenceContext* c) { return PooledByInputs(c); }

absl::Status MaxPoolGradShape(InferenceContext* c) {
  return SetShape(c, C::WithRank(c->input(0), 4));
}

absl::Status MaxPoolGradGradShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(PooledByAttrs(c, true));
  return CheckSecondGradient(c);
}

absl::Status MaxPoolGradGradV2Shape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(PooledByInputs(c));
  return CheckSecondGradient(c);
}

constexpr char kFloating[] = "T: {half, bfloat16, float, double}";
constexpr bool kByAttrs = true, kByInputs = false;

/// An op on windows, whose sizes and strides are attributes or inputs.
OpDefBuilder Define(const char* name, const char* signature, bool by_attrs, const char* type,
                    ShapeFn shape_fn, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature);
  if (by_attrs) op.Attr("ksize: list(int) >= 4").Attr("strides: list(int) >= 4");
  op.Attr("padding: {'SAME', 'VALID'}").Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'").Attr(type);
  op.SetShapeFn(shape_fn).Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kOps[] = {
    Define("AvgPool", "value: T -> output: T", kByAttrs, kFloating, AvgPoolShape,
           "Takes the mean of each window of `ksize` elements at distances `strides`; both have a "
           "number for each of the 4 dimensions of `value`."),
    Define("AvgPoolGrad", "orig_input_shape: int32, grad: T -> output: T", kByAttrs, kFloating,
           AvgPoolGradShape, "Gradient of `AvgPool` for an input of the shape `orig_input_shape`."),
    Define("MaxPoolGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T", kByAttrs,
           "T: realnumbertype", MaxPoolGradGradShape,
           "Second gradient of `MaxPool`: takes `grad` from where the largest elements of "
           "`orig_input` were. Gives the shape of `orig_output`."),
    Define("MaxPoolGradGradV2",
           "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
           kByInputs, "T: realnumbertype", MaxPoolGradGradV2Shape,
           "Second gradient of `MaxPoolV2`: takes `grad` from where the largest elements of "
           "`orig_input` were. Gives the shape of `orig_output`."),
    Define("MaxPoolGradV2",
           "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
           kByInputs, "T: realnumbertype = DT_FLOAT", MaxPoolGradShape,
           "Gradient of `MaxPoolV2`: sends `grad` to where the largest elements of `orig_input` "
           "were. Gives the shape of `orig_input`."),
};

}  // namespace

REGISTER_OP("MaxPool")
    .Signature("input: T -> output: T")
    .Attr(
        "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "
        "DT_FLOAT")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
    .SetShapeFn(MaxPoolShape)
    .Doc(
        "Takes the largest element of each window of `ksize` elements at distances `strides`; "
        "both have a number for each of the 4 dimensions of `input`.");

REGISTER_OP("MaxPoolGrad")
    .Signature("orig_input: T, orig_output: T, grad: T -> output: T")
    .Attr("ksize: list(int) >= 4")
    .Attr("strides: list(int) >= 4")
    .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
    .Attr("explicit_paddings: list(int) = []")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Attr("T: realnumbertype = DT_FLOAT")
    .SetShapeFn(MaxPoolGradShape)
    .Doc(
        "Gradient of `MaxPool`: sends `grad` to where the largest elements of `orig_input` "
        "were. Gives the shape of `orig_input`.");

REGISTER_OP("MaxPoolV2")
    .Signature("input: T, ksize: int32, strides: int32 -> output: T")
    .Attr(
        "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = "
        "DT_FLOAT")
    .Attr("padding: {'SAME', 'VALID'}")
    .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
    .SetShapeFn(MaxPoolV2Shape)
    .Doc(
        "Takes the largest element of each window of `ksize` elements at distances `strides`; "
        "both are vectors of a number for each of the 4 dimensions of `input`.");

}  // namespace troupe

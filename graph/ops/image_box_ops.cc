// Boxes in images: drawing, sampling, non-maximum suppression.
#include <algorithm>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status Scalars(InferenceContext* c, int begin, int end) {
  for (int i = begin; i < end; ++i) TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(i), 0).status());
  return absl::OkStatus();
}

/// Input `i`: [batch, boxes, 4].
absl::Status CheckBoxes(InferenceContext* c, int i) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape boxes, C::WithRank(c->input(i), 3));
  return WithValue(boxes.dim(2), 4).status();
}

absl::Status DrawShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape images, C::WithRank(c->input(0), 4));
  const int64_t channels = images.dim(3);
  if (channels >= 0 && channels != 1 && channels != 3 && channels != 4) {
    return InvalidArgument("images have ", channels, " channels; they must have 1, 3 or 4");
  }
  TROUPE_RETURN_IF_ERROR(CheckBoxes(c, 1));
  return SetShape(c, images);
}

REGISTER_OP("DrawBoundingBoxes")
    .Signature("images: T, boxes: float -> output: T")
    .Attr("T: {float, half} = DT_FLOAT")
    .SetShapeFn(DrawShape)
    .Doc(
        "Draws the outlines of `boxes` [batch, n, 4] over images [batch, height, width, 1, 3 or "
        "4]. A box is [y1, x1, y2, x2]; 0 and 1 are the first and the last row or column. Ten "
        "colors take turns; the first is yellow.");

absl::Status DrawColoredShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 2).status());
  return DrawShape(c);
}

REGISTER_OP("DrawBoundingBoxesV2")
    .Signature("images: T, boxes: float, colors: float -> output: T")
    .Attr("T: {float, half} = DT_FLOAT")
    .SetShapeFn(DrawColoredShape)
    .Doc(
        "As `DrawBoundingBoxes`, with the colors `colors` [n, channels]; without any, those of "
        "`DrawBoundingBoxes`.");

/// Inputs from 2 to `scalars_end` are scalars.
absl::Status SampledShape(InferenceContext* c, int scalars_end) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape size, C::WithRank(c->input(0), 1));
  TROUPE_RETURN_IF_ERROR(WithValue(size.dim(0), 3).status());
  TROUPE_RETURN_IF_ERROR(CheckBoxes(c, 1));
  TROUPE_RETURN_IF_ERROR(Scalars(c, 2, scalars_end));
  c->set_output(0, C::VectorOf(3));
  c->set_output(1, C::VectorOf(3));
  c->set_output(2, PartialShape({1, 1, 4}));
  return absl::OkStatus();
}
absl::Status SampleShape(InferenceContext* c) { return SampledShape(c, c->num_inputs()); }

/// The attribute `min_object_covered` became an input.
OpDefBuilder DefineSample(const char* name, const char* signature, bool covered_attr,
                          const char* doc) {
  OpDefBuilder op(name);
  op.Signature(signature)
      .Attr("T: {uint8, int8, int16, int32, int64}")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0");
  if (covered_attr) op.Attr("min_object_covered: float = 0.1");
  op.Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .Attr("area_range: list(float) = [0.05, 1.0]")
      .Attr("max_attempts: int = 100")
      .Attr("use_image_if_no_bounding_boxes: bool = false")
      .SetIsStateful()
      .SetShapeFn(SampleShape)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kSampleOps[] = {
    DefineSample("SampleDistortedBoundingBox",
                 "image_size: T, bounding_boxes: float -> begin: T, size: T, bboxes: float", true,
                 "As `SampleDistortedBoundingBoxV2`, with `min_object_covered` as an attribute."),
    DefineSample(
        "SampleDistortedBoundingBoxV2",
        "image_size: T, bounding_boxes: float, min_object_covered: float -> begin: T, size: T, "
        "bboxes: float",
        false,
        "Draws a box at random in an image of the shape `image_size` = [height, width, channels]. "
        "Its aspect ratio (width by height) and its part of the image's area lie in the ranges "
        "given, and it covers at least `min_object_covered` of one of `bounding_boxes` [batch, n, "
        "4]; if `max_attempts` boxes do not, it is the whole image. `begin` and `size` are for "
        "Slice, `bboxes` [1, 1, 4] for DrawBoundingBoxes."),
};

absl::Status StatelessSampleShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape seed, C::WithRank(c->input(3), 1));
  TROUPE_RETURN_IF_ERROR(WithValue(seed.dim(0), 2).status());
  return SampledShape(c, 3);
}

REGISTER_OP("StatelessSampleDistortedBoundingBox")
    .Signature(
        "image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed -> begin: T, "
        "size: T, bboxes: float")
    .Attr("T: {uint8, int8, int16, int32, int64}")
    .Attr("Tseed: {int32, int64}")
    .Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
    .Attr("area_range: list(float) = [0.05, 1.0]")
    .Attr("max_attempts: int = 100")
    .Attr("use_image_if_no_bounding_boxes: bool = false")
    .SetShapeFn(StatelessSampleShape)
    .Doc("As `SampleDistortedBoundingBoxV2`, but the same `seed` [2] always gives the same box.");

/// Output 0: a vector of indices. Checks `boxes` [n, 4], `scores` [n] and the scalars after them.
absl::Status SuppressedShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape boxes, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape scores, C::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(Scalars(c, 2, c->num_inputs()));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(boxes.dim(0), scores.dim(0)).status());
  TROUPE_RETURN_IF_ERROR(WithValue(boxes.dim(1), 4).status());
  return SetShape(c, C::VectorOf(-1));
}

/// The last output is how many there are; the others are vectors.
absl::Status CountedShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(SuppressedShape(c));
  bool pad;
  TROUPE_RETURN_IF_ERROR(c->GetAttr("pad_to_max_output_size", &pad));
  int64_t size = -1;
  if (pad) {
    TROUPE_ASSIGN_OR_RETURN(size, c->InputAsDim(2));
  }
  const int last = c->num_outputs() - 1;
  for (int i = 0; i < last; ++i) c->set_output(i, C::VectorOf(size));
  c->set_output(last, C::Scalar());
  return absl::OkStatus();
}

REGISTER_OP("NonMaxSuppression")
    .Signature("boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32")
    .Attr("iou_threshold: float = 0.5")
    .SetShapeFn(SuppressedShape)
    .Doc("As `NonMaxSuppressionV3`, without a least score; the threshold is an attribute.");

absl::Status OverlapsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape overlaps, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape scores, C::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(Scalars(c, 2, c->num_inputs()));
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, C::MergeDim(overlaps.dim(0), scores.dim(0)));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(overlaps.dim(1), n).status());
  return SetShape(c, C::VectorOf(-1));
}

REGISTER_OP("NonMaxSuppressionWithOverlaps")
    .Signature(
        "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
        "score_threshold: float -> selected_indices: int32")
    .SetShapeFn(OverlapsShape)
    .Doc(
        "As `NonMaxSuppressionV3`, with `overlaps`[i, j] [n, n] for the overlap of boxes i and j, "
        "whatever that means, and `overlap_threshold` for `iou_threshold`.");

REGISTER_OP("NonMaxSuppressionV2")
    .Signature(
        "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> "
        "selected_indices: int32")
    .Attr("T: {half, float} = DT_FLOAT")
    .Attr("T_threshold: {half, float} = DT_FLOAT")
    .SetShapeFn(SuppressedShape)
    .Doc("As `NonMaxSuppressionV3`, without a least score.");

REGISTER_OP("NonMaxSuppressionV3")
    .Signature(
        "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
        "score_threshold: T_threshold -> selected_indices: int32")
    .Attr("T: {half, float} = DT_FLOAT")
    .Attr("T_threshold: {half, float} = DT_FLOAT")
    .SetShapeFn(SuppressedShape)
    .Doc(
        "Picks boxes by their scores, the highest first, and leaves out those that overlap one "
        "already picked: by more than `iou_threshold`, the area of the intersection divided by "
        "that of the union. At most `max_output_size` boxes, with scores above `score_threshold`. "
        "`boxes` [n, 4] are [y1, x1, y2, x2], of any two opposite corners.");

REGISTER_OP("NonMaxSuppressionV4")
    .Signature(
        "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
        "score_threshold: T_threshold -> selected_indices: int32, valid_outputs: int32")
    .Attr("T: {half, float} = DT_FLOAT")
    .Attr("T_threshold: {half, float} = DT_FLOAT")
    .Attr("pad_to_max_output_size: bool = false")
    .SetShapeFn(CountedShape)
    .Doc(
        "As `NonMaxSuppressionV3`; `valid_outputs` is the number of boxes picked. If "
        "`pad_to_max_output_size`, zeros follow their indices.");

REGISTER_OP("NonMaxSuppressionV5")
    .Signature(
        "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, "
        "soft_nms_sigma: T -> selected_indices: int32, selected_scores: T, valid_outputs: int32")
    .Attr("T: {half, float} = DT_FLOAT")
    .Attr("pad_to_max_output_size: bool = false")
    .SetShapeFn(CountedShape)
    .Doc(
        "As `NonMaxSuppressionV4`; if `soft_nms_sigma` is above 0, boxes that overlap one already "
        "picked are not left out, but lose score: it is multiplied by exp(-overlap^2 / (2 "
        "soft_nms_sigma)). `selected_scores` are the scores of what was picked.");

absl::Status CombinedShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape boxes, C::WithRank(c->input(0), 4));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape scores, C::WithRank(c->input(1), 3));
  TROUPE_RETURN_IF_ERROR(Scalars(c, 2, 6));
  TROUPE_RETURN_IF_ERROR(WithValue(boxes.dim(3), 4).status());
  TROUPE_ASSIGN_OR_RETURN(const int64_t batch, C::MergeDim(boxes.dim(0), scores.dim(0)));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(boxes.dim(1), scores.dim(1)).status());
  const int64_t classes = scores.dim(2);
  if (boxes.dim(2) >= 0 && boxes.dim(2) != 1 && classes >= 0 && boxes.dim(2) != classes) {
    return InvalidArgument("boxes are for ", boxes.dim(2), " classes, scores for ", classes,
                           "; boxes must be for as many, or for 1");
  }
  const Tensor& per_class = c->input_tensor(2);
  const Tensor& total = c->input_tensor(3);
  int64_t size = -1;
  if (total.valid()) {
    TROUPE_ASSIGN_OR_RETURN(size, ScalarValue(total));
    if (size <= 0) {
      return InvalidArgument("`max_total_size` is ", size, "; it must be positive");
    }
    bool pad_per_class;
    TROUPE_RETURN_IF_ERROR(c->GetAttr("pad_per_class", &pad_per_class));
    if (pad_per_class && per_class.valid() && classes >= 0) {
      TROUPE_ASSIGN_OR_RETURN(const int64_t most, ScalarValue(per_class));
      if (most <= 0) {
        return InvalidArgument("`max_output_size_per_class` is ", most, "; it must be positive");
      }
      size = std::min(size, C::Multiply(most, classes));
    } else if (pad_per_class) {
      size = -1;
    }
  }
  c->set_output(0, PartialShape({batch, size, 4}));
  c->set_output(1, PartialShape({batch, size}));
  c->set_output(2, PartialShape({batch, size}));
  c->set_output(3, PartialShape({batch}));
  return absl::OkStatus();
}

REGISTER_OP("CombinedNonMaxSuppression")
    .Signature(
        "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, "
        "iou_threshold: float, score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, "
        "nmsed_classes: float, valid_detections: int32")
    .Attr("pad_per_class: bool = false")
    .Attr("clip_boxes: bool = true")
    .SetShapeFn(CombinedShape)
    .Doc(
        "Non-maximum suppression of each class of each image by itself; the best of all classes "
        "are given. `boxes` are [batch, n, 1 or classes, 4], `scores` [batch, n, classes]. Rows of "
        "zeros follow up to `max_total_size`, or, if `pad_per_class`, at most "
        "`max_output_size_per_class` for each class. `clip_boxes` cuts boxes to [0, 1].");

}  // namespace
}  // namespace troupe

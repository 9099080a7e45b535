// Gradients of ops on images.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

// --- resizing and crops --------------------------------------------------------------------------

/// The gradient of a resizing of input 0, by `op`.
void ResizeGrad(GradientContext& g, std::string_view op, Output original) {
  g.set(0, g.Op(op, {g.grad(), original}, [&](NodeSpec& spec) {
    CopyAttrs(g.node(), {"align_corners", "half_pixel_centers"}, spec);
  }));
}

void BilinearGrad(GradientContext& g) {
  if (IsFloating(g.input(0).type())) ResizeGrad(g, "ResizeBilinearGrad", g.input(0));
}
REGISTER_GRADIENT("ResizeBilinear", BilinearGrad);

void BicubicGrad(GradientContext& g) {
  const ElementType type = g.input(0).type();
  if (type == ElementType::kFloat || type == ElementType::kDouble) {
    ResizeGrad(g, "ResizeBicubicGrad", g.input(0));
  }
}
REGISTER_GRADIENT("ResizeBicubic", BicubicGrad);

void NearestGrad(GradientContext& g) {
  ResizeGrad(g, "ResizeNearestNeighborGrad", Sizes::OfShape(g, g.input(0)).Slice(1, 3).Vector());
}
REGISTER_GRADIENT("ResizeNearestNeighbor", NearestGrad);

/// Like TensorFlow's, the gradient for the boxes is that of linear interpolation, also where the
/// nearest pixel is taken.
void CropAndResizeGrad(GradientContext& g) {
  const Output image = g.input(0), boxes = g.input(1), box_ind = g.input(2);
  const ElementType type = image.type();
  if (g.wanted(0) &&
      (type == ElementType::kHalf || type == ElementType::kFloat || type == ElementType::kDouble)) {
    g.set(0, g.Op("CropAndResizeGradImage", {g.grad(), boxes, box_ind, g.Shape(image)},
                  [&](NodeSpec& spec) {
                    spec.Attr("T", type);
                    CopyAttrs(g.node(), {"method"}, spec);
                  }));
  }
  if (g.wanted(1)) g.set(1, g.Op("CropAndResizeGradBoxes", {g.grad(), image, boxes, box_ind}));
}
REGISTER_GRADIENT("CropAndResize", CropAndResizeGrad);

// --- patches and transforms ----------------------------------------------------------------------

/// Each pixel gets the gradients of all places in patches that it was copied to. Which pixel a
/// place was copied from is seen from patches of an image of pixel numbers; 0 is the padding.
void PatchesGrad(GradientContext& g) {
  const Sizes image = Sizes::OfShape(g, g.input(0));
  const Sizes batch = image.Slice(0, 1), size = image.Slice(1, -1);
  const Sizes channels = image.Slice(-1, Sizes::kEnd);
  const Sizes one = Sizes::Known(g, {1});
  const Output pixels = size.Product().Scalar();
  const Output numbers = g.Op(
      "Range",
      {g.Scalar<int32_t>(1), g.Op("AddV2", {pixels, g.Scalar<int32_t>(1)}), g.Scalar<int32_t>(1)});
  const Output places = g.Op(g.node()->op(), {Reshape(g, numbers, one.Concat(size).Concat(one))},
                             [&](NodeSpec& spec) {
                               CopyAttrs(g.node(), {"ksizes", "strides", "padding"}, spec);
                               if (g.node()->attrs().Has("rates"))
                                 CopyAttrs(g.node(), {"rates"}, spec);
                             });
  const Sizes count = Sizes::OfShape(g, places).Product();
  // Negative segments are dropped.
  const Output segments = g.Op("Sub", {Reshape(g, places, count), g.Scalar<int32_t>(1)});
  // [batch, places, channels] to [places, batch, channels] and back.
  const Output grads =
      Transpose(g, Reshape(g, g.grad(), batch.Concat(count).Concat(channels)), {1, 0, 2});
  const Output sums = g.Op("UnsortedSegmentSum", {grads, segments, pixels});
  g.set(0, Reshape(g, Transpose(g, sums, {1, 0, 2}), image));
}
REGISTER_GRADIENT("ExtractImagePatches", PatchesGrad);
REGISTER_GRADIENT("ExtractVolumePatches", PatchesGrad);

/// Like TensorFlow's: the gradient image, transformed back. It is the gradient where pixels are
/// moved, and near it where they are interpolated.
void ProjectiveGrad(GradientContext& g) {
  // Rows of 8 to matrices, the last element being 1, and back.
  const Output rows = g.input(1);
  const Output ones =
      g.Op("OnesLike", {g.Op("Slice", {rows, g.IntVector({0, 0}), g.IntVector({-1, 1})})});
  const Output matrices =
      g.Op("Reshape", {Concat(g, {rows, ones}, g.Scalar<int32_t>(1)), g.IntVector({-1, 3, 3})});
  const Output inverse = g.Op("Reshape", {g.Op("MatrixInverse", {matrices}), g.IntVector({-1, 9})});
  const Output last = g.Op("Slice", {inverse, g.IntVector({0, 8}), g.IntVector({-1, 1})});
  const Output back =
      g.Op("Slice", {Div(g, inverse, last), g.IntVector({0, 0}), g.IntVector({-1, 8})});
  g.set(0, g.Op("ImageProjectiveTransformV2",
                {g.grad(), back, Sizes::OfShape(g, g.input(0)).Slice(1, 3).Vector()},
                [&](NodeSpec& spec) {
                  CopyAttrs(g.node(), {"interpolation", "fill_mode"}, spec);
                }));
}
REGISTER_GRADIENT("ImageProjectiveTransformV2", ProjectiveGrad);
REGISTER_GRADIENT("ImageProjectiveTransformV3", ProjectiveGrad);

// --- colors --------------------------------------------------------------------------------------

/// x[..., i] for each i of `channels`.
Output Channels(GradientContext& g, Output x, std::initializer_list<int32_t> channels) {
  return g.Op("GatherV2", {x, g.IntVector(channels), g.Scalar<int32_t>(-1)});
}

/// For the largest channel max, the smallest min, and R = max - min: value = max, saturation = R /
/// max, hue = (a - b) / (6 R) + constant, a and b being the channels after the largest one, in
/// turn. Of equal channels the first is the largest, the last the smallest; gray has no hue.
void RgbToHsvGrad(GradientContext& g) {
  const Output rgb = g.input(0);
  const ElementType type = rgb.type();
  const auto last_axis = [&] { return g.Scalar<int32_t>(-1); };
  const auto mask = [&](Output channel) {
    return g.Op("OneHot",
                {channel, g.Scalar<int32_t>(3), g.ScalarOfType(type, 1), g.ScalarOfType(type, 0)});
  };
  const auto divide = [&](Output a, Output b) { return g.Op("DivNoNan", {a, b}); };
  const auto pick = [&](Output weights) {
    return Sum(g, Mul(g, weights, rgb), {-1}, /*keep_dims=*/true);
  };
  const auto arg = [&](const char* op, Output x) { return g.Op(op, {x, last_axis()}); };
  const Output is_max = mask(arg("ArgMax", rgb));
  const Output is_min =
      mask(g.Op("Sub", {g.Scalar<int64_t>(2), arg("ArgMin", Channels(g, rgb, {2, 1, 0}))}));
  const Output range_grad = Sub(g, is_max, is_min);
  const Output range = pick(range_grad);
  // Without it, pixels that are not positive have no saturation.
  const Output max = g.Op("Maximum", {pick(is_max), g.ScalarOfType(type, 0)});
  const Output difference_grad =
      Sub(g, Channels(g, is_max, {2, 0, 1}), Channels(g, is_max, {1, 2, 0}));
  const Output difference = pick(difference_grad);

  const Output by_hue = Sub(g, divide(difference_grad, range),
                            Mul(g, range_grad, divide(difference, g.Op("Square", {range}))));
  const Output by_saturation =
      Sub(g, divide(range_grad, max), Mul(g, is_max, divide(range, g.Op("Square", {max}))));
  const Output hue = Mul(g, Channels(g, g.grad(), {0}), Scale(g, by_hue, 1.0 / 6));
  const Output saturation = Mul(g, Channels(g, g.grad(), {1}), by_saturation);
  const Output value = Mul(g, Channels(g, g.grad(), {2}), is_max);
  g.set(0, Add(g, hue, Add(g, saturation, value)));
}
REGISTER_GRADIENT("RGBToHSV", RgbToHsvGrad);

// --- none ----------------------------------------------------------------------------------------

REGISTER_NO_GRADIENT("DrawBoundingBoxes");
REGISTER_NO_GRADIENT("ExtractGlimpse");
REGISTER_NO_GRADIENT("HSVToRGB");
REGISTER_NO_GRADIENT("NonMaxSuppression");
REGISTER_NO_GRADIENT("NonMaxSuppressionV2");
REGISTER_NO_GRADIENT("ResizeBilinearGrad");
REGISTER_NO_GRADIENT("SampleDistortedBoundingBox");
REGISTER_NO_GRADIENT("SampleDistortedBoundingBoxV2");

}  // namespace
}  // namespace troupe::gradients

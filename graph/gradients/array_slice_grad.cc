// Gradients of ops that take parts of tensors by position: slices and padding.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// The sizes of x as a vector of `type`, which slices and paddings must share.
Output ShapeAs(GradientContext& g, Output x, ElementType type) {
  if (x.shape().fully_known()) return Cast(g, g.Shape(x), type);
  return g.Op("Shape", {x}, [&](NodeSpec& spec) { spec.Attr("out_type", type); });
}

Output IntsAs(GradientContext& g, ElementType type, const std::vector<int64_t>& values,
              const Shape& shape) {
  if (type == ElementType::kInt64) return g.Const(Tensor::Vector<int64_t>(values).Reshaped(shape));
  std::vector<int32_t> narrow(values.begin(), values.end());
  return g.Const(Tensor::Vector<int32_t>(narrow).Reshaped(shape));
}

void SliceGrad(GradientContext& g) {
  // Zeros are put back around the slice.
  const Output x = g.input(0), begin = g.input(1);
  const ElementType type = begin.type();
  std::optional<std::vector<int64_t>> known_begin = ConstantInts(g, begin);
  const PartialShape &whole = x.shape(), &part = g.output(0).shape();
  if (known_begin && whole.fully_known() && part.fully_known() && whole.rank() == part.rank() &&
      static_cast<int>(known_begin->size()) == whole.rank()) {
    if (whole == part) {
      g.set(0, g.grad());
      return;
    }
    std::vector<int64_t> paddings;
    for (int i = 0; i < whole.rank(); ++i) {
      paddings.push_back((*known_begin)[i]);
      paddings.push_back(whole.dim(i) - part.dim(i) - (*known_begin)[i]);
    }
    g.set(0, g.Op("Pad", {g.grad(), IntsAs(g, type, paddings, Shape({whole.rank(), 2}))}));
    return;
  }
  Output after = Sub(g, Sub(g, ShapeAs(g, x, type), ShapeAs(g, g.output(0), type)), begin);
  g.set(0, g.Op("Pad", {g.grad(), Pack(g, {begin, after}, 1)}));
}
REGISTER_GRADIENT("Slice", SliceGrad);

void PadGrad(GradientContext& g) {
  if (!g.wanted(0)) return;
  const Output x = g.input(0), paddings = g.input(1);
  const ElementType type = paddings.type();
  Output begin;
  if (std::optional<std::vector<int64_t>> known = ConstantInts(g, paddings)) {
    std::vector<int64_t> before;
    for (size_t i = 0; i < known->size(); i += 2) before.push_back((*known)[i]);
    begin = IntsAs(g, type, before, Shape({static_cast<int64_t>(before.size())}));
  } else {
    // The first column.
    begin = g.Op("StridedSlice",
                 {paddings, g.IntVector({0, 0}), g.IntVector({0, 1}), g.IntVector({1, 1})},
                 [](NodeSpec& spec) {
                   spec.Attr("begin_mask", 1).Attr("end_mask", 1).Attr("shrink_axis_mask", 2);
                 });
  }
  g.set(0, g.Op("Slice", {g.grad(), begin, ShapeAs(g, x, type)}));
}
REGISTER_GRADIENT("Pad", PadGrad);
REGISTER_GRADIENT("PadV2", PadGrad);

void StridedSliceGrad(GradientContext& g) {
  Output shape = ShapeAs(g, g.input(0), g.input(1).type());
  g.set(0, g.Op("StridedSliceGrad", {shape, g.input(1), g.input(2), g.input(3), g.grad()},
                [&](NodeSpec& spec) { CopyMasks(g.node(), spec); }));
}
REGISTER_GRADIENT("StridedSlice", StridedSliceGrad);

void StridedSliceGradGrad(GradientContext& g) {
  g.set(4, g.Op("StridedSlice", {g.grad(), g.input(1), g.input(2), g.input(3)},
                [&](NodeSpec& spec) { CopyMasks(g.node(), spec); }));
}
REGISTER_GRADIENT("StridedSliceGrad", StridedSliceGradGrad);

}  // namespace
}  // namespace troupe::gradients

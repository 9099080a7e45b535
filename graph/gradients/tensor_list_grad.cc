// Gradients of the TensorList ops. The gradient of a list is a list of the gradients of its
// elements, as long; elements to which none flows may be uninitialised.
#include <algorithm>
#include <functional>
#include <vector>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// The shape that the elements of a list fit, an int32 tensor: a constant if it is known. Keeps
/// loops from saving lists for the sake of their shape.
Output ElementShapeOf(GradientContext& g, Output list) {
  const HandleShapes& handle = list.node->output_handle(list.index);
  if (handle.size() == 1 && handle[0].second.fully_known()) {
    std::vector<int32_t> dims;
    bool fits = true;
    for (int64_t size : handle[0].second.dims()) {
      fits = fits && size <= INT32_MAX;
      dims.push_back(static_cast<int32_t>(size));
    }
    if (fits) return g.IntVector(dims);
  }
  return g.Op("TensorListElementShape", {list},
              [](NodeSpec& spec) { spec.Attr("shape_type", ElementType::kInt32); });
}

Output LengthOf(GradientContext& g, Output list) { return g.Op("TensorListLength", {list}); }

/// The shape of x without its first dimension.
Output RowShapeOf(GradientContext& g, Output x) {
  return Sizes::OfShape(g, x).Slice(1, Sizes::kEnd).Vector();
}

std::function<void(NodeSpec&)> Elements(ElementType type) {
  return [type](NodeSpec& spec) { spec.Attr("element_dtype", type); };
}

/// Zeros of the shape of x: a constant if it is known and small.
Output ZerosFor(GradientContext& g, Output x) {
  const PartialShape& shape = x.shape();
  constexpr int64_t kSmall = 4096;
  if (shape.fully_known() && IsPlain(x.type())) {
    const int64_t count = InferenceContext::NumElements(shape);
    absl::StatusOr<Shape> known = shape.ToShape();
    if (known.ok() && count >= 0 && count <= kSmall) {
      Tensor zeros = Tensor::Uninitialized(x.type(), *known);
      std::fill_n(static_cast<char*>(zeros.mutable_raw_data()), zeros.bytes(), 0);
      return g.Const(zeros);
    }
  }
  return g.ZerosLike(x);
}

void PushBackGrad(GradientContext& g) {
  const Output tensor = g.input(1);
  Node* pop = g.Add("TensorListPopBack", {g.grad(), g.Shape(tensor)}, Elements(tensor.type()));
  g.set(0, Output(pop, 0));
  g.set(1, Output(pop, 1));
}
REGISTER_GRADIENT("TensorListPushBack", PushBackGrad);

void PopBackGrad(GradientContext& g) {
  const ElementType type = g.output(1).type();
  Output list = g.grad(0);
  if (!list.valid()) {
    // Nothing depends on the rest of the list, which has as many elements nonetheless.
    list = g.Op("TensorListReserve", {ElementShapeOf(g, g.output(0)), LengthOf(g, g.output(0))},
                Elements(type));
  }
  g.set(0, g.Op("TensorListPushBack", {list, g.GradOrZeros(1)}, Elements(type)));
}
REGISTER_GRADIENT("TensorListPopBack", PopBackGrad);

void GetItemGrad(GradientContext& g) {
  const Output list = g.input(0);
  const ElementType type = g.grad().type();
  Output empty =
      g.Op("TensorListReserve", {ElementShapeOf(g, list), LengthOf(g, list)}, Elements(type));
  g.set(0, g.Op("TensorListSetItem", {empty, g.input(1), g.grad()}, Elements(type)));
}
REGISTER_GRADIENT("TensorListGetItem", GetItemGrad);

void SetItemGrad(GradientContext& g) {
  const Output index = g.input(1), item = g.input(2);
  if (g.wanted(0)) {
    g.set(0,
          g.Op("TensorListSetItem", {g.grad(), index, ZerosFor(g, item)}, Elements(item.type())));
  }
  if (g.wanted(2)) {
    g.set(2, g.Op("TensorListGetItem", {g.grad(), index, g.Shape(item)}, Elements(item.type())));
  }
}
REGISTER_GRADIENT("TensorListSetItem", SetItemGrad);

void ResizeGrad(GradientContext& g) {
  g.set(0, g.Op("TensorListResize", {g.grad(), LengthOf(g, g.input(0))}));
}
REGISTER_GRADIENT("TensorListResize", ResizeGrad);

void StackGrad(GradientContext& g) {
  const Output grad = g.grad();
  g.set(0, g.Op("TensorListFromTensor", {grad, RowShapeOf(g, grad)}, Elements(grad.type())));
}
REGISTER_GRADIENT("TensorListStack", StackGrad);

void FromTensorGrad(GradientContext& g) {
  const Output tensor = g.input(0);
  const PartialShape& shape = tensor.shape();
  const int64_t rows = !shape.unknown_rank() && shape.rank() > 0 ? shape.dim(0) : -1;
  g.set(0, g.Op("TensorListStack", {g.grad(), RowShapeOf(g, tensor)}, [&](NodeSpec& spec) {
    spec.Attr("element_dtype", tensor.type()).Attr("num_elements", rows);
  }));
}
REGISTER_GRADIENT("TensorListFromTensor", FromTensorGrad);

void GatherGrad(GradientContext& g) {
  const Output list = g.input(0);
  g.set(0, g.Op("TensorListScatterV2",
                {g.grad(), g.input(1), ElementShapeOf(g, list), LengthOf(g, list)},
                Elements(g.grad().type())));
}
REGISTER_GRADIENT("TensorListGather", GatherGrad);

void ScatterGrad(GradientContext& g) {
  const Output tensor = g.input(0);
  g.set(0, g.Op("TensorListGather", {g.grad(), g.input(1), RowShapeOf(g, tensor)},
                Elements(tensor.type())));
}
REGISTER_GRADIENT("TensorListScatter", ScatterGrad);
REGISTER_GRADIENT("TensorListScatterV2", ScatterGrad);

void ScatterIntoGrad(GradientContext& g) {
  const Output tensor = g.input(1), indices = g.input(2);
  if (g.wanted(0)) {
    g.set(0, g.Op("TensorListScatterIntoExistingList", {g.grad(), ZerosFor(g, tensor), indices},
                  Elements(tensor.type())));
  }
  if (g.wanted(1)) {
    g.set(1, g.Op("TensorListGather", {g.grad(), indices, RowShapeOf(g, tensor)},
                  Elements(tensor.type())));
  }
}
REGISTER_GRADIENT("TensorListScatterIntoExistingList", ScatterIntoGrad);

void ConcatGrad(GradientContext& g) {
  if (!g.gradient(0).valid()) return;
  g.set(0, g.Op("TensorListSplit", {g.grad(), ElementShapeOf(g, g.input(0)), g.output(1)},
                Elements(g.grad().type())));
}
REGISTER_GRADIENT("TensorListConcat", ConcatGrad);
REGISTER_GRADIENT("TensorListConcatV2", ConcatGrad);

void SplitGrad(GradientContext& g) {
  const Output tensor = g.input(0);
  g.set(0, g.Op("TensorListConcatV2", {g.grad(), g.input(1), g.input(2)}, Elements(tensor.type())));
}
REGISTER_GRADIENT("TensorListSplit", SplitGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of ops that deal out, replace and collect slices at computed places.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void DynamicPartitionGrad(GradientContext& g) {
  // The slices' numbers are dealt out as the slices were; by them the gradients are put back.
  if (!g.wanted(0)) return;
  const Output data = g.input(0), partitions = g.input(1);
  const int count = g.node()->num_outputs();
  const Output numbers =
      ReshapeLike(g, Numbers(g, Sizes::OfShape(g, partitions).Product().Scalar()), partitions);
  Node* dealt = g.Add("DynamicPartition", {numbers, partitions},
                      [&](NodeSpec& spec) { spec.Attr("num_partitions", count); });
  std::vector<Output> places, grads;
  for (int i = 0; i < count; ++i) {
    places.push_back(Output(dealt, i));
    grads.push_back(g.GradOrZeros(i));
  }
  g.set(0, ReshapeLike(g, OfLists(g, "DynamicStitch", {places, grads}), data));
}
REGISTER_GRADIENT("DynamicPartition", DynamicPartitionGrad);

void CopyPolicy(const Node* node, NodeSpec& spec) {
  spec.Attr("bad_indices_policy", node->attrs().GetOr<std::string>("bad_indices_policy", ""));
}

void GatherNdGrad(GradientContext& g) {
  if (!g.wanted(0)) return;
  Output indices = g.input(1), grad = g.grad();
  // ScatterNd takes neither 16-bit indices nor a single one.
  if (indices.type() == ElementType::kInt16) indices = Cast(g, indices, ElementType::kInt32);
  if (indices.shape().rank() == 1) {
    const Output zero = g.Scalar<int32_t>(0);
    indices = g.Op("ExpandDims", {indices, zero});
    grad = g.Op("ExpandDims", {grad, zero});
  }
  const Output shape = Cast(g, g.Shape(g.input(0)), indices.type());
  g.set(0, g.Op("ScatterNd", {indices, grad, shape},
                [&](NodeSpec& spec) { CopyPolicy(g.node(), spec); }));
}
REGISTER_GRADIENT("GatherNd", GatherNdGrad);

/// The gradient at the places that were written to.
void GatherUpdates(GradientContext& g) {
  if (!g.wanted(2)) return;
  g.set(2, g.Op("GatherNd", {g.grad(), g.input(1)},
                [&](NodeSpec& spec) { CopyPolicy(g.node(), spec); }));
}

void TensorScatterAddGrad(GradientContext& g) {
  g.set(0, g.grad());
  GatherUpdates(g);
}
REGISTER_GRADIENT("TensorScatterAdd", TensorScatterAddGrad);

REGISTER_GRADIENT("ScatterNdNonAliasingAdd", TensorScatterAddGrad);

void TensorScatterSubGrad(GradientContext& g) {
  g.set(0, g.grad());
  if (!g.wanted(2)) return;
  g.set(2, Neg(g, g.Op("GatherNd", {g.grad(), g.input(1)},
                       [&](NodeSpec& spec) { CopyPolicy(g.node(), spec); })));
}
REGISTER_GRADIENT("TensorScatterSub", TensorScatterSubGrad);

void TensorScatterExtremeGrad(GradientContext& g) {
  // What became an element, the old one or updates, gets equal shares of its gradient.
  const auto policy = [&](NodeSpec& spec) { CopyPolicy(g.node(), spec); };
  const auto gather = [&](Output from) { return g.Op("GatherNd", {from, g.input(1)}, policy); };
  const ElementType type = g.grad().type();
  const Output x = g.input(0), indices = g.input(1), extreme = g.output(0);
  const Output x_is = Cast(g, g.Op("Equal", {x, extreme}), type);
  const Output update_is = Cast(g, g.Op("Equal", {g.input(2), gather(extreme)}), type);
  const Output shape = Cast(g, Sizes::OfShape(g, x).Vector(), indices.type());
  const Output count = Add(g, x_is, g.Op("ScatterNd", {indices, update_is, shape}, policy));
  g.set(0, Div(g, Mul(g, g.grad(), x_is), count));
  if (g.wanted(2)) g.set(2, Mul(g, gather(Div(g, g.grad(), count)), update_is));
}
REGISTER_GRADIENT("TensorScatterMax", TensorScatterExtremeGrad);
REGISTER_GRADIENT("TensorScatterMin", TensorScatterExtremeGrad);

void TensorScatterUpdateGrad(GradientContext& g) {
  if (g.wanted(0)) {
    g.set(0, g.Op("TensorScatterUpdate", {g.grad(), g.input(1), g.ZerosLike(g.input(2))},
                  [&](NodeSpec& spec) { CopyPolicy(g.node(), spec); }));
  }
  GatherUpdates(g);
}
REGISTER_GRADIENT("TensorScatterUpdate", TensorScatterUpdateGrad);

void TensorStridedSliceUpdateGrad(GradientContext& g) {
  const auto masks = [&](NodeSpec& spec) { CopyMasks(g.node(), spec); };
  const Output begin = g.input(1), end = g.input(2), strides = g.input(3), value = g.input(4);
  if (g.wanted(0)) {
    g.set(0, g.Op("TensorStridedSliceUpdate",
                  {g.grad(), begin, end, strides, g.ScalarOfType(value.type(), 0)}, masks));
  }
  if (g.wanted(4)) {
    const Output slice = g.Op("StridedSlice", {g.grad(), begin, end, strides}, masks);
    g.set(4, Unbroadcast(g, value, slice).Reduce(0, slice));
  }
}
REGISTER_GRADIENT("TensorStridedSliceUpdate", TensorStridedSliceUpdateGrad);

void SparseToDenseGrad(GradientContext& g) {
  // The default value has what the values leave.
  Output indices = g.input(0);
  const PartialShape &places = indices.shape(), &values = g.input(2).shape();
  if (places.rank() == 0) {
    indices = g.Op("Reshape", {indices, g.IntVector({1, 1})});
  } else if (places.rank() == 1) {
    indices = g.Op("ExpandDims", {indices, g.Scalar<int32_t>(1)});
  }
  Output at_places = g.Op("GatherNd", {g.grad(), indices});
  const auto total = [&](Output x) {
    return x.shape().rank() == 0 ? x : Sum(g, x, Numbers(g, g.Op("Rank", {x})), false);
  };
  if (g.wanted(2)) g.set(2, values.rank() == 0 ? total(at_places) : at_places);
  if (g.wanted(3)) g.set(3, Sub(g, total(g.grad()), total(at_places)));
}
REGISTER_GRADIENT("SparseToDense", SparseToDenseGrad);

}  // namespace
}  // namespace troupe::gradients

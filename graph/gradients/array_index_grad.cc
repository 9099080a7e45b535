// Gradients of ops that take or place parts of tensors by computed indices.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output SegmentSum(GradientContext& g, Output data, Output ids, Output count) {
  return g.Op("UnsortedSegmentSum", {data, ids, count});
}

/// indices + [0, step, 2 step, ...] down the first axis of a matrix of indices.
Output OffsetRows(GradientContext& g, Output indices, const Sizes& rows, const Sizes& step) {
  Output numbers = Numbers(g, rows.Scalar());
  Output offsets = Mul(g, g.Op("ExpandDims", {numbers, g.Scalar<int32_t>(1)}), step.Scalar());
  return Add(g, indices, Cast(g, offsets, indices.type()));
}

/// Gather along axis 0 of what has the shape `params`: the rows of the gradient belong where they
/// came from.
void GatherRows(GradientContext& g, const Sizes& params) {
  Output indices = g.input(1), values = g.grad();
  const int rank = indices.shape().rank();
  if (rank == 0) {
    Output zero = g.Scalar<int32_t>(0);
    indices = g.Op("ExpandDims", {indices, zero});
    values = g.Op("ExpandDims", {values, zero});
  } else if (rank != 1) {
    Sizes row = params.Slice(1, Sizes::kEnd);
    Sizes count = Sizes::OfShape(g, indices).Product();
    indices = g.Op("Reshape", {indices, g.IntVector({-1})});
    values = Reshape(g, values, count.Concat(row));
  }
  if (indices.type() == ElementType::kInt16) indices = Cast(g, indices, ElementType::kInt32);
  g.set(0, Gradient(values, indices, params.Vector()));
}

/// Gather along a later axis, perhaps with batch dimensions. Sizes are taken together, so that
/// params are [batch, outer, dim, inner], indices [batch, per_batch] and the gradient [batch,
/// outer, per_batch, inner].
void GatherAxis(GradientContext& g, const Sizes& batch, const Sizes& outer, const Sizes& dim,
                const Sizes& inner, const Sizes& per_batch) {
  const Output params = g.input(0), indices = g.input(1);
  const bool one_outer = outer.known() && outer.at(0) == 1;
  const Sizes leading = one_outer ? batch : batch.Concat(outer);
  Output grad = Reshape(g, g.grad(), leading.Concat(per_batch).Concat(inner));
  const bool one_batch = batch.known() && batch.at(0) == 1;
  const std::vector<int64_t> swap = {0, 2, 1, 3};
  if (!one_outer) grad = Transpose(g, grad, swap);
  Output ids = Reshape(g, indices, batch.Concat(per_batch));
  if (ids.type() == ElementType::kInt16) ids = Cast(g, ids, ElementType::kInt32);
  if (!one_batch) ids = OffsetRows(g, ids, batch, dim);
  Output sums = SegmentSum(g, grad, ids, batch.Times(dim).Scalar());
  if (!one_outer) {
    // [batch * dim, outer, inner] to [batch, outer, dim, inner].
    sums = Reshape(g, sums, batch.Concat(dim).Concat(outer).Concat(inner));
    sums = Transpose(g, sums, swap);
  }
  g.set(0, ReshapeLike(g, sums, params));
}

void GatherGrad(GradientContext& g) {
  if (g.wanted(0)) GatherRows(g, Sizes::OfShape(g, g.input(0)));
}
REGISTER_GRADIENT("Gather", GatherGrad);

void GatherV2Grad(GradientContext& g) {
  if (!g.wanted(0)) return;
  const Output indices = g.input(1);
  int64_t batch_dims = g.node()->attrs().GetOr<int64_t>("batch_dims", 0);
  if (batch_dims < 0) {
    if (indices.shape().unknown_rank()) {
      return g.Fail(absl::UnimplementedError(
          "the gradient needs the rank of the indices, as batch_dims is negative; give the indices "
          "a shape with EnsureShape"));
    }
    batch_dims += indices.shape().rank();
  }
  const int b = static_cast<int>(batch_dims);
  std::optional<std::vector<int64_t>> axis = ConstantInts(g, g.input(2));
  Sizes params = Sizes::OfShape(g, g.input(0)), ids = Sizes::OfShape(g, indices);
  Sizes batch = params.Slice(0, b).Product();
  Sizes per_batch = ids.Slice(b, Sizes::kEnd).Product();
  if (axis && axis->size() == 1 && ((*axis)[0] >= 0 || params.count_known())) {
    int a = static_cast<int>((*axis)[0]);
    if (a < 0) a += params.count();
    if (a == 0 && b == 0) {
      GatherRows(g, params);
      return;
    }
    GatherAxis(g, batch, params.Slice(b, a).Product(), params.Slice(a, a + 1),
               params.Slice(a + 1, Sizes::kEnd).Product(), per_batch);
    return;
  }
  // The axis is known only when the graph runs.
  Output rank = g.Op("Size", {params.Vector()});
  Output at = g.Op("FloorMod", {Cast(g, g.input(2), ElementType::kInt32), rank});
  at = g.Op("Reshape", {at, g.IntVector({1})});
  Output first = g.IntVector({b}), one = g.IntVector({1}), rest = g.IntVector({-1});
  GatherAxis(g, batch, params.Slice(first, Sub(g, at, first)).Product(), params.Slice(at, one),
             params.Slice(Add(g, at, one), rest).Product(), per_batch);
}
REGISTER_GRADIENT("GatherV2", GatherV2Grad);

void ResourceGatherGrad(GradientContext& g) {
  if (!g.wanted(0)) return;
  if (g.node()->attrs().GetOr<int64_t>("batch_dims", 0) != 0) {
    return g.Fail(absl::UnimplementedError("batch_dims other than 0 have no gradient"));
  }
  const HandleShapes& handle = g.input(0).node->output_handle(g.input(0).index);
  const PartialShape known = handle.empty() ? PartialShape() : handle[0].second;
  GatherRows(g, known.fully_known() ? Sizes::Known(g, {known.dims().begin(), known.dims().end()})
                                    : Sizes::OfTensor(g, g.Op("VariableShape", {g.input(0)})));
}
REGISTER_GRADIENT("ResourceGather", ResourceGatherGrad);

void ResourceGatherNdGrad(GradientContext& g) {
  if (!g.wanted(0)) return;
  g.set(0, g.Op("ScatterNd",
                {g.input(1), g.grad(), g.Op("VariableShape", {g.input(0)}, [&](NodeSpec& spec) {
                   spec.Attr("out_type", g.input(1).type());
                 })}));
}
REGISTER_GRADIENT("ResourceGatherNd", ResourceGatherNdGrad);

void DynamicStitchGrad(GradientContext& g) {
  const int count = g.node()->num_inputs() / 2;
  for (int i = 0; i < count; ++i) {
    if (!g.wanted(count + i)) continue;
    g.set(count + i, g.Op("GatherV2", {g.grad(), g.input(i), g.Scalar<int32_t>(0)}));
  }
}
REGISTER_GRADIENT("DynamicStitch", DynamicStitchGrad);
REGISTER_GRADIENT("ParallelDynamicStitch", DynamicStitchGrad);

/// By how much the row-major index grows with each component of an index into `sizes`.
Output Strides(GradientContext& g, const Sizes& sizes) {
  if (sizes.known()) {
    std::vector<int32_t> strides(sizes.count(), 1);
    for (int i = sizes.count() - 2; i >= 0; --i) {
      strides[i] = static_cast<int32_t>(strides[i + 1] * sizes.at(i + 1));
    }
    return g.IntVector(strides);
  }
  return g.Op("Cumprod", {sizes.Vector(), g.Scalar<int32_t>(0)},
              [](NodeSpec& spec) { spec.Attr("exclusive", true).Attr("reverse", true); });
}

void ScatterNdGrad(GradientContext& g) {
  // The gradient at the indices. Each index has one component for each leading axis of the result;
  // they are joined to one index into the gradient with those axes taken together.
  if (!g.wanted(1)) return;
  const Output indices = g.input(0);
  Sizes depth = Sizes::OfShape(g, indices).Slice(-1, Sizes::kEnd);
  Sizes shape = Sizes::OfShape(g, g.output(0));
  if (!shape.count_known()) shape = Sizes::OfTensor(g, g.input(2));
  Output zero = g.IntVector({0});
  Sizes leading = depth.known() ? shape.Slice(0, static_cast<int>(depth.at(0)))
                                : shape.Slice(zero, depth.Vector());
  Sizes trailing = depth.known() ? shape.Slice(static_cast<int>(depth.at(0)), Sizes::kEnd)
                                 : shape.Slice(depth.Vector(), g.IntVector({-1}));
  Output rows = Reshape(g, g.grad(), leading.Product().Concat(trailing));
  const ElementType type =
      indices.type() == ElementType::kInt64 ? ElementType::kInt64 : ElementType::kInt32;
  Output components = Cast(g, indices, type);
  if (!leading.count_known() || leading.count() != 1) {
    Output strides = Strides(g, leading);
    components = Mul(g, components, Cast(g, strides, type));
  }
  Output flat = Sum(g, components, {-1}, false);
  g.set(1, g.Op("GatherV2", {rows, flat, g.Scalar<int32_t>(0)}));
}
REGISTER_GRADIENT("ScatterNd", ScatterNdGrad);

void TopKGrad(GradientContext& g) {
  Output grad = g.GradOrZeros(0), ids = g.output(1);
  Sizes input = Sizes::OfShape(g, g.input(0)), output = Sizes::OfShape(g, ids);
  Sizes rows = input.Slice(0, -1).Product();
  Sizes length = input.Slice(-1, Sizes::kEnd);
  if (ids.type() == ElementType::kInt16) ids = Cast(g, ids, ElementType::kInt32);
  if (!rows.known() || rows.at(0) != 1) {
    Sizes matrix = rows.Concat(output.Slice(-1, Sizes::kEnd));
    ids = OffsetRows(g, Reshape(g, ids, matrix), rows, length);
    grad = Reshape(g, grad, matrix);
  }
  Output sums = SegmentSum(g, grad, ids, rows.Times(length).Scalar());
  // Segments are counted across rows; where there is only one row of rank 1 that is the shape.
  const bool vector = input.count_known() && input.count() == 1;
  g.set(0, vector ? sums : ReshapeLike(g, sums, g.input(0)));
}
REGISTER_GRADIENT("TopK", TopKGrad);
REGISTER_GRADIENT("TopKV2", TopKGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of ops on sparse tensors: those of values, indices have none.
#include <initializer_list>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

constexpr ElementType kIndex = ElementType::kInt64;

/// Output `i` of a node with several.
Output OutputOf(GradientContext& g, std::string_view op, std::initializer_list<Output> inputs,
                int i) {
  Node* node = g.Add(op, inputs);
  return node == nullptr ? Output() : Output(node, i);
}

Output GatherNd(GradientContext& g, Output params, Output indices) {
  return g.Op("GatherNd", {params, indices});
}

void SparseReorderGrad(GradientContext& g) {
  const Output indices = g.input(0);
  const Output count = Sizes::OfShape(g, indices).Slice(0, 1).Scalar();
  const Output order = OutputOf(g, "SparseReorder", {indices, Numbers(g, count), g.input(2)}, 1);
  g.set(1, g.Op("GatherV2", {g.grad(1), g.Op("InvertPermutation", {order}), g.Scalar<int32_t>(0)}));
}
REGISTER_GRADIENT("SparseReorder", SparseReorderGrad);

void SparseAddGrad(GradientContext& g) {
  Node* node = g.Add("SparseAddGrad", {g.grad(1), g.input(0), g.input(3), g.output(0)});
  if (node == nullptr) return;
  g.set(1, Output(node, 0));
  g.set(4, Output(node, 1));
}
REGISTER_GRADIENT("SparseAdd", SparseAddGrad);

void SparseTensorDenseAddGrad(GradientContext& g) {
  if (g.wanted(1)) g.set(1, GatherNd(g, g.grad(), g.input(0)));
  g.set(3, g.grad());
}
REGISTER_GRADIENT("SparseTensorDenseAdd", SparseTensorDenseAddGrad);

void SparseReduceSumGrad(GradientContext& g) {
  const Output indices = g.input(0), shape = g.input(2), axes = g.input(3);
  const Output rank = g.Op("Size", {shape});
  const Output flat_axes =
      g.Op("FloorMod", {g.Op("AddV2", {g.Op("Reshape", {axes, g.IntVector({-1})}), rank}), rank});
  // The sizes of the result with its reduced dimensions kept as 1.
  const Output ones = g.Op("Fill", {g.Op("Shape", {flat_axes}), g.Scalar<int64_t>(1)});
  const Output kept_sizes = g.Op(
      "TensorScatterUpdate", {shape, g.Op("ExpandDims", {flat_axes, g.Scalar<int32_t>(1)}), ones});
  const Output kept = g.Op("Reshape", {g.grad(), kept_sizes});
  // A reduced dimension has the index 0 in it.
  const Output in_bounds = g.Op("Minimum", {indices, Sub(g, kept_sizes, g.Scalar<int64_t>(1))});
  g.set(1, GatherNd(g, kept, in_bounds));
}
REGISTER_GRADIENT("SparseReduceSum", SparseReduceSumGrad);

void SparseSliceGrad(GradientContext& g) {
  g.set(1, g.Op("SparseSliceGrad", {g.grad(1), g.input(0), g.input(3), g.output(0)}));
}
REGISTER_GRADIENT("SparseSlice", SparseSliceGrad);

void SparseFillEmptyRowsGrad(GradientContext& g) {
  Node* node = g.Add("SparseFillEmptyRowsGrad", {g.output(3), g.grad(1)});
  if (node == nullptr) return;
  g.set(1, Output(node, 0));
  g.set(3, Output(node, 1));
}
REGISTER_GRADIENT("SparseFillEmptyRows", SparseFillEmptyRowsGrad);

void SparseSoftmaxGrad(GradientContext& g) {
  const Output indices = g.input(0), shape = g.input(2), y = g.output(0), grad = g.grad();
  const Output sums = g.Op("SparseReduceSum", {indices, Mul(g, y, grad), shape, g.IntVector({-1})},
                           [](NodeSpec& spec) { spec.Attr("keep_dims", true); });
  g.set(1, Mul(g, g.Op("SparseDenseCwiseAdd", {indices, grad, shape, Neg(g, sums)}), y));
}
REGISTER_GRADIENT("SparseSoftmax", SparseSoftmaxGrad);

void SparseTensorDenseMatMulGrad(GradientContext& g) {
  const Output indices = g.input(0), values = g.input(1), shape = g.input(2), b = g.input(3);
  const bool adjoint_a = g.node()->attrs().GetOr<bool>("adjoint_a", false);
  const bool adjoint_b = g.node()->attrs().GetOr<bool>("adjoint_b", false);
  const Output grad = g.grad();
  const auto transposed = [&](Output matrix) {
    return g.Op("Transpose", {matrix, g.IntVector({1, 0})});
  };
  if (g.wanted(3)) {
    const Output grad_b = g.Op("SparseTensorDenseMatMul", {indices, values, shape, grad},
                               [&](NodeSpec& spec) { spec.Attr("adjoint_a", !adjoint_a); });
    g.set(3, adjoint_b ? g.Conj(transposed(grad_b)) : grad_b);
  }
  if (!g.wanted(1)) return;
  // Only the products of rows and columns that meet at an element of the sparse matrix.
  const auto rows_at = [&](Output matrix, int32_t column) {
    const Output places = g.Op("GatherV2", {indices, g.Scalar(column), g.Scalar<int32_t>(1)});
    return g.Op("GatherV2", {matrix, places, g.Scalar<int32_t>(0)});
  };
  Output from_grad = rows_at(grad, adjoint_a ? 1 : 0);
  Output from_b = rows_at(adjoint_b ? transposed(b) : b, adjoint_a ? 0 : 1);
  if (adjoint_a) from_grad = g.Conj(from_grad);
  if (adjoint_a == adjoint_b) from_b = g.Conj(from_b);
  g.set(1, Sum(g, Mul(g, from_grad, from_b), {1}, false));
}
REGISTER_GRADIENT("SparseTensorDenseMatMul", SparseTensorDenseMatMulGrad);

/// The gradients of the product, or the quotient, of a sparse tensor and a dense one.
void SparseDenseCwiseGrad(GradientContext& g, bool product) {
  const Output indices = g.input(0), x = g.input(1), x_shape = g.input(2), y = g.input(3);
  const Output y_shape = Cast(g, g.Op("Shape", {y}), kIndex);
  const Output added = g.Op("ExpandDims", {Sub(g, g.Op("Size", {x_shape}), g.Op("Size", {y_shape})),
                                           g.Scalar<int32_t>(0)});
  const Output ones = g.Op("Fill", {added, g.Scalar<int64_t>(1)});
  const Output scale =
      g.Op("FloorDiv", {x_shape, Concat(g, {ones, y_shape}, g.Scalar<int32_t>(0))});
  const Output begin = Concat(g, {g.IntVector({0}), added}, g.Scalar<int32_t>(0));
  const Output y_indices =
      g.Op("Slice", {g.Op("FloorDiv", {indices, scale}), begin, g.IntVector({-1, -1})});
  const Output factor = GatherNd(g, y, y_indices);
  g.set(1, product ? Mul(g, g.grad(), factor) : Div(g, g.grad(), factor));
  if (!g.wanted(3)) return;
  const Output grad_y =
      product ? Mul(g, g.grad(), x) : Mul(g, g.grad(), Div(g, Neg(g, x), g.Op("Square", {factor})));
  g.set(3, g.Op("SparseTensorDenseAdd", {y_indices, grad_y, y_shape, g.ZerosLike(y)}));
}
void SparseDenseCwiseMulGrad(GradientContext& g) { SparseDenseCwiseGrad(g, true); }
void SparseDenseCwiseDivGrad(GradientContext& g) { SparseDenseCwiseGrad(g, false); }
REGISTER_GRADIENT("SparseDenseCwiseMul", SparseDenseCwiseMulGrad);
REGISTER_GRADIENT("SparseDenseCwiseDiv", SparseDenseCwiseDivGrad);

// SparseDenseCwiseAdd, SparseSparseMaximum and SparseSparseMinimum have no entry: to differentiate
// them is an error, as it is in TensorFlow.
REGISTER_NO_GRADIENT("DenseToDenseSetOperation");
REGISTER_NO_GRADIENT("DenseToSparseSetOperation");
REGISTER_NO_GRADIENT("SetSize");
REGISTER_NO_GRADIENT("SparseAddGrad");
REGISTER_NO_GRADIENT("SparseConcat");
REGISTER_NO_GRADIENT("SparseToSparseSetOperation");

}  // namespace
}  // namespace troupe::gradients

// Arithmetic on sparse tensors.
#include <vector>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/ops/sparse_shapes.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SparseAddShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::WithRank(c->input(2), 1));
  SetSparseOutput(c, {-1, shape.dim(0)});
  return absl::OkStatus();
}

absl::Status SparseAddGradShape(InferenceContext* c) {
  for (int i = 0; i < 2; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(i + 1), 2));
    c->set_output(i, C::VectorOf(indices.dim(0)));
  }
  return absl::OkStatus();
}

absl::Status SparseDenseCwiseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape indices, C::WithRank(c->input(0), 2));
  return SetShape(c, C::VectorOf(indices.dim(0)));
}

absl::Status SparseReduceShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool keep_dims, c->attrs().Get<bool>("keep_dims"));
  const Tensor shape = c->input_tensor(2), axes = c->input_tensor(3);
  if (!shape.valid() || !axes.valid()) return UnknownShape(c);
  std::vector<int64_t> sizes = IntegerValues(shape), kept;
  const int rank = static_cast<int>(sizes.size());
  std::vector<bool> reduced(rank);
  for (const int64_t value : IntegerValues(axes)) {
    TROUPE_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, rank, "The axis"));
    reduced[axis] = true;
  }
  for (int i = 0; i < rank; ++i) {
    if (!reduced[i]) {
      kept.push_back(sizes[i]);
    } else if (keep_dims) {
      kept.push_back(1);
    }
  }
  return SetShape(c, PartialShape::Create(kept));
}

absl::Status SparseSoftmaxShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 2).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 1).status());
  return SetShape(c, C::WithRank(c->input(1), 1));
}

absl::Status SparseSparseShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const SparseSizes a, SparseInputSizes(c, 0));
  TROUPE_ASSIGN_OR_RETURN(const SparseSizes b, SparseInputSizes(c, 3));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(a.rank, b.rank).status());
  // What TensorFlow infers.
  c->set_output(0, PartialShape({-1, -1}));
  c->set_output(1, C::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status SparseTensorDenseAddShape(InferenceContext* c) { return SetShape(c, c->input(3)); }

absl::Status SparseTensorDenseMatMulShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool adjoint_a, c->attrs().Get<bool>("adjoint_a"));
  TROUPE_ASSIGN_OR_RETURN(const bool adjoint_b, c->attrs().Get<bool>("adjoint_b"));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(0), 2).status());
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(1), 1).status());
  TROUPE_ASSIGN_OR_RETURN(PartialShape a, c->InputAsShape(2));
  TROUPE_ASSIGN_OR_RETURN(a, C::WithRank(a, 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape b, C::WithRank(c->input(3), 2));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(a.dim(adjoint_a ? 0 : 1), b.dim(adjoint_b ? 1 : 0)).status());
  return SetShape(c, PartialShape({a.dim(adjoint_a ? 1 : 0), b.dim(adjoint_b ? 0 : 1)}));
}

absl::Status SparseBincountShape(InferenceContext* c) {
  const Tensor sizes = c->input_tensor(2), size = c->input_tensor(3);
  if (!sizes.valid() || !size.valid()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, c->InputAsShape(2));
  TROUPE_ASSIGN_OR_RETURN(const int64_t count, ScalarValue(size));
  if (count < 0) return InvalidArgument("size must not be negative, got ", count);
  if (shape.rank() == 1) return SetShape(c, C::VectorOf(count));
  if (shape.rank() == 2) return SetShape(c, PartialShape({shape.dim(0), count}));
  return UnknownShape(c);
}

REGISTER_OP("SparseAdd")
    .Signature(
        "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: "
        "int64, thresh: Treal -> sum_indices: int64, sum_values: T, sum_shape: int64")
    .Attr("T: numbertype")
    .Attr("Treal: realnumbertype")
    .SetShapeFn(SparseAddShape)
    .Doc(
        "The sum of two sparse tensors of one shape, both in row-major order, as is the result. "
        "Elements that both have are left out if the magnitude of their sum is below the scalar "
        "`thresh`.");

REGISTER_OP("SparseAddGrad")
    .Signature(
        "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> "
        "a_val_grad: T, b_val_grad: T")
    .Attr("T: numbertype")
    .SetShapeFn(SparseAddGradShape)
    .Doc(
        "The gradients of `SparseAdd` for the values of `a` and `b`, given that for the values of "
        "the sum, `backprop_val_grad`; 0 for elements that are not in the sum. All indices are in "
        "row-major order.");

constexpr char kCwiseSignature[] =
    "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T";

REGISTER_OP("SparseDenseCwiseAdd")
    .Signature(kCwiseSignature)
    .Attr("T: numbertype")
    .SetShapeFn(SparseDenseCwiseShape)
    .Doc(
        "Adds a dense tensor to the elements that a sparse one has; `output` [n] are their new "
        "values. `dense` is broadcast to the shape of the sparse tensor, not the other way round.");

REGISTER_OP("SparseDenseCwiseMul")
    .Signature(kCwiseSignature)
    .Attr("T: numbertype")
    .SetShapeFn(SparseDenseCwiseShape)
    .Doc(
        "Multiplies the elements that a sparse tensor has by a dense one; `output` [n] are their "
        "new values. `dense` is broadcast to the shape of the sparse tensor.");

REGISTER_OP("SparseDenseCwiseDiv")
    .Signature(kCwiseSignature)
    .Attr("T: numbertype")
    .SetShapeFn(SparseDenseCwiseShape)
    .Doc(
        "Divides the elements that a sparse tensor has by a dense one; `output` [n] are their new "
        "values. `dense` is broadcast to the shape of the sparse tensor.");

constexpr char kReduceSignature[] =
    "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T";
constexpr char kReduceSparseSignature[] =
    "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> "
    "output_indices: int64, output_values: T, output_shape: int64";

REGISTER_OP("SparseReduceSum")
    .Signature(kReduceSignature)
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .SetShapeFn(SparseReduceShape)
    .Doc(
        "Sums the elements of a sparse tensor along `reduction_axes`, a vector or a scalar; the "
        "result is dense. Reduced dimensions become 1 if `keep_dims`, else disappear.");

REGISTER_OP("SparseReduceMax")
    .Signature(kReduceSignature)
    .Attr("keep_dims: bool = false")
    .Attr("T: realnumbertype")
    .SetShapeFn(SparseReduceShape)
    .Doc(
        "The largest of the elements that a sparse tensor has along `reduction_axes`, a vector or "
        "a scalar; 0 where it has none. The result is dense. Reduced dimensions become 1 if "
        "`keep_dims`, else disappear.");

REGISTER_OP("SparseReduceSumSparse")
    .Signature(kReduceSparseSignature)
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .SetShapeFn(UnknownShape)
    .Doc("As `SparseReduceSum`, with a sparse result, in row-major order.");

REGISTER_OP("SparseReduceMaxSparse")
    .Signature(kReduceSparseSignature)
    .Attr("keep_dims: bool = false")
    .Attr("T: realnumbertype")
    .SetShapeFn(UnknownShape)
    .Doc("As `SparseReduceMax`, with a sparse result, in row-major order.");

REGISTER_OP("SparseSoftmax")
    .Signature("sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T")
    .Attr("T: {half, float, double}")
    .SetShapeFn(SparseSoftmaxShape)
    .Doc(
        "Softmax over the elements that a sparse tensor, in row-major order, has along its last "
        "dimension: others count as minus infinity. `output` [n] are their new values.");

constexpr char kExtremeSignature[] =
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64 "
    "-> output_indices: int64, output_values: T";

REGISTER_OP("SparseSparseMaximum")
    .Signature(kExtremeSignature)
    .Attr("T: realnumbertype")
    .SetShapeFn(SparseSparseShape)
    .Doc(
        "The larger of two sparse tensors of one shape, element by element, at every index that "
        "either has; what is missing counts as 0. Inputs and result are in row-major order.");

REGISTER_OP("SparseSparseMinimum")
    .Signature(kExtremeSignature)
    .Attr("T: numbertype")
    .SetShapeFn(SparseSparseShape)
    .Doc(
        "The smaller of two sparse tensors of one shape, element by element, at every index that "
        "either has; what is missing counts as 0. Inputs and result are in row-major order.");

REGISTER_OP("SparseTensorDenseAdd")
    .Signature("a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .SetShapeFn(SparseTensorDenseAddShape)
    .Doc("Adds a sparse tensor and a dense one, `b`, of the same shape. The result is dense.");

REGISTER_OP("SparseTensorDenseMatMul")
    .Signature("a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64} = int64")
    .Attr("adjoint_a: bool = false")
    .Attr("adjoint_b: bool = false")
    .SetShapeFn(SparseTensorDenseMatMulShape)
    .Doc(
        "The product of a sparse matrix and a dense one, `b`, which is dense. `adjoint_a` and "
        "`adjoint_b` transpose and conjugate a matrix before. Indices may be in any order.");

REGISTER_OP("SparseBincount")
    .Signature(
        "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T")
    .Attr("Tidx: {int32, int64}")
    .Attr("T: {int32, int64, float, double}")
    .Attr("binary_output: bool = false")
    .SetShapeFn(SparseBincountShape)
    .Doc(
        "Counts how often each number in [0, size) is an element of a sparse vector, or of each "
        "row "
        "of a sparse matrix: [size] or [dense_shape[0], size]. Larger elements are left out, "
        "negative ones are refused. `weights`, a vector with an element for each value, are added "
        "up instead of ones unless it is empty. `binary_output`: 1 for what is there at all.");

}  // namespace
}  // namespace troupe

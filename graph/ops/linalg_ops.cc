// Matrix products.
#include <limits>
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/matrix_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

/// Output 0: matrices [rows, columns] below the dimensions `batch`.
void SetMatrices(InferenceContext* c, const PartialShape& batch, int64_t rows, int64_t columns) {
  c->set_output(0, batch.Concatenate(PartialShape({rows, columns})));
}

absl::Status BatchMatMul(InferenceContext* c, bool broadcast) {
  TROUPE_ASSIGN_OR_RETURN(const bool adj_x, c->attrs().Get<bool>("adj_x"));
  TROUPE_ASSIGN_OR_RETURN(const bool adj_y, c->attrs().Get<bool>("adj_y"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape x, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape y, C::WithRankAtLeast(c->input(1), 2));
  TROUPE_ASSIGN_OR_RETURN(PartialShape batch_x, C::Subshape(x, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(PartialShape batch_y, C::Subshape(y, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, broadcast
                                                        ? BroadcastShapes(batch_x, batch_y, false)
                                                        : C::Merge(batch_x, batch_y));
  TROUPE_RETURN_IF_ERROR(
      C::MergeDim(C::DimOf(x, adj_x ? -2 : -1), C::DimOf(y, adj_y ? -1 : -2)).status());
  SetMatrices(c, batch, C::DimOf(x, adj_x ? -1 : -2), C::DimOf(y, adj_y ? -2 : -1));
  return absl::OkStatus();
}

absl::Status BatchMatMulShape(InferenceContext* c) { return BatchMatMul(c, false); }

}  // namespace

absl::Status MatMulShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool transpose_a, c->attrs().Get<bool>("transpose_a"));
  TROUPE_ASSIGN_OR_RETURN(const bool transpose_b, c->attrs().Get<bool>("transpose_b"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape a, C::WithRank(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape b, C::WithRank(c->input(1), 2));
  const int64_t inner_a = a.dim(transpose_a ? 0 : 1), inner_b = b.dim(transpose_b ? 1 : 0);
  if (!C::MergeDim(inner_a, inner_b).ok()) {
    return InvalidArgument("Matrices of shapes ", a.ToString(), " and ", b.ToString(),
                           " cannot be multiplied: the inner sizes are ", inner_a, " and ", inner_b,
                           " (transpose_a: ", transpose_a, ", transpose_b: ", transpose_b, ")");
  }
  SetMatrices(c, C::Scalar(), a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1));
  return absl::OkStatus();
}

absl::Status BatchMatMulV2Shape(InferenceContext* c) { return BatchMatMul(c, true); }

namespace {

OpDefBuilder BatchProduct(const char* name, const char* type, ShapeFn shape_fn,
                          const char* other_dimensions) {
  OpDefBuilder op(name);
  op.Signature("x: T, y: T -> output: T")
      .Attr(type)
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false")
      .SetShapeFn(shape_fn)
      .Doc(StrCat(
          "Multiplies matrices, the last two dimensions of `x` [..., r, k] and `y` [..., k, c], "
          "pair by pair; `adj_x` and `adj_y` take the conjugate transpose first. The other "
          "dimensions are ",
          other_dimensions, ". Gives [..., r, c]."));
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kBatchProducts[] = {
    BatchProduct("BatchMatMul",
                 "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
                 BatchMatMulShape, "equal"),
    BatchProduct("BatchMatMulV2",
                 "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, "
                 "uint64, complex64, complex128}",
                 BatchMatMulV2Shape, "broadcast"),
};

}  // namespace

REGISTER_OP("BatchMatMulV3")
    .Signature("x: Ta, y: Tb -> output: Tout")
    .Attr(
        "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
        "complex128}")
    .Attr(
        "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
        "complex128}")
    .Attr("Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}")
    .Attr("adj_x: bool = false")
    .Attr("adj_y: bool = false")
    .Attr("grad_x: bool = false")
    .Attr("grad_y: bool = false")
    .SetShapeFn(BatchMatMulV2Shape)
    .Doc(
        "Multiplies matrices, the last two dimensions of `x` [..., r, k] and `y` [..., k, c], pair "
        "by pair, and gives the products [..., r, c] in the type `Tout`; `adj_x` and `adj_y` take "
        "the conjugate transpose first. The other dimensions are broadcast. `grad_x` and `grad_y` "
        "say that an operand is a gradient; they change nothing.");

REGISTER_OP("MatMul")
    .Signature("a: T, b: T -> product: T")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, "
        "complex64, complex128}")
    .Attr("grad_a: bool = false")
    .Attr("grad_b: bool = false")
    .SetShapeFn(MatMulShape)
    .Doc(
        "Multiplies the matrices `a` [r, k] and `b` [k, c], each transposed first if "
        "`transpose_a` or `transpose_b`. Gives [r, c].");

REGISTER_OP("SparseMatMul")
    .Signature("a: Ta, b: Tb -> product: float")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("a_is_sparse: bool = false")
    .Attr("b_is_sparse: bool = false")
    .Attr("Ta: {float, bfloat16} = DT_FLOAT")
    .Attr("Tb: {float, bfloat16} = DT_FLOAT")
    .SetShapeFn(MatMulShape)
    .Doc(
        "Multiplies the matrices `a` [r, k] and `b` [k, c], each transposed first if "
        "`transpose_a` or `transpose_b`. Gives [r, c] in float. `a_is_sparse` and `b_is_sparse` "
        "say that most elements of a matrix are zero: the result is the same.");

}  // namespace troupe

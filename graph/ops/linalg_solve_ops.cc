// Decompositions, linear systems, diagonals and bands of matrices: of the last two dimensions.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/matrix_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SquareMatricesShape(InferenceContext* c) {
  return SetShape(c, SquareMatrices(c->input(0)));
}

absl::Status SystemShape(InferenceContext* c, bool broadcast) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix, SquareMatrices(c->input(0)));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rhs, C::WithRankAtLeast(c->input(1), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix_batch, C::Subshape(matrix, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rhs_batch, C::Subshape(rhs, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch,
                          broadcast ? BroadcastShapes(matrix_batch, rhs_batch, false)
                                    : C::Merge(matrix_batch, rhs_batch));
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, C::MergeDim(C::DimOf(matrix, -2), C::DimOf(rhs, -2)));
  return SetShape(c, batch.Concatenate(PartialShape({n, C::DimOf(rhs, -1)})));
}
absl::Status MatrixSolveShape(InferenceContext* c) { return SystemShape(c, false); }
absl::Status MatrixTriangularSolveShape(InferenceContext* c) { return SystemShape(c, true); }

absl::Status MatrixDiagShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape diagonal, C::WithRankAtLeast(c->input(0), 1));
  return SetShape(c, diagonal.Concatenate(C::VectorOf(C::DimOf(diagonal, -1))));
}

absl::Status MatrixDiagPartShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(input, 0, -2));
  return SetShape(c, batch.Concatenate(C::VectorOf(DiagonalLength(input))));
}

absl::Status MatrixSetDiagShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape input, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(PartialShape diagonal, C::WithRankAtLeast(c->input(1), 1));
  if (!input.unknown_rank()) {
    TROUPE_ASSIGN_OR_RETURN(diagonal, C::WithRank(diagonal, input.rank() - 1));
    TROUPE_RETURN_IF_ERROR(C::MergeDim(DiagonalLength(input), C::DimOf(diagonal, -1)).status());
  }
  // A shape that is known is not compared with the diagonal's: that is left to the kernel.
  if (!diagonal.unknown_rank() && !input.fully_known()) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(diagonal, 0, -1));
    TROUPE_ASSIGN_OR_RETURN(input, C::Merge(input, batch.Concatenate(C::UnknownOfRank(2))));
  }
  return SetShape(c, input);
}

}  // namespace

REGISTER_OP("Cholesky")
    .Signature("input: T -> output: T")
    .Attr("T: {double, float, half, complex64, complex128}")
    .SetShapeFn(SquareMatricesShape)
    .Doc(
        "Gives the lower triangular matrices L of which L times its conjugate transpose is "
        "`input` [..., n, n], Hermitian and positive definite (only the lower triangle is read). "
        "NaNs where it is not positive definite.");

REGISTER_OP("MatrixBandPart")
    .Signature("input: T, num_lower: Tindex, num_upper: Tindex -> band: T")
    .Attr("T: type")
    .Attr("Tindex: {int32, int64} = DT_INT64")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives the matrices `input` [..., m, n] with zeros further below the diagonal than "
        "`num_lower` and further above than `num_upper`; a negative number keeps all.");

REGISTER_OP("MatrixDiag")
    .Signature("diagonal: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(MatrixDiagShape)
    .Doc("Gives matrices [..., n, n] with `diagonal` [..., n] on the diagonal, zeros elsewhere.");

REGISTER_OP("MatrixDiagPart")
    .Signature("input: T -> diagonal: T")
    .Attr("T: type")
    .SetShapeFn(MatrixDiagPartShape)
    .Doc("Gives the diagonals [..., min(m, n)] of the matrices `input` [..., m, n].");

REGISTER_OP("MatrixInverse")
    .Signature("input: T -> output: T")
    .Attr("adjoint: bool = false")
    .Attr("T: {double, float, half, complex64, complex128}")
    .SetShapeFn(SquareMatricesShape)
    .Doc(
        "Inverts the matrices `input` [..., n, n], or their conjugate transposes if `adjoint`. A "
        "singular one is an error.");

REGISTER_OP("MatrixSetDiag")
    .Signature("input: T, diagonal: T -> output: T")
    .Attr("T: type")
    .SetShapeFn(MatrixSetDiagShape)
    .Doc(
        "Gives the matrices `input` [..., m, n] with `diagonal` [..., min(m, n)] on the "
        "diagonal.");

REGISTER_OP("MatrixSolve")
    .Signature("matrix: T, rhs: T -> output: T")
    .Attr("adjoint: bool = false")
    .Attr("T: {double, float, half, complex64, complex128}")
    .SetShapeFn(MatrixSolveShape)
    .Doc(
        "Gives the solutions x [..., n, k] of matrix * x = rhs, for `matrix` [..., n, n] (its "
        "conjugate transpose if `adjoint`) and `rhs` [..., n, k]. A singular matrix is an error.");

REGISTER_OP("MatrixTriangularSolve")
    .Signature("matrix: T, rhs: T -> output: T")
    .Attr("lower: bool = true")
    .Attr("adjoint: bool = false")
    .Attr("T: {bfloat16, double, float, half, complex64, complex128}")
    .SetShapeFn(MatrixTriangularSolveShape)
    .Doc(
        "Gives the solutions x [..., n, k] of matrix * x = rhs, for the lower or upper triangle of "
        "`matrix` [..., n, n] (its conjugate transpose if `adjoint`) and `rhs` [..., n, k], whose "
        "outer dimensions are broadcast.");

}  // namespace troupe

// Determinants, decompositions, functions and least squares of matrices: of the last two
// dimensions.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/matrix_shapes.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

absl::Status SquareShape(InferenceContext* c) { return SetShape(c, SquareMatrices(c->input(0))); }

/// Sets output i to `batch` and, below it, `dims`.
void SetBelow(InferenceContext* c, int i, const PartialShape& batch,
              std::initializer_list<int64_t> dims) {
  c->set_output(i, batch.Concatenate(PartialShape(dims)));
}

absl::Status DeterminantShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrices, SquareMatrices(c->input(0)));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(matrices, 0, -2));
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, batch);
  return absl::OkStatus();
}

absl::Status EigenShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool compute_v, c->attrs().Get<bool>("compute_v"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrices, SquareMatrices(c->input(0)));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape values, C::Subshape(matrices, 0, -1));
  c->set_output(0, values);
  c->set_output(1, compute_v ? matrices : C::VectorOf(0));
  return absl::OkStatus();
}

absl::Status SelfAdjointEigShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrices, SquareMatrices(c->input(0)));
  if (matrices.unknown_rank()) return UnknownShape(c);
  TROUPE_ASSIGN_OR_RETURN(const int64_t rows, AddDims(C::DimOf(matrices, -2), 1));
  return SetShape(c, C::ReplaceDim(matrices, -2, rows));
}

absl::Status LuShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrices, SquareMatrices(c->input(0)));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rows, C::Subshape(matrices, 0, -1));
  c->set_output(0, matrices);
  c->set_output(1, rows);
  return absl::OkStatus();
}

absl::Status QrShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool full, c->attrs().Get<bool>("full_matrices"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(input, 0, -2));
  const int64_t m = C::DimOf(input, -2), n = C::DimOf(input, -1);
  const int64_t inner = full ? m : SmallerDim(m, n);
  SetBelow(c, 0, batch, {m, inner});
  SetBelow(c, 1, batch, {inner, n});
  return absl::OkStatus();
}

absl::Status SvdShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const bool compute_uv, c->attrs().Get<bool>("compute_uv"));
  TROUPE_ASSIGN_OR_RETURN(const bool full, c->attrs().Get<bool>("full_matrices"));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape input, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Subshape(input, 0, -2));
  const int64_t m = C::DimOf(input, -2), n = C::DimOf(input, -1), count = SmallerDim(m, n);
  SetBelow(c, 0, batch, {count});
  if (compute_uv) {
    SetBelow(c, 1, batch, {m, full ? m : count});
    SetBelow(c, 2, batch, {n, full ? n : count});
  } else {
    c->set_output(1, C::VectorOf(0));
    c->set_output(2, C::VectorOf(0));
  }
  return absl::OkStatus();
}

absl::Status MatrixSolveLsShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rhs, C::WithRankAtLeast(c->input(1), 2));
  TROUPE_RETURN_IF_ERROR(C::WithRank(c->input(2), 0).status());
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix_batch, C::Subshape(matrix, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rhs_batch, C::Subshape(rhs, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch, C::Merge(matrix_batch, rhs_batch));
  TROUPE_RETURN_IF_ERROR(C::MergeDim(C::DimOf(matrix, -2), C::DimOf(rhs, -2)).status());
  SetBelow(c, 0, batch, {C::DimOf(matrix, -1), C::DimOf(rhs, -1)});
  return absl::OkStatus();
}

absl::Status BandedTriangularSolveShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix, C::WithRankAtLeast(c->input(0), 2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rhs, C::WithRankAtLeast(c->input(1), 2));
  const int64_t bands = C::DimOf(matrix, -2), n = C::DimOf(matrix, -1);
  if (bands == 0) {
    return InvalidArgument("matrix of shape ", matrix.ToString(), " must have at least one band");
  }
  if (bands != -1 && n != -1 && bands > n) {
    return InvalidArgument("matrix of shape ", matrix.ToString(), " has more bands than columns");
  }
  TROUPE_ASSIGN_OR_RETURN(const PartialShape matrix_batch, C::Subshape(matrix, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape rhs_batch, C::Subshape(rhs, 0, -2));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape batch,
                          BroadcastShapes(matrix_batch, rhs_batch, false));
  TROUPE_ASSIGN_OR_RETURN(const int64_t rows, C::MergeDim(n, C::DimOf(rhs, -2)));
  SetBelow(c, 0, batch, {rows, C::DimOf(rhs, -1)});
  return absl::OkStatus();
}

absl::Status CrossShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape a, C::WithRankAtLeast(c->input(0), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape b, C::WithRankAtLeast(c->input(1), 1));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape shape, C::Merge(a, b));
  if (!shape.unknown_rank()) {
    TROUPE_RETURN_IF_ERROR(WithValue(C::DimOf(shape, -1), 3).status());
  }
  return SetShape(c, shape);
}

const char kFloats[] = "T: {double, float, half, complex64, complex128}";

}  // namespace

REGISTER_OP("BandedTriangularSolve")
    .Signature("matrix: T, rhs: T -> output: T")
    .Attr("lower: bool = true")
    .Attr("adjoint: bool = false")
    .Attr(kFloats)
    .SetShapeFn(BandedTriangularSolveShape)
    .Doc(
        "Gives the solutions x [..., n, r] of systems with triangular band matrices, and `rhs` "
        "[..., n, r], whose outer dimensions are broadcast. `matrix` [..., b, n] holds the b "
        "diagonals of the matrices as rows. If `lower`, the main diagonal is the first, those "
        "below follow, and each ends at the right (element j belongs to row j). Else the main "
        "diagonal is the last, those above precede it, and each begins at the left (element j "
        "belongs to row j). `adjoint` takes the conjugate transposes. A zero on the main diagonal "
        "is an error.");

REGISTER_OP("CholeskyGrad")
    .Signature("l: T, grad: T -> output: T")
    .Attr("T: {half, float, double}")
    .SetShapeFn(UnchangedShape)
    .Doc(
        "Gives the gradients [..., n, n], symmetric, with respect to the inputs of Cholesky, for "
        "its outputs `l` [..., n, n] and their gradients `grad` [..., n, n] (of both only the "
        "lower triangle is read).");

REGISTER_OP("Cross")
    .Signature("a: T, b: T -> product: T")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
        "uint64}")
    .SetShapeFn(CrossShape)
    .Doc("Gives the cross products [..., 3] of the vectors `a` [..., 3] and `b` [..., 3].");

REGISTER_OP("Eig")
    .Signature("input: T -> e: Tout, v: Tout")
    .Attr("compute_v: bool = true")
    .Attr("T: {float, double, complex64, complex128}")
    .Attr("Tout: {complex64, complex128}")
    .SetShapeFn(EigenShape)
    .Doc(
        "Gives the eigenvalues `e` [..., n] of the matrices `input` [..., n, n], in no order, and "
        "eigenvectors of length 1 as the columns of `v` [..., n, n]: input * v = v * diag(e). "
        "Without `compute_v` v is empty, [0].");

REGISTER_OP("LogMatrixDeterminant")
    .Signature("input: T -> sign: T, log_abs_determinant: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .SetShapeFn(DeterminantShape)
    .Doc(
        "Gives the determinants of the matrices `input` [..., n, n] in two parts: `sign` [...], "
        "of absolute value 1 (0 for a singular matrix), and `log_abs_determinant` [...], the "
        "logarithms of the absolute values (-inf for a singular matrix).");

REGISTER_OP("Lu")
    .Signature("input: T -> lu: T, p: output_idx_type")
    .Attr(kFloats)
    .Attr("output_idx_type: {int32, int64} = DT_INT32")
    .SetShapeFn(LuShape)
    .Doc(
        "Decomposes the matrices `input` [..., n, n] by Gaussian elimination with partial "
        "pivoting. `lu` [..., n, n] holds the lower factors, whose diagonal of ones is left out, "
        "below the diagonal and the upper factors from it on; row i of their product is row p[i] "
        "of the input, for the permutations `p` [..., n]. A singular matrix is an error.");

REGISTER_OP("MatrixDeterminant")
    .Signature("input: T -> output: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .SetShapeFn(DeterminantShape)
    .Doc("Gives the determinants [...] of the matrices `input` [..., n, n].");

REGISTER_OP("MatrixExponential")
    .Signature("input: T -> output: T")
    .Attr(kFloats)
    .SetShapeFn(SquareShape)
    .Deprecated(27, "Use Python implementation tf.linalg.matrix_exponential instead.")
    .Doc(
        "Gives the exponentials [..., n, n] of the matrices `input` [..., n, n]: the limits of "
        "their power series.");

REGISTER_OP("MatrixLogarithm")
    .Signature("input: T -> output: T")
    .Attr("T: {complex64, complex128}")
    .SetShapeFn(SquareShape)
    .Doc(
        "Gives the principal logarithms [..., n, n] of the matrices `input` [..., n, n]: their "
        "exponentials are the input. Not defined for matrices with eigenvalues of 0 or less.");

REGISTER_OP("MatrixSolveLs")
    .Signature("matrix: T, rhs: T, l2_regularizer: double -> output: T")
    .Attr(kFloats)
    .Attr("fast: bool = true")
    .SetShapeFn(MatrixSolveLsShape)
    .Doc(
        "Gives the matrices x [..., n, k] for which matrix * x is closest to `rhs` [..., m, k], "
        "for `matrix` [..., m, n]. If `fast`, by the normal equations: they minimize "
        "|matrix * x - rhs|^2 + l2_regularizer * |x|^2 (the solution of least norm where m < n), "
        "and a matrix without full rank is an error where `l2_regularizer`, a scalar, is 0. Else "
        "by a complete orthogonal decomposition, without the regularizer: the solution of least "
        "norm for any rank.");

REGISTER_OP("MatrixSquareRoot")
    .Signature("input: T -> output: T")
    .Attr(kFloats)
    .SetShapeFn(SquareShape)
    .Doc(
        "Gives the principal square roots [..., n, n] of the matrices `input` [..., n, n]: times "
        "themselves they are the input. A real matrix must have no negative eigenvalue.");

REGISTER_OP("Qr")
    .Signature("input: T -> q: T, r: T")
    .Attr("full_matrices: bool = false")
    .Attr(kFloats)
    .SetShapeFn(QrShape)
    .Doc(
        "Decomposes the matrices `input` [..., m, n] into q * r: `q` [..., m, p] has orthonormal "
        "columns, `r` [..., p, n] is upper triangular, p is the smaller of m and n, or m if "
        "`full_matrices`.");

REGISTER_OP("SelfAdjointEig")
    .Signature("input: T -> output: T")
    .Attr("T: {double, float, half}")
    .SetShapeFn(SelfAdjointEigShape)
    .Deprecated(11, "Use SelfAdjointEigV2 instead.")
    .Doc(
        "Gives, as matrices [..., n + 1, n], the eigenvalues of the symmetric matrices `input` "
        "[..., n, n] in the first row, in ascending order, and below them the eigenvectors as "
        "columns. Only the lower triangle is read.");

REGISTER_OP("SelfAdjointEigV2")
    .Signature("input: T -> e: T, v: T")
    .Attr("compute_v: bool = true")
    .Attr(kFloats)
    .SetShapeFn(EigenShape)
    .Doc(
        "Gives the eigenvalues `e` [..., n] of the Hermitian matrices `input` [..., n, n], in "
        "ascending order, and orthonormal eigenvectors as the columns of `v` [..., n, n]: "
        "input * v = v * diag(e). Only the lower triangle is read. Without `compute_v` v is "
        "empty, [0].");

REGISTER_OP("Svd")
    .Signature("input: T -> s: T, u: T, v: T")
    .Attr("compute_uv: bool = true")
    .Attr("full_matrices: bool = false")
    .Attr(kFloats)
    .SetShapeFn(SvdShape)
    .Doc(
        "Decomposes the matrices `input` [..., m, n] into u * diag(s) * adjoint(v). With p the "
        "smaller of m and n: `s` [..., p] are the singular values in descending order, `u` "
        "[..., m, p] and `v` [..., n, p] have orthonormal columns; if `full_matrices`, they are "
        "[..., m, m] and [..., n, n]. Without `compute_uv` u and v are empty, [0].");

}  // namespace troupe

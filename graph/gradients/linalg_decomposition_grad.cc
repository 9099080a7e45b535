// Gradients of decompositions, linear systems, diagonals and bands of matrices. A gradient G of y
// stands for the change <G, dy> of what is differentiated; with it the gradient of x is what turns
// dy into dx (after Giles, "Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation", 2008).
#include "graph/gradients/matrix_grad.h"

namespace troupe::gradients {
namespace {

Output TriangularSolve(GradientContext& g, Output matrix, Output rhs, bool lower, bool adjoint) {
  return g.Op("MatrixTriangularSolve", {matrix, rhs},
              [&](NodeSpec& spec) { spec.Attr("lower", lower).Attr("adjoint", adjoint); });
}

void CholeskyGrad(GradientContext& g) {
  // With P the lower triangle of L^H G, its diagonal halved: the Hermitian part of L^-H P L^-1.
  const Output l = g.output(0);
  Output p = MatrixProduct(g, l, true, g.grad(), false);
  p = g.Op("MatrixSetDiag", {p, Scale(g, g.Op("MatrixDiagPart", {p}), 0.5)});
  p = BandPart(g, p, -1, 0);
  const Output half_solved = TriangularSolve(g, l, p, true, true);
  const Output solved = TriangularSolve(g, l, Adjoint(g, half_solved), true, true);
  g.set(0, Scale(g, Add(g, solved, Adjoint(g, solved)), 0.5));
}
REGISTER_GRADIENT("Cholesky", CholeskyGrad);

void MatrixInverseGrad(GradientContext& g) {
  // -Y^H G Y^H; for the inverse of the adjoint its adjoint, -Y G^H Y.
  const Output y = g.output(0);
  const bool adjoint = g.node()->attrs().GetOr<bool>("adjoint", false);
  const Output product = MatrixProduct(g, g.grad(), adjoint, y, !adjoint);
  g.set(0, Neg(g, MatrixProduct(g, y, !adjoint, product, false)));
}
REGISTER_GRADIENT("MatrixInverse", MatrixInverseGrad);

/// The matrix's gradient, where `grad_rhs` is that of the right-hand side.
Output MatrixGrad(GradientContext& g, bool adjoint, Output grad_rhs) {
  const Output x = g.output(0);
  return Neg(g, adjoint ? MatrixProduct(g, x, false, grad_rhs, true)
                        : MatrixProduct(g, grad_rhs, false, x, true));
}

void MatrixSolveGrad(GradientContext& g) {
  const bool adjoint = g.node()->attrs().GetOr<bool>("adjoint", false);
  const Output grad_rhs = g.Op("MatrixSolve", {g.input(0), g.grad()},
                               [&](NodeSpec& spec) { spec.Attr("adjoint", !adjoint); });
  if (g.wanted(0)) g.set(0, MatrixGrad(g, adjoint, grad_rhs));
  g.set(1, grad_rhs);
}
REGISTER_GRADIENT("MatrixSolve", MatrixSolveGrad);

void MatrixTriangularSolveGrad(GradientContext& g) {
  const bool adjoint = g.node()->attrs().GetOr<bool>("adjoint", false);
  const bool lower = g.node()->attrs().GetOr<bool>("lower", true);
  const Output grad_rhs = TriangularSolve(g, g.input(0), g.grad(), lower, !adjoint);
  Output grad_matrix;
  if (g.wanted(0)) {
    grad_matrix = MatrixGrad(g, adjoint, grad_rhs);
    grad_matrix = lower ? BandPart(g, grad_matrix, -1, 0) : BandPart(g, grad_matrix, 0, -1);
  }
  SetMatrices(g, grad_matrix, grad_rhs);
}
REGISTER_GRADIENT("MatrixTriangularSolve", MatrixTriangularSolveGrad);

void MatrixBandPartGrad(GradientContext& g) {
  g.set(0, g.Op("MatrixBandPart", {g.grad(), g.input(1), g.input(2)}));
}
REGISTER_GRADIENT("MatrixBandPart", MatrixBandPartGrad);

void MatrixDiagGrad(GradientContext& g) { g.set(0, g.Op("MatrixDiagPart", {g.grad()})); }
REGISTER_GRADIENT("MatrixDiag", MatrixDiagGrad);

void MatrixDiagPartGrad(GradientContext& g) {
  const PartialShape& matrices = g.input(0).shape();
  const int rank = matrices.rank();
  const bool square =
      rank >= 2 && matrices.dim(rank - 1) != -1 && matrices.dim(rank - 1) == matrices.dim(rank - 2);
  g.set(0, square ? g.Op("MatrixDiag", {g.grad()})
                  : g.Op("MatrixSetDiag", {g.ZerosLike(g.input(0)), g.grad()}));
}
REGISTER_GRADIENT("MatrixDiagPart", MatrixDiagPartGrad);

void MatrixSetDiagGrad(GradientContext& g) {
  if (g.wanted(0)) g.set(0, g.Op("MatrixSetDiag", {g.grad(), g.ZerosLike(g.input(1))}));
  if (g.wanted(1)) g.set(1, g.Op("MatrixDiagPart", {g.grad()}));
}
REGISTER_GRADIENT("MatrixSetDiag", MatrixSetDiagGrad);

}  // namespace
}  // namespace troupe::gradients

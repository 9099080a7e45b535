// Gradients of determinants, square roots, least squares and banded systems of matrices.
#include <string>
#include <vector>

#include "graph/gradients/matrix_grad.h"

namespace troupe::gradients {
namespace {

/// factors[i] times the adjoint of the inverse of the matrix i of input 0.
Output TimesInverseAdjoint(GradientContext& g, Output factors) {
  const Output inverse =
      g.Op("MatrixInverse", {g.input(0)}, [](NodeSpec& spec) { spec.Attr("adjoint", true); });
  const Output ones = g.IntVector(std::vector<int32_t>{1, 1});
  const Sizes sizes = Sizes::OfShape(g, factors).Concat(Sizes::OfTensor(g, ones));
  return Mul(g, g.Op("Reshape", {factors, sizes.Vector()}), inverse);
}

void MatrixDeterminantGrad(GradientContext& g) {
  g.set(0, TimesInverseAdjoint(g, Mul(g, g.grad(), g.Conj(g.output(0)))));
}
REGISTER_GRADIENT("MatrixDeterminant", MatrixDeterminantGrad);

/// No gradient flows from the signs.
void LogMatrixDeterminantGrad(GradientContext& g) {
  g.set(0, TimesInverseAdjoint(g, g.GradOrZeros(1)));
}
REGISTER_GRADIENT("LogMatrixDeterminant", LogMatrixDeterminantGrad);

Output OuterProduct(GradientContext& g, Output a, Output b, const char* equation) {
  const std::vector<Output> operands = {a, b};
  return OfLists(g, "Einsum", {operands},
                 [&](NodeSpec& spec) { spec.Attr("equation", std::string(equation)); });
}

void MatrixSquareRootGrad(GradientContext& g) {
  // With R the root, the gradient X satisfies R' X + X R' = G, R' being the transpose (as in
  // TensorFlow of complex numbers, too): n^2 equations for the n^2 elements.
  const Output root = g.Conj(Adjoint(g, g.output(0)));
  const Sizes shape = Sizes::OfShape(g, root);
  const Sizes batch = shape.Slice(0, -2), n = shape.Slice(-1, Sizes::kEnd);
  const Output identity =
      g.Op("MatrixDiag", {g.Op("Fill", {n.Vector(), g.ScalarOfType(root.type(), 1)})});
  const Output system = Add(g, OuterProduct(g, root, identity, "...ac,bd->...abcd"),
                            OuterProduct(g, root, identity, "...db,ac->...abcd"));
  const Sizes count = n.Times(n);
  const Output one = g.IntVector(std::vector<int32_t>{1});
  const Output solution = g.Op(
      "MatrixSolve",
      {g.Op("Reshape", {system, batch.Concat(count).Concat(count).Vector()}),
       g.Op("Reshape", {g.grad(), batch.Concat(count).Concat(Sizes::OfTensor(g, one)).Vector()})});
  g.set(0, g.Op("Reshape", {solution, shape.Vector()}));
}
REGISTER_GRADIENT("MatrixSquareRoot", MatrixSquareRootGrad);

/// The matrix of the normal equations with the regularizer on its diagonal.
Output Gramian(GradientContext& g, Output a, bool tall) {
  const Output gramian = MatrixProduct(g, a, tall, a, !tall);
  const Output l2 = Cast(g, g.input(2), a.type());
  return g.Op("MatrixSetDiag", {gramian, Add(g, g.Op("MatrixDiagPart", {gramian}), l2)});
}

void MatrixSolveLsGrad(GradientContext& g) {
  if (!g.node()->attrs().GetOr<bool>("fast", true)) {
    return g.Fail(absl::UnimplementedError("MatrixSolveLs has no gradient where fast is false"));
  }
  const Output a = g.input(0), b = g.input(1), x = g.output(0), grad = g.grad();
  const int rank = a.shape().rank();
  if (rank < 2 || a.shape().dim(rank - 2) < 0 || a.shape().dim(rank - 1) < 0) {
    return g.Fail(absl::UnimplementedError(
        StrCat("the gradient of MatrixSolveLs needs known sizes of the matrices, got shape ",
               a.shape().ToString())));
  }
  const bool tall = a.shape().dim(rank - 2) >= a.shape().dim(rank - 1);
  const Output gramian = Gramian(g, a, tall);
  const auto solve = [&](Output rhs) { return g.Op("MatrixSolve", {gramian, rhs}); };
  if (tall) {
    const Output z = solve(grad);
    const Output xz = MatrixProduct(g, x, false, z, true);
    g.set(0, Sub(g, MatrixProduct(g, b, false, z, true),
                 MatrixProduct(g, a, Add(g, xz, Adjoint(g, xz)))));
    g.set(1, MatrixProduct(g, a, z));
    return;
  }
  const Output grad_b = solve(MatrixProduct(g, a, grad)), y = solve(b);
  const Output across = Sub(g, grad, MatrixProduct(g, a, true, grad_b, false));
  g.set(0, Sub(g, MatrixProduct(g, y, false, across, true),
               MatrixProduct(g, grad_b, MatrixProduct(g, y, true, a, false))));
  g.set(1, grad_b);
}
REGISTER_GRADIENT("MatrixSolveLs", MatrixSolveLsGrad);

void BandedTriangularSolveGrad(GradientContext& g) {
  const bool adjoint = g.node()->attrs().GetOr<bool>("adjoint", false);
  const bool lower = g.node()->attrs().GetOr<bool>("lower", true);
  const Output bands = g.input(0), x = g.output(0);
  const Output grad_rhs = g.Op("BandedTriangularSolve", {bands, g.grad()}, [&](NodeSpec& spec) {
    spec.Attr("lower", lower).Attr("adjoint", !adjoint);
  });
  Output grad_bands;
  if (g.wanted(0)) {
    const Output matrix = Neg(g, adjoint ? MatrixProduct(g, x, false, grad_rhs, true)
                                         : MatrixProduct(g, grad_rhs, false, x, true));
    const Sizes sizes = Sizes::OfShape(g, bands).Slice(-2, Sizes::kEnd);
    const Output above = Sub(g, sizes.Slice(0, 1).Scalar(), g.Scalar<int32_t>(1));
    const Output zero = g.Scalar<int32_t>(0);
    const Output k = lower ? Pack(g, {Neg(g, above), zero}, 0) : Pack(g, {zero, above}, 0);
    grad_bands = g.Op("MatrixDiagPartV3", {matrix, k, g.ScalarOfType(matrix.type(), 0)},
                      [](NodeSpec& spec) { spec.Attr("align", std::string("LEFT_RIGHT")); });
    // A single band has lost its dimension.
    const Sizes batch = Sizes::OfShape(g, matrix).Slice(0, -2);
    grad_bands = g.Op("Reshape", {grad_bands, batch.Concat(sizes).Vector()});
  }
  SetMatrices(g, grad_bands, grad_rhs);
}
REGISTER_GRADIENT("BandedTriangularSolve", BandedTriangularSolveGrad);

}  // namespace
}  // namespace troupe::gradients

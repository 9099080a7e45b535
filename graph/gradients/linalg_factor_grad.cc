// Gradients of eigenvalues, singular values and orthogonal factors. Formulas: Giles, "Collected
// matrix derivative results", 2008; Walter and Lehmann, "Algorithmic differentiation of linear
// algebra functions", 2018; of complex singular vectors: Wan and Zhang, "Automatic differentiation
// for complex valued SVD", 2019.
#include <cstdlib>
#include <utility>
#include <vector>

#include "graph/gradients/matrix_grad.h"

namespace troupe::gradients {
namespace {

Output P(GradientContext& g, Output a, Output b) { return MatrixProduct(g, a, false, b, false); }
Output AdjointTimes(GradientContext& g, Output a, Output b) {
  return MatrixProduct(g, a, true, b, false);
}
Output TimesAdjoint(GradientContext& g, Output a, Output b) {
  return MatrixProduct(g, a, false, b, true);
}

Output ExpandDims(GradientContext& g, Output x, int32_t axis) {
  return g.Op("ExpandDims", {x, g.Scalar<int32_t>(axis)});
}
Output Diag(GradientContext& g, Output x) { return g.Op("MatrixDiag", {x}); }

/// 1 / x, and 0 for 0.
Output SafeReciprocal(GradientContext& g, Output x) {
  constexpr double kTiny = 1e-20;
  const Output square = Add(g, Mul(g, x, x), g.ScalarOfType(x.type(), kTiny));
  return Mul(g, x, g.Op("Reciprocal", {square}));
}

/// 1 / (x[j] - x[i]) in row i and column j, 0 on the diagonal.
Output ReciprocalDifferences(GradientContext& g, Output x) {
  const Output differences = Sub(g, ExpandDims(g, x, -2), ExpandDims(g, x, -1));
  return g.Op("MatrixSetDiag", {SafeReciprocal(g, differences), g.ZerosLike(x)});
}

/// The vectors of a node that has computed them, or of one that is added for it.
Output VectorsOf(GradientContext& g, bool computed) {
  if (computed) return g.output(1);
  Node* node = g.Add(g.node()->op(), {g.input(0)},
                     [&](NodeSpec& spec) { CopyAttrs(g.node(), {"Tout"}, spec); });
  return node == nullptr ? Output() : Output(node, 1);
}

void SelfAdjointEigGrad(GradientContext& g) {
  const bool computed = g.node()->attrs().GetOr<bool>("compute_v", true);
  const Output v = VectorsOf(g, computed);
  Output middle = Diag(g, g.GradOrZeros(0));
  if (computed && g.gradient(1).valid()) {
    const Output f = ReciprocalDifferences(g, g.output(0));
    middle = Add(g, middle, Mul(g, f, AdjointTimes(g, v, g.grad(1))));
  }
  // Only the lower triangle is read.
  Output grad = P(g, v, TimesAdjoint(g, middle, v));
  grad = BandPart(g, Add(g, grad, Adjoint(g, grad)), -1, 0);
  const Output diagonal = Scale(g, g.Op("MatrixDiagPart", {grad}), 0.5);
  g.set(0, g.Op("MatrixSetDiag", {grad, diagonal}));
}
REGISTER_GRADIENT("SelfAdjointEigV2", SelfAdjointEigGrad);

void EigGrad(GradientContext& g) {
  const bool computed = g.node()->attrs().GetOr<bool>("compute_v", true);
  const Output v = VectorsOf(g, computed);
  const Output adjoint = Adjoint(g, v);
  Output middle = Diag(g, g.GradOrZeros(0));
  if (computed && g.gradient(1).valid()) {
    // The vectors have length 1.
    const Output change = P(g, adjoint, g.grad(1));
    const Output lengths = g.Op("Real", {g.Op("MatrixDiagPart", {change})}, [&](NodeSpec& spec) {
      spec.Attr("Tout", change.type() == ElementType::kComplex64 ? ElementType::kFloat
                                                                 : ElementType::kDouble);
    });
    const Output along = P(g, P(g, adjoint, v), Diag(g, Cast(g, lengths, change.type())));
    const Output f = g.Conj(ReciprocalDifferences(g, g.output(0)));
    middle = Add(g, middle, Mul(g, f, Sub(g, change, along)));
  }
  const Output grad = g.Op("MatrixSolve", {adjoint, P(g, middle, adjoint)});
  g.set(0, Cast(g, grad, g.input(0).type()));
}
REGISTER_GRADIENT("Eig", EigGrad);

/// x times the inverse of the adjoint of r, which is upper triangular.
Output TimesInverseAdjoint(GradientContext& g, Output x, Output r) {
  return Adjoint(g, g.Op("MatrixTriangularSolve", {r, Adjoint(g, x)},
                         [](NodeSpec& spec) { spec.Attr("lower", false).Attr("adjoint", false); }));
}

/// For at least as many rows as columns.
Output DeepQrGrad(GradientContext& g, Output q, Output r, Output dq, Output dr) {
  const Output qdq = AdjointTimes(g, q, dq), rdr = TimesAdjoint(g, r, dr);
  const Output skew = Add(g, Sub(g, qdq, Adjoint(g, qdq)), Sub(g, rdr, Adjoint(g, rdr)));
  const Output lower = BandPart(g, skew, -1, 0);
  Output grad = Add(g, P(g, q, Add(g, dr, TimesInverseAdjoint(g, lower, r))),
                    TimesInverseAdjoint(g, Sub(g, dq, P(g, q, qdq)), r));
  if (IsComplex(q.type())) {
    // The diagonal of r is real: its imaginary part takes no part.
    const Output m = g.Op("MatrixDiagPart", {Sub(g, rdr, Adjoint(g, qdq))});
    const Output imaginary = Scale(g, Sub(g, m, g.Conj(m)), 0.5);
    grad = Add(g, grad, TimesInverseAdjoint(g, P(g, q, Adjoint(g, Diag(g, imaginary))), r));
  }
  return grad;
}

/// Columns [begin, begin + count) of matrices of rank `rank`; count -1: the rest.
Output ColumnsOf(GradientContext& g, Output x, int64_t begin, int64_t count) {
  const int rank = x.shape().rank();
  std::vector<int32_t> begins(rank, 0), sizes(rank, -1);
  begins[rank - 1] = static_cast<int32_t>(begin);
  sizes[rank - 1] = static_cast<int32_t>(count);
  return g.Op("Slice", {x, g.IntVector(begins), g.IntVector(sizes)});
}

/// The sizes of the matrices of input 0; the differentiation fails if they are not known.
bool MatrixSizesOf(GradientContext& g, int64_t* rows, int64_t* columns) {
  const PartialShape& shape = g.input(0).shape();
  if (!shape.unknown_rank()) {
    *rows = shape.dim(shape.rank() - 2);
    *columns = shape.dim(shape.rank() - 1);
    if (*rows >= 0 && *columns >= 0) return true;
  }
  g.Fail(absl::UnimplementedError(StrCat("the gradient of ", g.node()->op(),
                                         " needs known sizes of the matrices, got shape ",
                                         shape.ToString())));
  return false;
}

void QrGrad(GradientContext& g) {
  int64_t m = 0, n = 0;
  if (!MatrixSizesOf(g, &m, &n)) return;
  if (m > n && g.node()->attrs().GetOr<bool>("full_matrices", false)) {
    return g.Fail(absl::UnimplementedError(
        "the gradient of Qr with full_matrices is not defined for more rows than columns"));
  }
  const Output q = g.output(0), r = g.output(1), dq = g.GradOrZeros(0), dr = g.GradOrZeros(1);
  if (m >= n) return g.set(0, DeepQrGrad(g, q, r, dq, dr));
  // a = [x, y]: x is square, y = q times the rest of r.
  const Output y = ColumnsOf(g, g.input(0), m, -1), rest = ColumnsOf(g, dr, m, -1);
  const Output dy = P(g, q, rest);
  const Output dx = DeepQrGrad(g, q, ColumnsOf(g, r, 0, m), Add(g, dq, TimesAdjoint(g, y, rest)),
                               ColumnsOf(g, dr, 0, m));
  g.set(0, Concat(g, {dx, dy}, g.Scalar<int32_t>(g.input(0).shape().rank() - 1)));
}
REGISTER_GRADIENT("Qr", QrGrad);

/// Singular values and vectors, or their gradients.
struct SingularParts {
  Output s, u, v;
};

/// For no more rows m than columns n.
Output WideSvdGrad(GradientContext& g, int64_t m, int64_t n, bool full, const SingularParts& y,
                   const SingularParts& dy) {
  const Output s2 = Mul(g, y.s, y.s);
  const Output f = ReciprocalDifferences(g, s2);
  const Output v1 = full && m < n ? ColumnsOf(g, y.v, 0, m) : y.v;
  const Output dv1 = full && m < n ? ColumnsOf(g, dy.v, 0, m) : dy.v;
  const Output v_dv = AdjointTimes(g, v1, dv1);
  const Output f_u = Mul(g, f, AdjointTimes(g, y.u, dy.u)), f_v = Mul(g, f, v_dv);
  const Output s = Diag(g, y.s);
  const Output inside =
      Add(g, Diag(g, dy.s),
          Add(g, P(g, Add(g, f_u, Adjoint(g, f_u)), s), P(g, s, Add(g, f_v, Adjoint(g, f_v)))));
  Output grad = P(g, y.u, TimesAdjoint(g, inside, v1));
  const Output inverse = Diag(g, SafeReciprocal(g, y.s));
  if (m < n) {
    const Output dv1_adjoint = Adjoint(g, dv1);
    Output across = Sub(g, dv1_adjoint, TimesAdjoint(g, P(g, dv1_adjoint, v1), v1));
    if (full) {
      const Output v2 = ColumnsOf(g, y.v, m, -1), dv2 = ColumnsOf(g, dy.v, m, -1);
      across = Sub(g, across, TimesAdjoint(g, AdjointTimes(g, v1, dv2), v2));
    }
    grad = Add(g, grad, P(g, P(g, y.u, inverse), across));
  }
  if (IsComplex(y.u.type())) {
    // The phases, which u and v share.
    const Output phases = g.Op("MatrixDiagPart", {v_dv});
    const Output turned = Diag(g, Scale(g, Sub(g, g.Conj(phases), phases), 0.5));
    grad = Add(g, grad, P(g, y.u, TimesAdjoint(g, P(g, inverse, turned), v1)));
  }
  return grad;
}

void SvdGrad(GradientContext& g) {
  const bool computed = g.node()->attrs().GetOr<bool>("compute_uv", true);
  if (!computed) {
    Node* node = g.Add("Svd", {g.input(0)});
    if (node == nullptr) return;
    return g.set(0, P(g, Output(node, 1), TimesAdjoint(g, Diag(g, g.grad(0)), Output(node, 2))));
  }
  int64_t m = 0, n = 0;
  if (!MatrixSizesOf(g, &m, &n)) return;
  const bool full = g.node()->attrs().GetOr<bool>("full_matrices", false);
  if (full && std::abs(m - n) > 1) {
    return g.Fail(absl::UnimplementedError(
        StrCat("the gradient of Svd with full_matrices is not defined for ", m, " rows and ", n,
               " columns, which differ by more than one")));
  }
  SingularParts y = {g.output(0), g.output(1), g.output(2)};
  SingularParts dy = {g.GradOrZeros(0), g.GradOrZeros(1), g.GradOrZeros(2)};
  if (m <= n) return g.set(0, WideSvdGrad(g, m, n, full, y, dy));
  std::swap(y.u, y.v);
  std::swap(dy.u, dy.v);
  g.set(0, Adjoint(g, WideSvdGrad(g, n, m, full, y, dy)));
}
REGISTER_GRADIENT("Svd", SvdGrad);

}  // namespace
}  // namespace troupe::gradients

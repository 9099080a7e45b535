// Gradients of matrix products.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

Output Product(GradientContext& g, std::string_view op, std::string_view flag_a,
               std::string_view flag_b, Output a, bool change_a, Output b, bool change_b) {
  return g.Op(op, {a, b}, [&](NodeSpec& spec) {
    spec.Attr(flag_a, change_a);
    spec.Attr(flag_b, change_b);
  });
}

/// The gradients of op(A) op(B), where op is a transposition or an adjunction or nothing. `a` and
/// `b` are conjugated already if the flags only transpose.
void ProductGrad(GradientContext& g, std::string_view flag_a, std::string_view flag_b, Output a,
                 Output b, Output* grad_a, Output* grad_b) {
  // A product of the third version has the type of its gradient: the second one takes that from x.
  const std::string op = g.node()->op() == "BatchMatMulV3" ? "BatchMatMulV2" : g.node()->op();
  const bool change_a = g.node()->attrs().GetOr<bool>(flag_a, false);
  const bool change_b = g.node()->attrs().GetOr<bool>(flag_b, false);
  const Output grad = g.grad();
  auto product = [&](Output x, bool change_x, Output y, bool change_y) {
    return Product(g, op, flag_a, flag_b, x, change_x, y, change_y);
  };
  if (grad_a != nullptr) {
    *grad_a = change_a ? product(b, change_b, grad, true) : product(grad, false, b, !change_b);
  }
  if (grad_b != nullptr) {
    *grad_b = change_b ? product(grad, true, a, change_a) : product(a, !change_a, grad, false);
  }
}

void MatMulGrad(GradientContext& g) {
  Output grad_a, grad_b;
  ProductGrad(g, "transpose_a", "transpose_b", g.wanted(1) ? g.Conj(g.input(0)) : Output(),
              g.wanted(0) ? g.Conj(g.input(1)) : Output(), g.wanted(0) ? &grad_a : nullptr,
              g.wanted(1) ? &grad_b : nullptr);
  g.set(0, grad_a);
  g.set(1, grad_b);
}
REGISTER_GRADIENT("MatMul", MatMulGrad);

void BatchMatMulGrad(GradientContext& g) {
  Output grad_a, grad_b;
  ProductGrad(g, "adj_x", "adj_y", g.input(0), g.input(1), g.wanted(0) ? &grad_a : nullptr,
              g.wanted(1) ? &grad_b : nullptr);
  if (g.node()->op() != "BatchMatMul") return SetMatrices(g, grad_a, grad_b);
  g.set(0, grad_a);
  g.set(1, grad_b);
}
REGISTER_GRADIENT("BatchMatMul", BatchMatMulGrad);
REGISTER_GRADIENT("BatchMatMulV2", BatchMatMulGrad);

void BatchMatMulV3Grad(GradientContext& g) {
  const ElementType type = g.grad().type();
  Output grad_x, grad_y;
  ProductGrad(g, "adj_x", "adj_y", Cast(g, g.input(0), type), Cast(g, g.input(1), type),
              g.wanted(0) ? &grad_x : nullptr, g.wanted(1) ? &grad_y : nullptr);
  if (grad_x.valid()) grad_x = Cast(g, grad_x, g.input(0).type());
  if (grad_y.valid()) grad_y = Cast(g, grad_y, g.input(1).type());
  SetMatrices(g, grad_x, grad_y);
}
REGISTER_GRADIENT("BatchMatMulV3", BatchMatMulV3Grad);

void SparseMatMulGrad(GradientContext& g) {
  Output grad_a, grad_b;
  ProductGrad(g, "transpose_a", "transpose_b", g.input(0), g.input(1),
              g.wanted(0) ? &grad_a : nullptr, g.wanted(1) ? &grad_b : nullptr);
  if (grad_a.valid()) g.set(0, Cast(g, grad_a, g.input(0).type()));
  if (grad_b.valid()) g.set(1, Cast(g, grad_b, g.input(1).type()));
}
REGISTER_GRADIENT("SparseMatMul", SparseMatMulGrad);

void CrossGrad(GradientContext& g) {
  g.set(0, g.Op("Cross", {g.input(1), g.grad()}));
  g.set(1, g.Op("Cross", {g.grad(), g.input(0)}));
}
REGISTER_GRADIENT("Cross", CrossGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of element-wise ops with several operands, which broadcast.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void AddGrad(GradientContext& g) {
  SetBinary(
      g, [&] { return g.grad(); }, [&] { return g.grad(); });
}
REGISTER_GRADIENT("Add", AddGrad);
REGISTER_GRADIENT("AddV2", AddGrad);

void AddNGrad(GradientContext& g) {
  for (int i = 0; i < g.node()->num_inputs(); ++i) g.set(i, g.grad());
}
REGISTER_GRADIENT("AddN", AddNGrad);

void SubGrad(GradientContext& g) {
  Unbroadcast unbroadcast(g, g.input(0), g.input(1));
  if (g.wanted(0)) g.set(0, unbroadcast.Reduce(0, g.grad()));
  // The smaller tensor is negated: the sum comes first.
  if (g.wanted(1)) g.set(1, Neg(g, unbroadcast.Reduce(1, g.grad())));
}
REGISTER_GRADIENT("Sub", SubGrad);

void MulGrad(GradientContext& g) {
  SetBinary(
      g, [&] { return Mul(g, g.grad(), g.Conj(g.input(1))); },
      [&] { return Mul(g, g.Conj(g.input(0)), g.grad()); });
}
REGISTER_GRADIENT("Mul", MulGrad);

// `div`: the op that divides, so that what it does about zeros holds for its gradient.
void QuotientGrad(GradientContext& g, std::string_view div) {
  Output y = g.Conj(g.input(1));
  SetBinary(
      g,
      [&] {
        return g.Op(div, {g.grad(), y});
      },
      [&] {
        Output quotient = g.Op(div, {Neg(g, g.Conj(g.input(0))), y});
        return Mul(g, g.grad(), g.Op(div, {quotient, y}));
      });
}
void DivGrad(GradientContext& g) { QuotientGrad(g, "RealDiv"); }
void DivNoNanGrad(GradientContext& g) { QuotientGrad(g, "DivNoNan"); }
REGISTER_GRADIENT("Div", DivGrad);
REGISTER_GRADIENT("RealDiv", DivGrad);
REGISTER_GRADIENT("DivNoNan", DivNoNanGrad);

void FloorModGrad(GradientContext& g) {
  SetBinary(
      g, [&] { return g.grad(); },
      [&] {
        return Mul(g, g.grad(), Neg(g, g.Op("FloorDiv", {g.input(0), g.input(1)})));
      });
}
REGISTER_GRADIENT("FloorMod", FloorModGrad);

void PowGrad(GradientContext& g) {
  Output x = g.Conj(g.input(0)), y = g.Conj(g.input(1));
  auto for_x = [&] {
    Output power = g.Op("Pow", {x, Sub(g, y, g.ScalarOfType(g.input(1).type(), 1))});
    return Mul(g, Mul(g, g.grad(), y), power);
  };
  auto for_y = [&] {
    // log(x) where it is defined; elsewhere 0 (a negative real base has no sensible derivative).
    const ElementType type = g.input(0).type();
    Output zero = g.ScalarOfType(type, 0);
    Output defined = g.Op(IsComplex(type) ? "NotEqual" : "Greater", {x, zero});
    Output safe = Select(g, defined, x, g.ScalarOfType(type, 1));
    Output log = Select(g, defined, g.Op("Log", {safe}), zero);
    return Mul(g, Mul(g, g.grad(), g.Conj(g.output(0))), log);
  };
  SetBinary(g, for_x, for_y);
}
REGISTER_GRADIENT("Pow", PowGrad);

void ExtremeGrad(GradientContext& g, std::string_view x_is_chosen) {
  Output chosen = g.Op(x_is_chosen, {g.input(0), g.input(1)});
  Output zero = g.ScalarOfType(g.grad().type(), 0);
  SetBinary(
      g, [&] { return Select(g, chosen, g.grad(), zero); },
      [&] { return Select(g, chosen, zero, g.grad()); });
}
void MaximumGrad(GradientContext& g) { ExtremeGrad(g, "GreaterEqual"); }
void MinimumGrad(GradientContext& g) { ExtremeGrad(g, "LessEqual"); }
REGISTER_GRADIENT("Maximum", MaximumGrad);
REGISTER_GRADIENT("Minimum", MinimumGrad);

void SquaredDifferenceGrad(GradientContext& g) {
  Output for_x = Mul(g, Scale(g, g.grad(), 2), Sub(g, g.input(0), g.input(1)));
  Unbroadcast unbroadcast(g, g.input(0), g.input(1));
  if (g.wanted(0)) g.set(0, unbroadcast.Reduce(0, for_x));
  if (g.wanted(1)) g.set(1, Neg(g, unbroadcast.Reduce(1, for_x)));
}
REGISTER_GRADIENT("SquaredDifference", SquaredDifferenceGrad);

void SelectGrad(GradientContext& g) {
  // Select, unlike SelectV2, also takes a vector that chooses rows; its operands have one shape.
  Output zeros = g.ZerosLike(g.input(1));
  if (g.wanted(1)) g.set(1, g.Op("Select", {g.input(0), g.grad(), zeros}));
  if (g.wanted(2)) g.set(2, g.Op("Select", {g.input(0), zeros, g.grad()}));
}
REGISTER_GRADIENT("Select", SelectGrad);

void SelectV2Grad(GradientContext& g) {
  Output zero = g.ScalarOfType(g.grad().type(), 0);
  if (g.wanted(1)) {
    Unbroadcast unbroadcast(g, g.input(1), g.output(0));
    g.set(1, unbroadcast.Reduce(0, Select(g, g.input(0), g.grad(), zero)));
  }
  if (g.wanted(2)) {
    Unbroadcast unbroadcast(g, g.input(2), g.output(0));
    g.set(2, unbroadcast.Reduce(0, Select(g, g.input(0), zero, g.grad())));
  }
}
REGISTER_GRADIENT("SelectV2", SelectV2Grad);

void ClipByValueGrad(GradientContext& g) {
  // The bounds are scalars or of the operand's shape.
  Output x = g.input(0);
  Output zero = g.ScalarOfType(g.grad().type(), 0);
  Output below = g.Op("Less", {x, g.input(1)});
  Output above = g.Op("Greater", {x, g.input(2)});
  if (g.wanted(0)) {
    g.set(0, Select(g, g.Op("LogicalOr", {below, above}), zero, g.grad()));
  }
  if (g.wanted(1)) {
    Unbroadcast unbroadcast(g, x, g.input(1));
    g.set(1, unbroadcast.Reduce(1, Select(g, below, g.grad(), zero)));
  }
  if (g.wanted(2)) {
    Unbroadcast unbroadcast(g, x, g.input(2));
    g.set(2, unbroadcast.Reduce(1, Select(g, above, g.grad(), zero)));
  }
}
REGISTER_GRADIENT("ClipByValue", ClipByValueGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of recurrent cells.
//
// Of all outputs, the gradients of the cell states and of the hidden states count, as in
// TensorFlow. A cell state at its clip has the gradient that it would have without one.
#include <vector>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

// TensorFlow takes this gradient for BlockLSTMV2, too, though that has its gates in another order
// (which BlockLSTMGradV2 knows). So do golden cases: docs/gradients.md tells of it.
void BlockLstmGrad(GradientContext& g) {
  std::vector<Output> inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < 7; ++i) inputs.push_back(g.output(i));
  inputs.push_back(g.GradOrZeros(1));
  inputs.push_back(g.GradOrZeros(6));
  Node* node = g.Add("BlockLSTMGrad", inputs,
                     [&](NodeSpec& spec) { CopyAttrs(g.node(), {"use_peephole"}, spec); });
  for (int i = 0; i < 8; ++i) g.set(i + 1, Output(node, i));
}
REGISTER_GRADIENT("BlockLSTM", BlockLstmGrad);
REGISTER_GRADIENT("BlockLSTMV2", BlockLstmGrad);

Output Multiply(GradientContext& g, Output a, Output b, const char* transposed) {
  return g.Op("MatMul", {a, b}, [&](NodeSpec& spec) { spec.Attr(transposed, true); });
}

/// x and a state as a cell sees them, side by side.
Output SideBySide(GradientContext& g, Output x, Output state) {
  return Concat(g, {x, state}, g.Scalar<int32_t>(1));
}

/// Sets the gradients of a layer's weights and bias, inputs `weights` and `bias`, from the layer's
/// input, made if it is needed, and the gradient of its result.
template <typename MakeInput>
void SetLayer(GradientContext& g, int weights, int bias, MakeInput input, Output grad) {
  if (g.wanted(weights)) g.set(weights, Multiply(g, input(), grad, "transpose_a"));
  if (g.wanted(bias)) g.set(bias, g.Op("BiasAddGrad", {grad}));
}

void LstmBlockCellGrad(GradientContext& g) {
  enum { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB, kInputs };
  enum { kCs = 1, kH = 6 };
  std::vector<Output> inputs;
  for (int i = 0; i < kInputs; ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < kH; ++i) inputs.push_back(g.output(i));
  inputs.push_back(g.GradOrZeros(kCs));
  inputs.push_back(g.GradOrZeros(kH));
  Node* node = g.Add("LSTMBlockCellGrad", inputs,
                     [&](NodeSpec& spec) { CopyAttrs(g.node(), {"use_peephole"}, spec); });
  const Output gates(node, 1);
  g.set(kCsPrev, Output(node, 0));
  g.set(kWci, Output(node, 2));
  g.set(kWcf, Output(node, 3));
  g.set(kWco, Output(node, 4));
  const Output x = g.input(kX), h_prev = g.input(kHPrev);
  if (g.wanted(kX) || g.wanted(kHPrev)) {
    const Output both = Multiply(g, gates, g.input(kW), "transpose_b");
    const Sizes sizes = Sizes::OfShape(g, x), zero = Sizes::Known(g, {0});
    if (g.wanted(kX)) {
      g.set(kX, g.Op("Slice", {both, g.IntVector({0, 0}), sizes.Vector()}));
    }
    if (g.wanted(kHPrev)) {
      g.set(kHPrev, g.Op("Slice", {both, zero.Concat(sizes.Slice(1, 2)).Vector(),
                                   Sizes::OfShape(g, h_prev).Vector()}));
    }
  }
  SetLayer(
      g, kW, kB, [&] { return SideBySide(g, x, h_prev); }, gates);
}
REGISTER_GRADIENT("LSTMBlockCell", LstmBlockCellGrad);

void GruBlockCellGrad(GradientContext& g) {
  enum { kX, kHPrev, kWRu, kWC, kBRu, kBC, kInputs };
  enum { kR, kH = 3 };
  std::vector<Output> inputs;
  for (int i = 0; i < kInputs; ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < kH; ++i) inputs.push_back(g.output(i));
  inputs.push_back(g.GradOrZeros(kH));
  Node* node = g.Add("GRUBlockCellGrad", inputs);
  const Output candidate(node, 2), gates(node, 3);
  g.set(kX, Output(node, 0));
  g.set(kHPrev, Output(node, 1));
  const Output x = g.input(kX), h_prev = g.input(kHPrev);
  SetLayer(
      g, kWRu, kBRu, [&] { return SideBySide(g, x, h_prev); }, gates);
  const auto reset = [&] { return SideBySide(g, x, Mul(g, h_prev, g.output(kR))); };
  SetLayer(g, kWC, kBC, reset, candidate);
}
REGISTER_GRADIENT("GRUBlockCell", GruBlockCellGrad);

}  // namespace
}  // namespace troupe::gradients

// Gradients of ops that arrange elements anew, mirror them or pick one of a row.
#include <string>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

void ConjugateTransposeGrad(GradientContext& g) {
  const Output inverse = g.Op("InvertPermutation", {g.input(1)});
  g.set(0, g.Op("ConjugateTranspose", {g.grad(), inverse}));
}
REGISTER_GRADIENT("ConjugateTranspose", ConjugateTransposeGrad);

void DiagGrad(GradientContext& g) { g.set(0, g.Op("DiagPart", {g.grad()})); }
REGISTER_GRADIENT("Diag", DiagGrad);

void DiagPartGrad(GradientContext& g) { g.set(0, g.Op("Diag", {g.grad()})); }
REGISTER_GRADIENT("DiagPart", DiagPartGrad);

/// An op on the gradient and the other inputs, with the node's attributes `names`.
void SetUndone(GradientContext& g, const char* op, std::initializer_list<std::string_view> names) {
  std::vector<Output> inputs = {g.grad()};
  for (int i = 1; i < g.node()->num_inputs(); ++i) inputs.push_back(g.input(i));
  Node* node = g.Add(op, inputs, [&](NodeSpec& spec) { CopyAttrs(g.node(), names, spec); });
  if (g.status().ok()) g.set(0, Output(node, 0));
}

void ReverseGrad(GradientContext& g) { SetUndone(g, "Reverse", {}); }
REGISTER_GRADIENT("Reverse", ReverseGrad);

void ReverseSequenceGrad(GradientContext& g) {
  SetUndone(g, "ReverseSequence", {"seq_dim", "batch_dim"});
}
REGISTER_GRADIENT("ReverseSequence", ReverseSequenceGrad);

void RollGrad(GradientContext& g) {
  g.set(0, g.Op("Roll", {g.grad(), Neg(g, g.input(1)), g.input(2)}));
}
REGISTER_GRADIENT("Roll", RollGrad);

void MirrorPadGrad(GradientContext& g) { SetUndone(g, "MirrorPadGrad", {"mode"}); }
REGISTER_GRADIENT("MirrorPad", MirrorPadGrad);

void MirrorPadGradGrad(GradientContext& g) { SetUndone(g, "MirrorPad", {"mode"}); }
REGISTER_GRADIENT("MirrorPadGrad", MirrorPadGradGrad);

void SpaceToBatchGrad(GradientContext& g) { SetUndone(g, "BatchToSpace", {"block_size"}); }
REGISTER_GRADIENT("SpaceToBatch", SpaceToBatchGrad);

void SpaceToBatchNDGrad(GradientContext& g) { SetUndone(g, "BatchToSpaceND", {}); }
REGISTER_GRADIENT("SpaceToBatchND", SpaceToBatchNDGrad);

void BatchToSpaceGrad(GradientContext& g) { SetUndone(g, "SpaceToBatch", {"block_size"}); }
REGISTER_GRADIENT("BatchToSpace", BatchToSpaceGrad);

void BatchToSpaceNDGrad(GradientContext& g) { SetUndone(g, "SpaceToBatchND", {}); }
REGISTER_GRADIENT("BatchToSpaceND", BatchToSpaceNDGrad);

void SpaceToDepthGrad(GradientContext& g) {
  SetUndone(g, "DepthToSpace", {"block_size", "data_format"});
}
REGISTER_GRADIENT("SpaceToDepth", SpaceToDepthGrad);

void DepthToSpaceGrad(GradientContext& g) {
  SetUndone(g, "SpaceToDepth", {"block_size", "data_format"});
}
REGISTER_GRADIENT("DepthToSpace", DepthToSpaceGrad);

void NthElementGrad(GradientContext& g) {
  // All elements that are equal to the one taken get an equal share.
  const auto column = [&](Output x) { return g.Op("ExpandDims", {x, g.Scalar<int32_t>(-1)}); };
  Output chosen = Cast(g, g.Op("Equal", {column(g.output(0)), g.input(0)}), g.grad().type());
  Output count = column(Sum(g, chosen, {-1}, false));
  g.set(0, Mul(g, Div(g, chosen, count), column(g.grad())));
}
REGISTER_GRADIENT("NthElement", NthElementGrad);

REGISTER_NO_GRADIENT("EditDistance");

}  // namespace
}  // namespace troupe::gradients

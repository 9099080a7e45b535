// Gradients of bands of diagonals: the second and third versions of MatrixDiag and its kin.
#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

/// The third version of the op `name`, with the node's alignment. As in TensorFlow it is RIGHT_LEFT
/// in gradients of the second version, too, which has LEFT_LEFT itself: there the gradient is right
/// for diagonals as long as the longest one, or below the main one.
Output ThirdVersion(GradientContext& g, const char* name, std::initializer_list<Output> inputs) {
  return g.Op(name, inputs, [&](NodeSpec& spec) { CopyAttrs(g.node(), {"align"}, spec); });
}

Output Zero(GradientContext& g) { return g.ScalarOfType(g.grad().type(), 0); }

void MatrixDiagOfBandGrad(GradientContext& g) {
  g.set(0, ThirdVersion(g, "MatrixDiagPartV3", {g.grad(), g.input(1), Zero(g)}));
}
REGISTER_GRADIENT("MatrixDiagV2", MatrixDiagOfBandGrad);
REGISTER_GRADIENT("MatrixDiagV3", MatrixDiagOfBandGrad);

void MatrixDiagPartOfBandGrad(GradientContext& g) {
  g.set(0, ThirdVersion(g, "MatrixSetDiagV3", {g.ZerosLike(g.input(0)), g.grad(), g.input(1)}));
}
REGISTER_GRADIENT("MatrixDiagPartV2", MatrixDiagPartOfBandGrad);
REGISTER_GRADIENT("MatrixDiagPartV3", MatrixDiagPartOfBandGrad);

void MatrixSetDiagOfBandGrad(GradientContext& g) {
  if (g.wanted(0)) {
    g.set(0, ThirdVersion(g, "MatrixSetDiagV3", {g.grad(), g.ZerosLike(g.input(1)), g.input(2)}));
  }
  if (g.wanted(1)) g.set(1, ThirdVersion(g, "MatrixDiagPartV3", {g.grad(), g.input(2), Zero(g)}));
}
REGISTER_GRADIENT("MatrixSetDiagV2", MatrixSetDiagOfBandGrad);
REGISTER_GRADIENT("MatrixSetDiagV3", MatrixSetDiagOfBandGrad);

}  // namespace
}  // namespace troupe::gradients

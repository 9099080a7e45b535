// Gradients of recurrent cells.
#include <vector>

#include "graph/gradients/gradient_ops.h"

namespace troupe::gradients {
namespace {

// Of all outputs, the gradients of the cell states and of the hidden states count. TensorFlow takes
// this gradient for BlockLSTMV2, too, though that has its gates in another order (which
// BlockLSTMGradV2 knows).
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

}  // namespace
}  // namespace troupe::gradients

#include "tests/graph/gradients/gradient_test_util.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "graph/gradients/add_gradients.h"

namespace troupe {

Output TestGraph::Placeholder(ElementType type, const PartialShape& shape) {
  return Op("Placeholder", {},
            [&](NodeSpec& spec) { spec.Attr("dtype", type).Attr("shape", shape); });
}

Output TestGraph::ListOp(std::string_view op, absl::Span<const Output> list,
                         const std::function<void(NodeSpec&)>& attrs) {
  NodeSpec spec(std::string(op), NewName(op));
  spec.Input(list);
  if (attrs) attrs(spec);
  return Output(Add(std::move(spec)), 0);
}

std::vector<Output> TestGraph::Gradients(std::vector<Output> ys, std::vector<Output> xs,
                                         std::vector<Output> grad_ys) {
  EXPECT_TRUE(status().ok()) << status();
  std::vector<Output> grads(xs.size());
  if (!status().ok()) return grads;
  const int before = graph()->num_nodes();
  absl::Status result = AddSymbolicGradients(ys, xs, grad_ys, &grads);
  EXPECT_TRUE(result.ok()) << result;
  added_.clear();
  std::vector<Node*> nodes = graph()->nodes();
  for (size_t i = before; i < nodes.size(); ++i) {
    if (nodes[i]->op() != "Const") added_.push_back(nodes[i]->op());
  }
  std::sort(added_.begin(), added_.end());
  return grads;
}

}  // namespace troupe

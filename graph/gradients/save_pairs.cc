#include "graph/gradients/save_pairs.h"

#include <vector>

#include "graph/gradients/control_flow_analysis.h"

namespace troupe::gradients {
namespace {

/// The StackV2 behind a handle.
Node* StackOf(const Node* user) {
  const Edge* edge = user->in_data_edge(0);
  for (int steps = 0; edge != nullptr && steps < 1000; ++steps) {
    Node* node = edge->src;
    if (node->op() == "StackV2") return node;
    if (!IsEnter(node) && !IsSwitch(node) && node->op() != "Identity") return nullptr;
    edge = node->in_data_edge(0);
  }
  return nullptr;
}

}  // namespace

SavePairs::SavePairs(const Graph& graph) {
  struct Users {
    std::vector<Node*> pushes, pops;
  };
  std::unordered_map<const Node*, Users> stacks;
  for (Node* node : graph.nodes()) {
    const bool push = node->op() == "StackPushV2";
    if (!push && node->op() != "StackPopV2") continue;
    if (const Node* stack = StackOf(node)) {
      (push ? stacks[stack].pushes : stacks[stack].pops).push_back(node);
    }
  }
  for (const auto& [stack, users] : stacks) {
    if (users.pushes.size() != 1 || users.pops.size() != 1) continue;
    pushes_[users.pops[0]] = users.pushes[0];
    pops_[users.pushes[0]] = users.pops[0];
  }
}

}  // namespace troupe::gradients

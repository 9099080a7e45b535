/// What a loop saves for another by a stack.
#ifndef TROUPE_GRAPH_GRADIENTS_SAVE_PAIRS_H_
#define TROUPE_GRAPH_GRADIENTS_SAVE_PAIRS_H_

#include <unordered_map>

#include "graph/graph.h"

namespace troupe::gradients {

/// Stacks with one StackPushV2 and one StackPopV2 node, as differentiation makes them: the values
/// popped are those pushed, last first, so that gradients can be sent back through them.
class SavePairs {
 public:
  SavePairs() = default;
  explicit SavePairs(const Graph& graph);
  /// The partner of a push or pop; nullptr if it has none, or the node is neither.
  Node* PushOf(const Node* pop) const { return Find(pushes_, pop); }
  Node* PopOf(const Node* push) const { return Find(pops_, push); }

 private:
  using Map = std::unordered_map<const Node*, Node*>;
  static Node* Find(const Map& map, const Node* node) {
    auto found = map.find(node);
    return found == map.end() ? nullptr : found->second;
  }
  Map pushes_, pops_;
};

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_SAVE_PAIRS_H_

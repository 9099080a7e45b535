#include <algorithm>
#include <string>
#include <string_view>

#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

// How many control edges more than before the removal of a node may add: a product saved is worth a
// few.
constexpr size_t kMostAdded = 16;

/// True for a node that may fail on some values of its inputs: it is run for its error. What is
/// left are computations on floating-point numbers whose ranks were checked when the graph was
/// built.
bool MayFail(const Subgraph& subgraph, const SubNode& node) {
  const Node& original = *node.original;
  for (std::string_view op : {"Identity", "Shape", "Size", "Rank", "ShapeN", "ZerosLike",
                              "OnesLike", "IdentityN", "Const", "StopGradient"}) {
    if (original.op() == op) return false;
  }
  for (std::string_view part : {"Gather", "Scatter", "CheckNumerics", "EnsureShape", "Matrix",
                                "Cholesky", "Softmax", "Segment", "Tensor", "Range"}) {
    if (original.op().find(part) != std::string::npos) return true;
  }
  for (int i = 0; i < original.num_inputs(); ++i) {
    const SubNode& producer = subgraph.nodes[node.inputs[i].node];
    if (producer.kind == SubNode::Kind::kConstant || producer.original->op() == "Const") continue;
    if (!IsFloating(original.input_type(i)) && !IsComplex(original.input_type(i))) return true;
    const int port =
        producer.kind == SubNode::Kind::kFeed ? producer.fed_port : node.inputs[i].port;
    if (original.num_inputs() > 1 && producer.original->output_shape(port).unknown_rank()) {
      return true;
    }
  }
  return false;
}

}  // namespace

void RemoveUnused(Subgraph* subgraph) {
  std::vector<SubNode>& nodes = subgraph->nodes;
  std::vector<Uses> uses = CountUses(*subgraph);
  auto is_op = [&](int32_t node) { return nodes[node].kind == SubNode::Kind::kOp; };

  // Consumers first: what fed a removed node may itself be waited for only.
  std::vector<char> removed(nodes.size(), 0);
  std::vector<std::vector<int32_t>> instead(nodes.size());
  for (int32_t i = static_cast<int32_t>(nodes.size()) - 1; i >= 0; --i) {
    const SubNode& node = nodes[i];
    const Uses& use = uses[i];
    if (use.data > 0 || use.control == 0 || use.fetched || use.target || !IsPure(node)) continue;
    if (MayFail(*subgraph, node)) continue;
    std::vector<int32_t> before = node.control_inputs;
    bool movable = true;
    for (const SubOutput& input : node.inputs) {
      if (!is_op(input.node)) continue;
      // Who waits for this node waits for one port of a Switch, which may be the dead one.
      movable &= !IsControlFlow(nodes[input.node].original->op());
      before.push_back(input.node);
    }
    SortUnique(&before);
    const auto after = static_cast<size_t>(use.control);
    if (!movable || before.size() * after > before.size() + after + kMostAdded) continue;
    removed[i] = 1;
    for (const SubOutput& input : node.inputs) --uses[input.node].data;
    for (int32_t control : node.control_inputs) --uses[control].control;
    for (int32_t earlier : before) uses[earlier].control += static_cast<int32_t>(after);
    instead[i] = std::move(before);
  }

  // Producers first: what takes a node's place is final when its users are looked at.
  auto replace = [&](std::vector<int32_t>* controls) {
    std::vector<int32_t> made;
    for (int32_t control : *controls) {
      if (removed[control]) {
        made.insert(made.end(), instead[control].begin(), instead[control].end());
      } else {
        made.push_back(control);
      }
    }
    SortUnique(&made);
    *controls = std::move(made);
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int32_t>& controls = removed[i] ? instead[i] : nodes[i].control_inputs;
    if (std::any_of(controls.begin(), controls.end(), [&](int32_t c) { return removed[c]; })) {
      replace(&controls);
    }
  }
}

}  // namespace troupe

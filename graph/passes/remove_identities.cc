#include <algorithm>
#include <string_view>

#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

bool IsIdentity(const SubNode& node) {
  if (node.kind != SubNode::Kind::kOp || node.inputs.size() != 1) return false;
  for (std::string_view op : {"Identity", "StopGradient", "PreventGradient"}) {
    if (node.original->op() == op) return true;
  }
  return false;
}

bool IsNoOp(const SubNode& node) {
  return node.kind == SubNode::Kind::kOp && node.original->op() == "NoOp";
}

/// Walks the nodes in order, decides for each whether it goes, and joins what is left.
class IdentityRemover {
 public:
  explicit IdentityRemover(Subgraph* subgraph)
      : nodes_(subgraph->nodes),
        subgraph_(subgraph),
        uses_(CountUses(*subgraph)),
        removed_(nodes_.size()) {}

  void Run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Redirect(static_cast<int32_t>(i));
      if (IsIdentity(nodes_[i])) {
        TryIdentity(static_cast<int32_t>(i));
      } else if (IsNoOp(nodes_[i])) {
        TryNoOp(static_cast<int32_t>(i));
      }
    }
    for (SubOutput& fetch : subgraph_->fetches) {
      if (removed_[fetch.node].is) fetch = removed_[fetch.node].value;
    }
  }

 private:
  struct Removed {
    bool is = false;
    SubOutput value;               // what takes the place of output 0
    std::vector<int32_t> carried;  // control inputs that pass on to whoever uses the value
    std::vector<int32_t> control;  // what takes the place of the node as a control input
  };

  bool IsValue(int32_t node) const { return nodes_[node].kind != SubNode::Kind::kOp; }

  /// Points inputs of removed nodes at what replaces them.
  void Redirect(int32_t at) {
    SubNode& node = nodes_[at];
    std::vector<int32_t> controls;
    bool changed = false;
    for (int32_t control : node.control_inputs) {
      if (removed_[control].is) {
        changed = true;
        controls.insert(controls.end(), removed_[control].control.begin(),
                        removed_[control].control.end());
      } else {
        controls.push_back(control);
      }
    }
    for (SubOutput& input : node.inputs) {
      const Removed& removed = removed_[input.node];
      if (!removed.is) continue;
      if (!removed.carried.empty()) {
        changed = true;
        controls.insert(controls.end(), removed.carried.begin(), removed.carried.end());
      }
      input = removed.value;
    }
    if (!changed) return;
    SortUnique(&controls);
    node.control_inputs = std::move(controls);
  }

  void TryIdentity(int32_t at) {
    const SubNode& node = nodes_[at];
    const Uses& use = uses_[at];
    const SubOutput source = node.inputs[0];
    const SubNode& producer = nodes_[source.node];
    // The identity of a reference is a snapshot of the variable.
    if (use.target || IsRefType(producer.output_type(source.port))) return;
    if (node.device != producer.device && !IsValue(source.node)) return;
    const std::string& wanted = node.original->requested_device();
    if (!wanted.empty() && wanted != producer.original->requested_device()) return;
    // Who waits for this node waits for one port of a Switch, which may be the dead one, or enters
    // a frame; the producer itself says neither.
    if (use.control > 0 && !IsValue(source.node) && IsControlFlow(producer.original->op())) return;
    // Constants and feeds send no events, which is what a Merge waits for.
    if (use.by_merge && IsValue(source.node)) return;
    if (!node.control_inputs.empty() &&
        (use.data != 1 || use.control > 0 || use.fetched || use.by_merge)) {
      return;
    }
    Removed& removed = removed_[at];
    removed.is = true;
    removed.value = source;
    removed.carried = node.control_inputs;
    if (!IsValue(source.node)) removed.control = {source.node};
    Uses& gains = uses_[source.node];
    gains.data += use.data - 1;
    gains.control += use.control;
    gains.by_merge |= use.by_merge;
    gains.fetched |= use.fetched;
  }

  void TryNoOp(int32_t at) {
    const size_t before = nodes_[at].control_inputs.size();
    const size_t after = static_cast<size_t>(uses_[at].control);
    if (uses_[at].target || before * after > before + after) return;
    Removed& removed = removed_[at];
    removed.is = true;
    removed.control = nodes_[at].control_inputs;
    for (int32_t control : removed.control) uses_[control].control += static_cast<int>(after) - 1;
  }

  std::vector<SubNode>& nodes_;
  Subgraph* subgraph_;
  std::vector<Uses> uses_;
  std::vector<Removed> removed_;
};

}  // namespace

void RemoveIdentities(Subgraph* subgraph) { IdentityRemover(subgraph).Run(); }

}  // namespace troupe

#include "graph/passes/loosen_constants.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/frames.h"
#include "graph/passes/rewrite.h"

namespace troupe {
namespace {

// A node under more conditions than this is known by itself only: sets stay small.
constexpr size_t kMostConditions = 32;

/// What must hold for a node to be alive: outcomes of predicates, and Merges and Enters that are
/// alive themselves. Sorted.
using Conditions = std::vector<uint64_t>;

class Loosener {
 public:
  Loosener(int64_t max_bytes, Subgraph* subgraph)
      : max_bytes_(max_bytes), subgraph_(subgraph), nodes_(subgraph->nodes) {}

  bool Run() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    const std::vector<Uses> uses = CountUses(*subgraph_);
    std::vector<int32_t> candidates;
    consumers_.resize(n);
    for (int32_t i = 0; i < n; ++i) {
      const SubNode& node = nodes_[i];
      if (node.kind == SubNode::Kind::kOp && node.original->op() == "Const" &&
          !node.control_inputs.empty() && uses[i].control == 0 && !uses[i].fetched &&
          !uses[i].target && !uses[i].by_merge) {
        candidates.push_back(i);
      }
      for (const SubOutput& input : node.inputs) consumers_[input.node].push_back(i);
    }
    if (candidates.empty()) return false;
    FindConditions();
    bool any = false;
    for (int32_t i : candidates) any |= TryLoosen(i) || HandOver(i);
    return any;
  }

 private:
  enum Fact { kAlive, kFalse, kTrue };
  static uint64_t Literal(SubOutput output, Fact fact) {
    return static_cast<uint64_t>(output.node) << 32 | static_cast<uint64_t>(output.port) << 2 |
           static_cast<uint64_t>(fact);
  }
  static void Unite(const Conditions& more, Conditions* all) {
    if (more.empty()) return;
    Conditions united;
    united.reserve(all->size() + more.size());
    std::set_union(all->begin(), all->end(), more.begin(), more.end(), std::back_inserter(united));
    *all = std::move(united);
  }

  /// Where a predicate comes from, seen through what only passes it on.
  SubOutput Origin(SubOutput value) const {
    while (nodes_[value.node].kind == SubNode::Kind::kOp) {
      const SubNode& node = nodes_[value.node];
      if (node.original->op() != "Identity" && flow_[value.node] != FlowOp::kLoopCond) break;
      value = node.inputs[0];
    }
    return value;
  }

  void FindConditions() {
    const int32_t n = static_cast<int32_t>(nodes_.size());
    flow_.resize(n);
    conditions_.resize(n);
    for (int32_t i = 0; i < n; ++i) flow_[i] = FlowOpOf(nodes_[i]);
    for (int32_t i = 0; i < n; ++i) {
      switch (flow_[i]) {
        case FlowOp::kControlTrigger:
          break;
        case FlowOp::kMerge:
        case FlowOp::kEnter:
        case FlowOp::kConstantEnter:
        case FlowOp::kExit:
        case FlowOp::kNextIteration:
          conditions_[i] = {Literal({i, 0}, kAlive)};
          break;
        default:
          conditions_[i] = Needed(i, /*but=*/-1);
          if (conditions_[i].size() > kMostConditions) conditions_[i] = {Literal({i, 0}, kAlive)};
      }
    }
  }

  /// Under which conditions an output is alive.
  Conditions Of(SubOutput output) const {
    Conditions all = conditions_[output.node];
    if (flow_[output.node] == FlowOp::kSwitch) {
      const SubOutput pred = Origin(nodes_[output.node].inputs[1]);
      Unite({Literal(pred, output.port == 0 ? kFalse : kTrue)}, &all);
    }
    return all;
  }

  /// Under which conditions all inputs but those from node `but` are alive.
  Conditions Needed(int32_t i, int32_t but) const {
    Conditions all;
    for (const SubOutput& input : nodes_[i].inputs) {
      if (input.node != but && input.node < i) Unite(Of(input), &all);
    }
    for (int32_t control : nodes_[i].control_inputs) {
      if (control != but && control < i) Unite(conditions_[control], &all);
    }
    return all;
  }

  /// True for what only says whether a branch is taken or an iteration begun: to wait for it is to
  /// wait for the predicates, Merges and Enters that are its conditions, and for no effect.
  bool IsPivot(int32_t i) const {
    SubOutput from = {i, 0};
    while (true) {
      const SubNode& node = nodes_[from.node];
      if (node.kind != SubNode::Kind::kOp) return false;
      switch (flow_[from.node]) {
        case FlowOp::kMerge:
        case FlowOp::kEnter:
        case FlowOp::kConstantEnter:
          return node.control_inputs.empty();
        case FlowOp::kSwitch:
          if (!node.control_inputs.empty()) return false;
          // What it switches is the predicate itself, or a pivot of the branch around.
          if (Origin(node.inputs[0]) == Origin(node.inputs[1])) return true;
          from = node.inputs[0];
          continue;
        default:
          if (node.original->op() != "Identity" || !node.control_inputs.empty()) return false;
          from = node.inputs[0];
      }
    }
  }

  /// Makes a Const a kConstant, if its value is what the op says.
  bool MakeConstant(int32_t i) {
    SubNode& node = nodes_[i];
    Tensor value;
    if (IsInflated(*node.original, max_bytes_) ||
        !node.original->attrs().Get("value", &value).ok() ||
        value.type() != node.original->output_type(0)) {
      return false;
    }
    node.kind = SubNode::Kind::kConstant;
    node.control_inputs.clear();
    node.values = {std::move(value)};
    conditions_[i].clear();  // The consumers' other constants cannot rely on this one any more.
    return true;
  }

  /// Has the few consumers of a Const wait for what it waits for itself.
  bool HandOver(int32_t i) {
    const std::vector<int32_t> before = nodes_[i].control_inputs;
    const std::vector<int32_t>& after = consumers_[i];
    if (before.size() * after.size() > before.size() + after.size()) return false;
    for (int32_t consumer : after) {
      if (flow_[consumer] != FlowOp::kNone || consumer < i) return false;
    }
    if (!MakeConstant(i)) return false;
    for (int32_t consumer : after) {
      std::vector<int32_t> all;
      std::set_union(before.begin(), before.end(), nodes_[consumer].control_inputs.begin(),
                     nodes_[consumer].control_inputs.end(), std::back_inserter(all));
      nodes_[consumer].control_inputs = std::move(all);
    }
    return true;
  }

  bool TryLoosen(int32_t i) {
    SubNode& node = nodes_[i];
    Conditions needed;
    for (int32_t control : node.control_inputs) {
      if (!IsPivot(control)) return false;
      Unite(conditions_[control], &needed);
    }
    if (needed.size() > kMostConditions) return false;
    for (int32_t consumer : consumers_[i]) {
      const Conditions others = Needed(consumer, i);
      if (!std::includes(others.begin(), others.end(), needed.begin(), needed.end())) return false;
    }
    return MakeConstant(i);
  }

  const int64_t max_bytes_;
  Subgraph* subgraph_;
  std::vector<SubNode>& nodes_;
  std::vector<FlowOp> flow_;
  std::vector<Conditions> conditions_;
  std::vector<std::vector<int32_t>> consumers_;
};

}  // namespace

void LoosenConstants(int64_t max_bytes, Subgraph* subgraph) {
  if (Loosener(max_bytes, subgraph).Run()) DropUnused(subgraph);
}

}  // namespace troupe

#include "actors/session/fuse_kernels.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/fusible.h"

namespace troupe {
namespace {

using Node = PlanSpec::Node;

/// What must hold for a node to run: outcomes of predicates, and loops, Merges, receives and what
/// may wait that are alive. Sorted.
using Conditions = std::vector<int64_t>;
// A node under more conditions than this is known by itself only: sets stay small.
constexpr size_t kMostConditions = 32;

/// What may wait for another node, here or elsewhere, that no edge says: a dequeue for an enqueue.
bool MayWait(const Node& node) {
  AsyncKernel* const async = node.kernel != nullptr ? node.kernel->async() : nullptr;
  return async != nullptr && async->WaitsForNodes();
}

/// Under which conditions nodes run. Two that have the same ones run together or not at all, and
/// after the same nodes that may wait.
class ConditionFinder {
 public:
  explicit ConditionFinder(const PlanSpec& spec)
      : nodes_(spec.nodes), together_(spec.frames.size(), 1), entered_(spec.frames.size()) {}

  std::vector<Conditions> Run() {
    // That the variables of a loop are alive together, in each iteration and behind it, is a guess,
    // which is checked by induction over the iterations; where it is wrong, each is known by
    // itself.
    constexpr int kMostGuesses = 8;
    for (int guess = 0;; ++guess) {
      if (guess == kMostGuesses) std::fill(together_.begin(), together_.end(), 0);
      FindAll();
      if (!Refute()) return std::move(conditions_);
    }
  }

 private:
  // A node has four numbers, a loop one below those.
  static constexpr int64_t kFalse = 1, kTrue = 2;
  int64_t LoopIsAlive(int frame) const { return -1 - frame; }
  static int64_t IsAlive(int node) { return int64_t{4} * node; }
  static int64_t PredicateIs(int node, int port, bool value) {
    return int64_t{4} * node + (value ? kTrue : kFalse) + (int64_t{port} << 40);
  }
  static void Unite(const Conditions& more, Conditions* all) {
    if (more.empty() || more == *all) return;
    Conditions united;
    std::set_union(all->begin(), all->end(), more.begin(), more.end(), std::back_inserter(united));
    *all = std::move(united);
  }

  /// Where a predicate comes from. What a reference gives, one cannot know: it may change.
  PlanSpec::Input Origin(PlanSpec::Input value) const {
    while (nodes_[value.node].flow == FlowOp::kLoopCond || nodes_[value.node].op == "Identity") {
      const std::vector<PlanSpec::Input>& inputs = nodes_[value.node].inputs;
      if (inputs.empty() || MayChange(inputs[0])) break;  // Without: it is fed.
      value = inputs[0];
    }
    return value;
  }
  static bool MayChange(const PlanSpec::Input& value) { return value.snapshot || value.reference; }
  Conditions Of(const PlanSpec::Input& value) const {
    Conditions all = conditions_[value.node];
    if (nodes_[value.node].flow == FlowOp::kSwitch) {
      constexpr int kNoPort = 2;  // A Switch has two.
      PlanSpec::Input pred = nodes_[value.node].inputs[1];
      if (MayChange(pred)) {
        pred.node = value.node;
        pred.port = kNoPort;
      } else {
        pred = Origin(pred);
      }
      Unite({PredicateIs(pred.node, pred.port, value.port == 1)}, &all);
    }
    return all;
  }
  Conditions Needed(int i) const {
    Conditions all;
    for (const PlanSpec::Input& input : nodes_[i].inputs) {
      if (input.node < i) Unite(Of(input), &all);
    }
    for (const int before : nodes_[i].control_inputs) Unite(conditions_[before], &all);
    return all;
  }
  /// Of a loop: alive in each of its iterations.
  bool IsVariable(int merge) const {
    bool goes_on = false;
    for (const PlanSpec::Input& input : nodes_[merge].inputs) {
      if (input.node >= merge) {
        goes_on = true;
      } else if (nodes_[input.node].flow != FlowOp::kEnter) {
        return false;
      }
    }
    return goes_on && nodes_[merge].control_inputs.empty();
  }
  bool IsOfLoop(int i) const {
    return nodes_[i].frame > 0 && together_[static_cast<size_t>(nodes_[i].frame)] != 0;
  }

  void FindAll() {
    conditions_.assign(nodes_.size(), {});
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      switch (nodes_[i].flow) {
        case FlowOp::kControlTrigger:  // It runs in any case, but waits.
        case FlowOp::kRecv:
        case FlowOp::kNextIteration:
          conditions_[i] = {IsAlive(i)};
          break;
        case FlowOp::kEnter:
        case FlowOp::kConstantEnter: {
          const int loop = nodes_[i].enters;
          entered_[static_cast<size_t>(loop)] = Needed(i);
          conditions_[i] = {together_[static_cast<size_t>(loop)] != 0 ? LoopIsAlive(loop)
                                                                      : IsAlive(i)};
          // The others are there in the first iteration only.
          if (nodes_[i].flow == FlowOp::kEnter) Unite({IsAlive(i)}, &conditions_[i]);
          break;
        }
        case FlowOp::kExit:
          conditions_[i] = {IsAlive(i)};
          if (IsOfLoop(i)) conditions_[i] = entered_[static_cast<size_t>(nodes_[i].frame)];
          break;
        case FlowOp::kMerge:
          conditions_[i] = {IsVariable(i) && IsOfLoop(i) ? LoopIsAlive(nodes_[i].frame)
                                                         : IsAlive(i)};
          break;
        default:
          conditions_[i] = Needed(i);
          if (MayWait(nodes_[i])) Unite({IsAlive(i)}, &conditions_[i]);
          if (conditions_[i].size() > kMostConditions) conditions_[i] = {IsAlive(i)};
      }
    }
  }

  /// True if a guess is wrong. It is right if all variables of a loop enter under the same
  /// conditions, go on if its predicate is true, and leave if that is false.
  bool Refute() {
    bool any = false;
    std::map<int, int64_t> predicates;  // By loop.
    const auto depends_on_predicate = [&](int i, bool value) {
      const Conditions needed = Needed(i);
      const int64_t code = value ? kTrue : kFalse;
      if (needed.size() != 2 || needed[0] != LoopIsAlive(nodes_[i].frame) ||
          needed[1] % 4 != code) {
        return false;
      }
      const int64_t predicate = needed[1] - code;
      return predicates.try_emplace(nodes_[i].frame, predicate).first->second == predicate;
    };
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      const FlowOp flow = nodes_[i].flow;
      bool right = true;
      int loop = nodes_[i].frame;
      if (flow == FlowOp::kEnter || flow == FlowOp::kConstantEnter) {
        loop = nodes_[i].enters;
        right = Needed(i) == entered_[static_cast<size_t>(loop)];
      } else if (flow == FlowOp::kNextIteration || flow == FlowOp::kExit) {
        right = depends_on_predicate(i, flow == FlowOp::kNextIteration);
      }
      if (right || together_[static_cast<size_t>(loop)] == 0) continue;
      together_[static_cast<size_t>(loop)] = 0;
      any = true;
    }
    return any;
  }

  const std::vector<Node>& nodes_;
  std::vector<char> together_;       ///< By frame.
  std::vector<Conditions> entered_;  ///< By frame: those of one of its Enters.
  std::vector<Conditions> conditions_;
};

class Fuser {
 public:
  explicit Fuser(PlanSpec* spec) : spec_(spec), nodes_(spec->nodes) {}

  void Run() {
    if (!Classify() || !Order()) return;
    Connect();
    if (!fused_.empty()) Rewrite();
  }

 private:
  /// Nodes of different classes are never fused. -1: of none.
  bool Classify() {
    const int n = static_cast<int>(nodes_.size());
    class_of_.assign(n, -1);
    std::vector<const void*> families(n, nullptr);
    int fusible = 0;
    for (int i = 0; i < n; ++i) {
      families[i] = FamilyOf(nodes_[i]);
      fusible += families[i] != nullptr ? 1 : 0;
    }
    if (fusible < 2) return false;
    const bool conditional =
        !spec_->frames.empty() || std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
          return node.flow != FlowOp::kNone || MayWait(node);
        });
    const std::vector<Conditions> conditions =
        conditional ? ConditionFinder(*spec_).Run() : std::vector<Conditions>(n);
    std::map<std::tuple<const void*, int, Conditions>, int> classes;
    for (int i = 0; i < n; ++i) {
      if (families[i] == nullptr) continue;
      class_of_[i] = classes
                         .try_emplace({families[i], nodes_[i].frame, conditions[i]},
                                      static_cast<int>(classes.size()))
                         .first->second;
    }
    return static_cast<int>(classes.size()) < fusible;
  }

  static const void* FamilyOf(const Node& node) {
    if (node.kernel == nullptr || node.flow != FlowOp::kNone || node.num_outputs != 1 ||
        node.inputs.empty()) {
      return nullptr;
    }
    const auto* const kernel = dynamic_cast<const FusibleKernel*>(node.kernel.get());
    if (kernel == nullptr) return nullptr;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k].snapshot || node.inputs[k].reference ||
          node.spaces.input(static_cast<int>(k)) != node.spaces.output(0)) {
        return nullptr;
      }
    }
    return kernel->family();
  }

  /// An order in which those of one class that can run one after the other do: as long as another
  /// node is ready it comes first. Such a run is a phase: nothing stands between its nodes, so that
  /// no way from one of them to another leaves it. What comes out of a loop may depend on all that
  /// goes on in it, by the loop's back edges. False: there is no such order.
  bool Order() {
    const int n = static_cast<int>(nodes_.size());
    std::vector<int> pending(n, 0);
    std::vector<std::vector<int>> consumers(n);
    std::map<int, std::vector<int>> go_on;  // By loop.
    for (int i = 0; i < n; ++i) {
      if (nodes_[i].flow == FlowOp::kNextIteration) go_on[nodes_[i].frame].push_back(i);
    }
    for (int i = 0; i < n; ++i) {
      for (const PlanSpec::Input& input : nodes_[i].inputs) {
        if (input.node >= i) continue;  // A loop's back edge.
        consumers[input.node].push_back(i);
        ++pending[i];
      }
      for (const int before : nodes_[i].control_inputs) {
        consumers[before].push_back(i);
        ++pending[i];
      }
      if (nodes_[i].flow != FlowOp::kExit) continue;
      for (const int before : go_on[nodes_[i].frame]) {
        consumers[before].push_back(i);
        ++pending[i];
      }
    }
    using Heap = std::priority_queue<int, std::vector<int>, std::greater<>>;
    Heap others;
    std::map<int, Heap> fusible;  // By class.
    const auto ready = [&](int i) { (class_of_[i] < 0 ? others : fusible[class_of_[i]]).push(i); };
    for (int i = 0; i < n; ++i) {
      if (pending[i] == 0) ready(i);
    }
    phase_of_.assign(n, -1);
    const auto take = [&](Heap* heap) {
      const int i = heap->top();
      heap->pop();
      order_.push_back(i);
      for (const int consumer : consumers[i]) {
        if (--pending[consumer] == 0) ready(consumer);
      }
      return i;
    };
    for (int phase = 0; !others.empty() || !fusible.empty(); ++phase) {
      while (!others.empty()) take(&others);
      if (fusible.empty()) break;
      const auto next = std::min_element(
          fusible.begin(), fusible.end(),
          [](const auto& a, const auto& b) { return a.second.top() < b.second.top(); });
      while (!next->second.empty()) phase_of_[take(&next->second)] = phase;
      fusible.erase(next);
    }
    return static_cast<int>(order_.size()) == n;
  }

  /// Finds the nodes of a phase that depend on each other.
  void Connect() {
    const int n = static_cast<int>(nodes_.size());
    std::vector<int> root(n);
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    used_outside_.assign(n, 0);
    consumers_.resize(n);
    for (int i = 0; i < n; ++i) {
      const auto join = [&](int before) {
        if (phase_of_[i] >= 0 && phase_of_[i] == phase_of_[before]) root[find(i)] = find(before);
      };
      for (const PlanSpec::Input& input : nodes_[i].inputs) {
        consumers_[input.node].push_back(i);
        join(input.node);
      }
      for (const int before : nodes_[i].control_inputs) join(before);
    }
    for (const PlanSpec::Input& fetch : spec_->fetches) used_outside_[fetch.node] = 1;
    std::map<int, std::vector<int>> groups;
    for (const int i : order_) {
      if (phase_of_[i] >= 0) groups[find(i)].push_back(i);
    }
    group_of_.assign(n, -1);
    for (const auto& [of, members] : groups) Fuse(members);
  }

  /// Makes a kernel of these, which stand in order; of half of them each, if they are too many.
  void Fuse(const std::vector<int>& members) {
    if (members.size() < 2) return;
    FusedCalls calls;
    Fused fused;
    std::map<std::pair<int, int>, int> inputs;  // Values from outside.
    std::map<int, int> results;
    const int number = static_cast<int>(fused_.size());
    for (const int i : members) group_of_[i] = number;
    for (const int i : members) {
      for (const PlanSpec::Input& input : nodes_[i].inputs) {
        if (group_of_[input.node] == number) continue;
        const auto [known, is_new] =
            inputs.try_emplace({input.node, input.port}, static_cast<int>(inputs.size()));
        if (is_new) fused.inputs.push_back(input);
      }
    }
    calls.num_inputs = static_cast<int>(inputs.size());
    for (const int i : members) {
      FusedCalls::Call& call = calls.calls.emplace_back();
      call.node = StrCat(nodes_[i].name, " (", nodes_[i].op, ")");
      call.kernel = std::shared_ptr<const FusibleKernel>(
          nodes_[i].kernel, dynamic_cast<const FusibleKernel*>(nodes_[i].kernel.get()));
      for (const PlanSpec::Input& input : nodes_[i].inputs) {
        call.operands.push_back(group_of_[input.node] == number ? results[input.node]
                                                                : inputs[{input.node, input.port}]);
      }
      const int value = calls.num_inputs + static_cast<int>(calls.calls.size()) - 1;
      results[i] = value;
      // Of those that only run as targets the last one stands for all.
      const bool leaves = used_outside_[i] != 0 || (i == members.back() && calls.outputs.empty()) ||
                          std::any_of(consumers_[i].begin(), consumers_[i].end(),
                                      [&](int consumer) { return group_of_[consumer] != number; });
      if (!leaves) continue;
      fused.port[i] = static_cast<int>(calls.outputs.size());
      calls.outputs.push_back(value);
    }
    fused.kernel = calls.calls[0].kernel->Fuse(calls);
    if (fused.kernel != nullptr) {
      fused.members = members;
      fused_.push_back(std::move(fused));
      return;
    }
    for (const int i : members) group_of_[i] = -1;
    const auto half = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
    Fuse(std::vector<int>(members.begin(), half));
    Fuse(std::vector<int>(half, members.end()));
  }

  void Rewrite() {
    const int n = static_cast<int>(nodes_.size());
    std::vector<int> left(fused_.size());  // Members that are still to come.
    for (size_t g = 0; g < fused_.size(); ++g) left[g] = static_cast<int>(fused_[g].members.size());
    std::vector<Node> nodes;
    std::vector<int> number(n);
    for (const int i : order_) {
      const int g = group_of_[i];
      if (g >= 0 && --left[static_cast<size_t>(g)] > 0) continue;
      if (g >= 0) {
        for (const int member : fused_[static_cast<size_t>(g)].members) {
          number[member] = static_cast<int>(nodes.size());
        }
        nodes.push_back(Together(&fused_[static_cast<size_t>(g)]));
      } else {
        number[i] = static_cast<int>(nodes.size());
        nodes.push_back(std::move(nodes_[i]));
      }
    }
    const auto move = [&](PlanSpec::Input* value) {
      const int g = group_of_[value->node];
      if (g >= 0) value->port = fused_[static_cast<size_t>(g)].port[value->node];
      value->node = number[value->node];
    };
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
      for (PlanSpec::Input& input : nodes[i].inputs) move(&input);
      std::vector<int>& before = nodes[i].control_inputs;
      for (int& node : before) node = number[node];
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      std::erase(before, i);  // Of one member to another.
    }
    for (PlanSpec::Input& fetch : spec_->fetches) move(&fetch);
    for (int& feed : spec_->feeds) feed = number[feed];
    spec_->nodes = std::move(nodes);
  }

  struct Fused {
    std::vector<int> members;
    std::shared_ptr<Kernel> kernel;
    std::vector<PlanSpec::Input> inputs;
    std::map<int, int> port;  ///< Of the members that others take values of.
  };

  Node Together(Fused* fused) {
    Node& last = nodes_[fused->members.back()];
    Node node;
    node.name = last.name;
    node.op = "Fused";
    node.kernel = std::move(fused->kernel);
    node.cost = last.cost;
    node.inputs = fused->inputs;
    node.num_outputs = static_cast<int>(fused->port.size());
    node.frame = last.frame;
    const MemorySpace space = last.spaces.output(0);
    node.spaces.inputs.assign(node.inputs.size(), space);
    node.spaces.outputs.assign(fused->port.size(), space);
    for (const int member : fused->members) {
      const std::vector<int>& before = nodes_[member].control_inputs;
      node.control_inputs.insert(node.control_inputs.end(), before.begin(), before.end());
    }
    return node;
  }

  PlanSpec* spec_;
  std::vector<Node>& nodes_;
  std::vector<int> class_of_, phase_of_, order_;
  std::vector<char> used_outside_;
  std::vector<std::vector<int>> consumers_;
  std::vector<int> group_of_;
  std::vector<Fused> fused_;
};

}  // namespace

void FuseKernels(PlanSpec* spec) { Fuser(spec).Run(); }

}  // namespace troupe

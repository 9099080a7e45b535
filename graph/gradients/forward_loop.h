/// What differentiation adds to the loops of the forward graph: it counts their iterations.
#ifndef TROUPE_GRAPH_GRADIENTS_FORWARD_LOOP_H_
#define TROUPE_GRAPH_GRADIENTS_FORWARD_LOOP_H_

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/status/statusor.h"
#include "graph/gradients/control_flow_analysis.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {

/// Counts a loop's iterations, in the loop's own frame, by one more loop variable. What is added to
/// an iteration later can be put in order with it: after the counter has come in and before it
/// goes on, so that the additions of one iteration all come before those of the next.
struct IterationCounter {
  Node* number = nullptr;  ///< The number of the iteration (int32, from 0); runs once in each.
  Node* step = nullptr;    ///< Adds 1 to it.
  Node* sync = nullptr;    ///< A ControlTrigger before `step`, once something needs it.
  Node* merge = nullptr;
  Node* loop_switch = nullptr;
  Node* exit = nullptr;  ///< How many iterations there were.
  std::string prefix;

  /// Makes the counter go on only after `node` has finished. `conditional`: it may be dead.
  absl::Status Await(Graph* graph, Node* node, bool conditional);
};

/// Nodes added to the forward graph, with where they run. Not thread-safe.
class ForwardGraph {
 public:
  /// `base`: the frame of what is differentiated, most often the root.
  ForwardGraph(Graph* graph, ControlFlowAnalysis* flow, std::string prefix, int base)
      : graph_(graph), flow_(flow), prefix_(std::move(prefix)), base_(base) {}

  /// The counter of a loop, made by the first call; its parents' are made with it.
  absl::StatusOr<IterationCounter*> Counter(int frame);
  /// A tensor of the base frame inside a loop, as an invariant.
  absl::StatusOr<Output> Bring(Output tensor, int frame);
  /// What nodes without inputs, added to the base frame for the sake of a loop, must wait for so as
  /// to run in that frame; nullptr in the root, where they run anyway.
  absl::StatusOr<Node*> Pivot(int frame);
  /// The branches of its parent frame in which a loop runs, the parent's own condition left out.
  Path PathOfLoop(int frame) const;
  /// `value`, dead unless all of `path` is taken.
  absl::StatusOr<Output> Gate(Output value, const Path& path);
  /// What leaves a loop as a variable's last value.
  absl::StatusOr<Node*> ExitOf(int frame, const LoopVariable& variable);

 private:
  Graph* graph_;
  ControlFlowAnalysis* flow_;
  std::string prefix_;
  int base_;
  std::map<int, IterationCounter> counters_;
  std::map<int, Node*> pivots_;
  std::map<std::tuple<Node*, int, int>, Output> brought_;
  std::map<std::tuple<Node*, int, Node*, int>, Node*> switches_;
  std::map<Node*, Node*> exits_;
};

struct LoopAttrs {
  std::string frame;
  int64_t parallel_iterations = 10;
};
Node* AddEnter(GradientBuilder& g, Output value, const LoopAttrs& loop, bool constant);
/// `shape`: what is known of the shapes in all iterations.
Node* AddLoopMerge(GradientBuilder& g, Node* enter, const PartialShape& shape);
Node* AddSwitch(GradientBuilder& g, Output value, Output pred);
/// The Switch, or by an integer the _SwitchN, of which `branch` is an output.
Node* AddSwitch(GradientBuilder& g, Output value, Output pred, const Branch& branch);
/// An int32 that is there once `after` has run; nullptr: from the start.
Node* AddConst(GradientBuilder& g, int32_t value, Node* after);
/// Joins the end of the body to the Merge.
void AddBackEdge(GradientBuilder& g, Output value, Node* merge);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_FORWARD_LOOP_H_

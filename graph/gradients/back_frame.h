/// The loop that computes the gradient of a loop, and the values that it keeps for that.
#ifndef TROUPE_GRAPH_GRADIENTS_BACK_FRAME_H_
#define TROUPE_GRAPH_GRADIENTS_BACK_FRAME_H_

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/gradients/forward_loop.h"
#include "graph/gradients/gradient_registry.h"

namespace troupe::gradients {

class BackFrame;

/// What one call of AddSymbolicGradients knows about the graph and what it has added.
struct BackwardState {
  BackwardState(Graph* g, std::string p, int base, int64_t max_back)
      : graph(g),
        prefix(std::move(p)),
        base_frame(base),
        max_back_iterations(static_cast<int32_t>(std::min<int64_t>(max_back, INT32_MAX))),
        flow(g) {}

  /// Where a node runs.
  struct Home {
    BackFrame* back =
        nullptr;  ///< In this backward loop; nullptr: in `frame` of the forward graph.
    int frame = 0;
    Path path;  ///< In these branches. Only for the forward graph.
  };
  Home HomeOf(const Node* node);
  /// The branches, the condition of its loop left out, in which a forward tensor is alive.
  Path PathOf(Output tensor);
  /// The same for a node that was there before.
  Path PathOfNode(const Node* node);
  /// False if a tensor of a loop is also computed by the iteration that only ends the loop.
  bool InBody(Output tensor);

  Graph* graph;
  std::string prefix;
  int base_frame;
  int32_t max_back_iterations;
  ControlFlowAnalysis flow;
  int num_analysed = 0;  ///< Nodes from this number on were added by the differentiation.
  std::unique_ptr<ForwardGraph> forward;
  std::unordered_map<const Node*, Home> homes;
};

/// Where the gradients of a frame's nodes are computed. For the base frame that is the frame
/// itself; for a loop F it is a loop that runs as often as F did (at most `max_back_iterations`
/// times), its first iteration going with F's last. A value of F is obtained in the first of these
/// ways that fits:
///
/// - constants are repeated;
/// - invariants of F enter as invariants;
/// - shapes, casts and the like of these are computed again, and so are loop variables that grow
///   by a constant;
/// - anything else is saved: pushed on a stack by the iteration of F that computes it and popped by
///   the iteration that goes with it, in a branch only if that was taken. With
///   `max_back_iterations` a list takes the place of the stack, which keeps only so many.
///
/// Not thread-safe.
class BackFrame : public GradientPlace {
 public:
  /// `parent`: nullptr for the base.
  BackFrame(BackwardState* state, BackFrame* parent, int frame);

  /// Adds the nodes that count the iterations. Not for the base.
  absl::Status Open();

  absl::StatusOr<Output> Value(Output x) override;
  bool BelongsBeside(std::string_view op, Output x) override;
  absl::Status Added(Node* node) override;

  /// `value`, which is here, dead unless the branch is taken.
  absl::StatusOr<Output> Gate(Output value, const Branch& branch);
  absl::StatusOr<Output> Gate(Output value, const Path& path);
  /// A tensor of the parent inside this loop, as an invariant.
  absl::StatusOr<Output> Bring(Output outer);

  /// This as a builder wants it: nullptr where no value needs to be brought or saved.
  GradientPlace* place() { return parent_ == nullptr && pivot_ == nullptr ? nullptr : this; }
  BackFrame* parent() const { return parent_; }
  int frame() const { return frame_; }
  const LoopAttrs& attrs() const { return attrs_; }
  Output condition() const { return condition_; }
  /// In the parent: true if not all iterations of the forward loop are gone back through. Invalid
  /// if they always are.
  Output truncated() const { return truncated_; }
  /// In the parent: how many iterations there are.
  Output num_steps() const { return steps_; }
  /// Runs once in each iteration, or nullptr in the root.
  Node* pivot() const { return pivot_; }
  /// For the base, if it is no root: any node of it.
  void set_pivot(Node* pivot) { pivot_ = pivot; }
  IterationCounter& counter() { return counter_; }
  /// The loop starts only after `node` of the parent has finished.
  absl::Status StartAfter(Node* node) { return state_->graph->AddControlEdge(node, enter_); }
  /// A node of the parent that runs when the loop has ended.
  absl::StatusOr<Node*> Done();

 private:
  GradientBuilder Builder(std::string_view what);
  /// The value of a predicate, dead when the predicate is.
  absl::StatusOr<Output> PredicateValue(Output pred);
  /// True if a forward tensor of the loop is the same in each iteration, or follows from such.
  bool IsInvariant(Output x, int depth = 0);
  absl::StatusOr<Output> InvariantValue(Output x);
  /// A copy of a forward node here, with other inputs.
  absl::StatusOr<Node*> Repeat(const Node* forward, std::string_view name,
                               absl::Span<const Output> inputs);
  /// True for the float that orders operations of TensorArrays: its value does not matter.
  bool IsFlow(Output x) const;
  bool InForwardLoop(const Node* node);
  absl::StatusOr<Output> Save(Output x);
  absl::StatusOr<Output> SaveOnStack(Output x, const Path& path);
  absl::StatusOr<Output> SaveInList(Output x, const Path& path);
  /// The number of the iteration of the forward loop that goes with this one.
  absl::StatusOr<Output> ForwardNumber();
  /// The same, modulo the length of lists.
  absl::StatusOr<Output> ListIndex();
  /// A loop variable that grows by a constant follows from the iteration's number; invalid for
  /// other tensors.
  absl::StatusOr<Output> CountedValue(Output x);

  BackwardState* state_;
  BackFrame* parent_;
  int frame_;
  LoopAttrs attrs_;
  IterationCounter counter_;
  Node* pivot_ = nullptr;
  Node* enter_ = nullptr;
  Output condition_, truncated_;
  Output count_, steps_;  // in the parent: of the forward loop, and of this
  Output number_, list_index_, forward_list_index_;
  std::map<std::pair<Node*, int>, Output> values_, brought_;
  std::map<std::pair<Node*, int>, bool> invariant_;
  std::map<std::tuple<Node*, int, Node*, int>, Node*> switches_;
};

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_BACK_FRAME_H_

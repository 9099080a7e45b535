/// One run of symbolic differentiation. For the sources of `graph/gradients/` only.
#ifndef TROUPE_GRAPH_GRADIENTS_DIFFERENTIATION_H_
#define TROUPE_GRAPH_GRADIENTS_DIFFERENTIATION_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "devices/status_macros.h"
#include "graph/gradients/add_gradients.h"
#include "graph/gradients/back_frame.h"
#include "graph/gradients/save_pairs.h"

namespace troupe::gradients {

/// Nodes are dealt with in reverse topological order: when a node's turn comes, all its consumers
/// on paths from xs to ys have sent it their gradients. A loop counts as one node of the frame
/// around it; its own nodes are then dealt with in the same way. Nothing recurses but for loops in
/// loops.
///
/// A contribution to a forward tensor's gradient is computed in the frame that goes with the
/// tensor's own, and is alive exactly when the tensor is: what comes from a branch is merged with
/// zeros from the others.
class Differentiation {
 public:
  Differentiation(Graph* graph, absl::Span<const Output> ys, absl::Span<const Output> xs,
                  const GradientOptions& options, std::string prefix)
      : graph_(graph),
        ys_(ys.begin(), ys.end()),
        xs_(xs.begin(), xs.end()),
        options_(options),
        prefix_(std::move(prefix)) {}

  absl::Status Run(absl::Span<const Output> grad_ys, std::vector<Gradient>* grads);

 private:
  static constexpr int kNotReached = -2;  // Does not depend on any x.
  static constexpr int kReached = -1;     // Depends on an x; not known to lead to a y.

  /// What is known of a node between xs and ys.
  struct Visit {
    Node* node = nullptr;
    int pending = 0;  ///< Uses of its outputs by nodes whose turn is still to come.
    bool is_y = false, is_x = false, differentiated = false;
    /// Gradients received: output, contribution.
    std::vector<std::pair<int, Gradient>> received;
    std::vector<Gradient> grads;  ///< Their sums per output, kept for xs and loops.
  };
  /// A node, or a loop as a whole: part of what one frame has to deal with.
  struct Unit {
    int visit = -1;
    int frame = -1;
  };
  struct Level {
    int pending = 0;  ///< Of the loop as a unit of its parent.
    int num_units = 0, num_done = 0;
    std::vector<Unit> sources;  ///< Units of the parent whose outputs the loop uses.
    std::vector<int> visits;    ///< Of the nodes of the frame itself.
    std::vector<int> after;     ///< Loops whose backward loops must have ended before this one's.
    std::deque<Unit> ready;
    bool between = false;
    BackFrame* back = nullptr;
  };

  // --- what lies between xs and ys (differentiation.cc) ---
  absl::Status ResolveReplacements();
  absl::Status FindBase();
  void MarkReached();
  void CollectBetween();
  void CountUses();
  static Output Resolve(Output output);
  /// The tensor that feeds input i; invalid if there is none yet.
  static Output InputOf(const Node* node, int i);
  /// The nodes that `node` takes values from: its inputs, and for a StackPop the StackPush.
  std::vector<Node*> SourcesOf(const Node* node) const;
  /// The visit of a node; nullptr if it is not between xs and ys.
  Visit* Find(const Node* node);
  Visit* Source(const Node* node, int i);
  Unit UnitAt(int level, const Visit* visit);
  void Release(Unit unit, int level);
  bool IsStopped(Output output) const;

  // --- one frame (differentiation.cc) ---
  absl::StatusOr<Output> OnesFor(Output y);
  absl::Status SeedYs(absl::Span<const Output> grad_ys);
  absl::Status ProcessLevel(int frame, BackFrame* back);
  absl::Status SumReceived(Visit& visit, BackFrame* back);
  absl::Status Differentiate(Visit& visit, BackFrame* back);
  absl::Status Gate(Visit& visit, GradientContext& context);
  absl::Status SendAll(Visit& visit, const GradientContext& context, int first_node,
                       BackFrame* back);
  /// One contribution to the gradient of `to`, which is an output between xs and ys, alive in the
  /// branches `path`.
  absl::Status Send(Output to, Gradient grad, const Path& path, BackFrame* back);
  absl::Status Results(std::vector<Gradient>* grads);
  std::string ScopeOf(const Node* node) const {
    return StrCat(prefix_, "/", node->name(), "_grad");
  }

  // --- branches (branch_gradient.cc) ---
  /// Of the shape of the forward tensor `like`, in the branches `path` only.
  absl::StatusOr<Output> ZerosFor(Output like, ElementType type, const Path& path, BackFrame* back);
  absl::StatusOr<Output> ShapeFor(Output like, const Path& path, BackFrame* back);
  absl::StatusOr<Gradient> Lift(Output to, Gradient grad, const Path& extra, BackFrame* back);
  /// The gradient of what a Switch passed on, from those of its outputs, some perhaps invalid, in
  /// the branches `outer`.
  absl::StatusOr<Gradient> MergeBranches(Output to, std::vector<Gradient> branches,
                                         const Path& outer, Output pred, BackFrame* back);
  absl::Status SwitchGradient(Visit& visit, BackFrame* back);
  absl::Status MergeGradient(Visit& visit, BackFrame* back);

  // --- loops (loop_gradient.cc) ---
  struct BackVariable;
  absl::Status DifferentiateLoop(int frame, BackFrame* outer);
  absl::Status OpenVariables(int frame, BackFrame* outer, BackFrame* inner,
                             std::vector<BackVariable>* variables);
  absl::Status CloseVariables(int frame, BackFrame* outer, BackFrame* inner,
                              const std::vector<BackVariable>& variables);
  absl::Status CloseInvariant(Output outer_value, const Gradient& contribution, Gradient start,
                              int frame, BackFrame* outer, BackFrame* inner);
  absl::StatusOr<Output> AccumulateDense(Output outer_value, Output contribution, Output start,
                                         int frame, BackFrame* outer, BackFrame* inner);
  absl::StatusOr<Gradient> AccumulateSparse(Output outer_value, const Gradient& contribution,
                                            int frame, BackFrame* outer, BackFrame* inner);
  /// Adds a variable to the backward loop `inner` that begins with `start`, of `outer`; its `next`
  /// comes later.
  absl::StatusOr<BackVariable> OpenVariable(Output start, const PartialShape& shape,
                                            BackFrame* outer, BackFrame* inner);
  /// Gives the variable's last value, in `outer`.
  absl::StatusOr<Output> CloseVariable(const BackVariable& variable, Output next, BackFrame* outer,
                                       BackFrame* inner);
  absl::StatusOr<Output> AccumulateRows(Output rows, const PartialShape& row, int frame,
                                        BackFrame* outer, BackFrame* inner);
  absl::Status PopGradient(Visit& visit, BackFrame* back);
  absl::Status PushGradient(Visit& visit, BackFrame* back);

  Graph* graph_;
  std::vector<Output> ys_, xs_;
  const GradientOptions& options_;
  std::string prefix_;
  std::unique_ptr<BackwardState> state_;
  std::unique_ptr<BackFrame> base_;
  std::vector<std::unique_ptr<BackFrame>> back_frames_;
  SavePairs saved_;
  std::unordered_map<const Node*, std::vector<Node*>> replaced_by_;
  std::map<const Node*, Output> gradient_stacks_;  // by StackPush
  std::vector<int> slot_;  // By node id: index in `visits_`, or one of the constants.
  std::vector<Visit> visits_;
  std::vector<Level> levels_;  // by frame
};

/// An error about a node, with its name.
absl::Status AboutNode(const Node* node, const absl::Status& status);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_DIFFERENTIATION_H_

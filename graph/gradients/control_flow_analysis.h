/// Where the nodes of a graph run: in which loops, and in which branches.
#ifndef TROUPE_GRAPH_GRADIENTS_CONTROL_FLOW_ANALYSIS_H_
#define TROUPE_GRAPH_GRADIENTS_CONTROL_FLOW_ANALYSIS_H_

#include <compare>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"

namespace troupe::gradients {

/// Taken when the Switch nodes by `pred` pass on what they get to output `branch`.
struct Branch {
  Output pred;
  int index = 0;
  int count = 2;  ///< How many outputs there are to choose from.
  bool operator==(const Branch&) const = default;
};

/// The branches in which something runs, outer ones first: all must be taken.
using Path = std::vector<Branch>;

/// The members of `inner` that `outer` lacks, in their order.
Path Difference(const Path& inner, const Path& outer);

/// A variable of a loop. Members may be nullptr in loops under construction.
struct LoopVariable {
  Node* enter = nullptr;
  Node* merge = nullptr;
  Node* loop_switch = nullptr;
  Node* next = nullptr;
  Node* exit = nullptr;
  int back_input = 1;  ///< Which input of the Merge comes from `next`.
  /// The body passes the variable on as it is.
  bool invariant = false;
};

/// A loop. Frame 0 is the root: everything that is in no loop.
struct LoopFrame {
  std::string name;
  int parent = -1;
  int depth = 0;
  int64_t parallel_iterations = 10;
  int path = 0;  ///< In which branches of the parent frame the loop runs.
  Node* loop_cond = nullptr;
  std::vector<Node*> enters;
  std::vector<LoopVariable> variables;
};

/// The structure of a graph's primitive control flow. Nothing in a graph says which loop or branch
/// a node belongs to: that follows from the Enter, Exit, Switch and Merge nodes that its inputs
/// depend on. Not thread-safe.
class ControlFlowAnalysis {
 public:
  explicit ControlFlowAnalysis(const Graph* graph) : graph_(graph), paths_(1) {
    frames_.emplace_back();
  }

  /// Looks at the nodes that were added since the last call. What is malformed is an error only to
  /// those who ask about it.
  void Update();

  /// InvalidArgument if a node has inputs from loops that have nothing to do with each other.
  absl::Status Check(const Node* node) const;
  /// The frame that a node runs in; an Enter runs in the loop, an Exit outside.
  int FrameOf(const Node* node) const { return places_[node->id()].frame; }
  /// The same, an Exit counting as part of its loop.
  int LoopOf(const Node* node) const { return places_[node->id()].loop; }
  /// The branches, of that frame, that a node runs in. A loop's body is the true branch of its
  /// condition.
  const Path& PathOf(const Node* node) const { return paths_[places_[node->id()].path]; }
  const Path& PathOf(Output output) const { return paths_[OutputPath(output)]; }
  const Path& PathOfFrame(int frame) const { return paths_[frames_[frame].path]; }
  /// `path` without the branch that the condition of the loop `frame` chooses.
  Path WithoutCondition(Path path, int frame) const;

  const LoopFrame& frame(int i) const { return frames_[i]; }
  int num_frames() const { return static_cast<int>(frames_.size()); }
  /// The ancestor of `frame`, or itself, whose parent is `ancestor`; -1 if it is not within it.
  int ChildTowards(int ancestor, int frame) const;
  int CommonFrame(int a, int b) const;
  /// The variable that a Merge, or the Switch after it, belongs to; nullptr for those of branches.
  const LoopVariable* VariableOf(const Node* node) const;

  /// What a tensor is a copy of: looks through Identity nodes that run where their inputs do.
  Output Origin(Output tensor) const;

 private:
  struct Place {
    int frame = 0, loop = 0, path = 0;
  };

  void Visit(Node* node);
  int OutputPath(Output output) const;
  int Intern(const Path& path);
  int Union(int a, int b);
  int Intersection(int a, int b);
  void FindVariables();

  const Graph* graph_;
  std::deque<LoopFrame> frames_;
  std::map<std::pair<int, std::string>, int> frame_ids_;
  std::vector<Place> places_;  // by node id
  std::deque<Path> paths_;     // 0: the empty one
  std::map<std::pair<int, int>, int> unions_;
  std::map<std::pair<int, std::pair<std::pair<int, int>, int>>, int> extended_;
  std::unordered_map<const Node*, std::pair<int, int>> variables_;  // Merge, Switch: frame, index
  std::unordered_map<const Node*, std::pair<int, int>> mixed_;      // Nodes with unrelated frames
  std::vector<Node*> merges_;  // of loops, whose variables are still to be found
};

bool IsSwitch(const Node* node);
bool IsMerge(const Node* node);
bool IsEnter(const Node* node);
bool IsExit(const Node* node);
bool IsNextIteration(const Node* node);
/// An Enter that gives its value to every iteration.
bool IsConstantEnter(const Node* node);

}  // namespace troupe::gradients

#endif  // TROUPE_GRAPH_GRADIENTS_CONTROL_FLOW_ANALYSIS_H_

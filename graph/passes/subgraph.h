/// The part of a graph that one signature (feeds, fetches, targets) executes: a light copy that
/// passes change and from which a plan is built in one pass over its nodes.
#ifndef TROUPE_GRAPH_PASSES_SUBGRAPH_H_
#define TROUPE_GRAPH_PASSES_SUBGRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "devices/tensor.h"
#include "graph/graph.h"

namespace troupe {

/// An output of a node of the subgraph.
struct SubOutput {
  int32_t node = -1;  ///< Index into `Subgraph::nodes`.
  int32_t port = 0;
  bool operator==(const SubOutput&) const = default;
};

/// A node of the subgraph. A value.
struct SubNode {
  enum class Kind : uint8_t {
    kOp,        ///< Runs the kernel of `original`.
    kFeed,      ///< Stands for a fed tensor: output `fed_port` of `original`, here at port 0. No
                ///< inputs.
    kConstant,  ///< `values` are its outputs, known while compiling (folded). No inputs.
  };
  Kind kind = Kind::kOp;
  /// kFeed: the output of `original` that is fed; consumers here name port 0.
  int32_t fed_port = 0;
  /// Never nullptr: names, types and attributes. Lives as long as its graph.
  const Node* original = nullptr;
  /// One per data input of `original` (kOp). A producer has a smaller index than its consumer,
  /// except a NextIteration that feeds a Merge.
  std::vector<SubOutput> inputs;
  /// Nodes that must have finished before: sorted, no duplicates, never a kFeed or kConstant.
  std::vector<int32_t> control_inputs;
  /// kConstant: one per output of `original`.
  std::vector<Tensor> values;
  /// The complete name of the assigned device; empty until a placement pass has run.
  std::string device;

  int num_outputs() const { return kind == Kind::kFeed ? 1 : original->num_outputs(); }
  /// The type of an output; may be a reference (kOp only).
  ElementType output_type(int port) const {
    if (kind == Kind::kOp) return original->output_type(port);
    return RemoveRef(original->output_type(kind == Kind::kFeed ? fed_port : port));
  }
};

/// Nodes in topological order (loops' back edges, NextIteration to Merge, excepted). Neither source
/// nor sink. A value.
struct Subgraph {
  std::vector<SubNode> nodes;
  std::vector<int32_t> feeds;      ///< Per feed, in the caller's order: its kFeed node.
  std::vector<SubOutput> fetches;  ///< Per fetch, in the caller's order; duplicates allowed.
  std::vector<int32_t> targets;    ///< Nodes to be run for their effect, without duplicates.
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_SUBGRAPH_H_

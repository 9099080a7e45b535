/// The branches and loops that scopes are in while a graph is built. For `control_flow.cc`, and for
/// whoever adds nodes without a scope.
#ifndef TROUPE_API_INTERNAL_FLOW_CONTEXT_H_
#define TROUPE_API_INTERNAL_FLOW_CONTEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "api/scope.h"

namespace troupe {

/// A branch of a cond, or a loop, under construction. Tensors from outside come in through one
/// Switch per cond, or one constant Enter per loop; nodes that nothing inside precedes wait for the
/// pivot, so that they run only in the branch that is taken, and in iterations that are. (The
/// structure of Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning", 2018,
/// section 4.) Not thread-safe, like the scopes that share it.
struct FlowContext {
  enum class Kind { kBranch, kLoop };
  using Tensors = std::map<std::pair<Node*, int>, Output>;

  Kind kind = Kind::kBranch;
  std::shared_ptr<FlowContext> parent;  ///< nullptr: outside every branch and loop.
  std::string prefix;                   ///< Of the names of nodes that bring tensors in.
  /// What runs only when the inside does. In a loop: a Merge while the condition is built, then
  /// what enters the body.
  Node* pivot = nullptr;

  // A branch: which output of Switch nodes by `predicate` it gets.
  Output predicate;
  int branch = 0;
  /// The Switch nodes of both branches, by what they switch.
  std::shared_ptr<std::map<std::pair<Node*, int>, Node*>> switches;

  // A loop.
  std::string frame;
  int64_t parallel_iterations = 10;
  /// Nodes of the loop with smaller ids also run in the last iteration, which only asks the
  /// condition. 0 while the condition is built.
  int body_begin = 0;

  /// What has been brought in.
  Tensors brought;
  std::map<Node*, Node*> brought_controls;

  /// True if `inner` is this or lies within.
  bool Contains(const FlowContext* inner) const;

  /// `tensor` as `context` sees it; `any` is a scope of the graph. Errors go to it.
  static Output Bring(const Scope& any, const std::shared_ptr<FlowContext>& context, Output tensor);
  /// Brings `controls` into the scope's frame, and adds the pivot if nothing else keeps a node with
  /// these inputs from running when the inside does not.
  static void BringControls(const Scope& scope, absl::Span<const Output> inputs,
                            std::vector<Node*>* controls);
  /// For nodes that were added without a scope since the graph had `num_nodes` of them, with names
  /// below `prefix`: they now belong to the scope's branch or loop.
  static void Adopt(const Scope& scope, int num_nodes, const std::string& prefix);
};

/// A scope of its own, called as the caller wants, for the nodes of a construct; and its name.
Scope OwnScope(const Scope& scope, std::string_view name);
std::string NameOf(const Scope& own);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_FLOW_CONTEXT_H_

/// Putting the bodies of functions in the place of nodes: what inlining and lowering share. For the
/// sources of `graph/passes/` only.
#ifndef TROUPE_GRAPH_PASSES_FUNCTION_EXPANDER_H_
#define TROUPE_GRAPH_PASSES_FUNCTION_EXPANDER_H_

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "graph/function_library.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

/// One expansion of a GraphDef. Used once.
class FunctionExpander {
 public:
  /// `wanted`: which functional nodes are lowered. Direct calls are inlined unless the function
  /// calls itself directly or has a gradient of its own.
  FunctionExpander(const GraphDef& def, const OpRegistry& ops,
                   absl::FunctionRef<bool(const NodeDef&)> wanted);

  absl::StatusOr<GraphDef> Run();

 private:
  /// What a body leaves behind.
  struct Expanded {
    std::vector<std::string> results;
    std::vector<DataType> types;
    std::vector<std::string>
        done;  ///< "^node": what has run when the body's effects have happened.
  };
  using Strings = std::vector<std::string>;
  using Types = std::vector<DataType>;

  // function_expander.cc
  absl::Status Add(const NodeDef& node, bool takes_ungated);
  absl::Status Replace(const NodeDef& node, bool takes_ungated);
  absl::Status AddStart(const NodeDef& node, Strings* inputs, Strings* controls);
  /// The body goes to `device`, the results to the node's.
  absl::Status InlineCall(const NodeDef& node, const std::string& function, const AttrMap& attrs,
                          const std::string& device, Strings inputs, Strings controls,
                          const Types* types);
  /// `lowered`: the first control of `options` says when the body runs.
  absl::StatusOr<Expanded> AddBody(const std::string& function, const AttrMap& attrs,
                                   const std::string& prefix, const BindOptions& options,
                                   bool lowered, const Types* arg_types, const Types* result_types);
  absl::Status AddResult(const NodeDef& node, const Strings& results, const Types& types,
                         const Strings& controls);
  /// A new node; `inputs` may end with controls. Its name.
  absl::StatusOr<std::string> AddNode(const std::string& name, const std::string& op,
                                      const std::string& device, const Strings& inputs,
                                      DataType type = DT_INVALID, const char* type_attr = "T");
  /// The same, called "node/what", where `node` is.
  absl::StatusOr<std::string> AddPart(const NodeDef& node, const std::string& what,
                                      const std::string& op, const Strings& inputs,
                                      DataType type = DT_INVALID, const char* type_attr = "T") {
    return AddNode(StrCat(node.name(), "/", what), op, node.device(), inputs, type, type_attr);
  }
  absl::Status CheckRoom() const;
  NodeDef* Last() { return out_.mutable_node(out_.node_size() - 1); }
  std::string Unique(const std::string& name);
  bool InlinesCallsOf(const std::string& function) const;
  /// Remembers the value of a constant string.
  void Note(const NodeDef& node);
  /// The device that a RemoteCall calls on; nullptr if only a run can tell.
  const std::string* Target(const NodeDef& node) const;

  // lower_functions.cc
  absl::Status Lower(const NodeDef& node, Strings inputs, Strings controls);
  absl::Status LowerIf(const NodeDef& node, Strings inputs, Strings controls);
  absl::Status LowerCase(const NodeDef& node, Strings inputs, Strings controls);
  absl::Status LowerWhile(const NodeDef& node, Strings inputs, Strings controls);
  absl::Status LowerFor(const NodeDef& node, Strings inputs, Strings controls);
  /// A function's body as the part `what` of a node; it runs when the node `gate` does.
  absl::StatusOr<Expanded> AddGated(const NodeDef& node, const NameAttrList& function,
                                    const std::string& what, std::vector<BoundArgument> arguments,
                                    const std::string& gate, const Types& arg_types,
                                    const Types* result_types);
  /// An int32 scalar.
  absl::StatusOr<std::string> AddConstant(const NodeDef& node, const std::string& what,
                                          const Strings& controls, int32_t value);
  /// One branch: its arguments are outputs `port` of the switches, its pivot that of `pred_switch`.
  absl::StatusOr<Expanded> AddBranch(const NodeDef& node, const NameAttrList& function,
                                     const std::string& what, const Strings& switches,
                                     const std::string& pred_switch, int port, std::string* pivot);
  /// Joins the branches to the node's results.
  absl::Status JoinBranches(const NodeDef& node, const std::vector<Expanded>& branches,
                            const Strings& pivots);
  struct LoopVariable;
  struct Loop;
  absl::Status EnterLoop(Loop* loop);
  /// From `condition` (a bool, and controls) to the body's arguments.
  absl::Status BeginBody(const Strings& condition, Loop* loop);
  absl::Status LeaveLoop(Loop* loop);
  /// Which of its `n` arguments a loop's body only passes on.
  absl::StatusOr<std::vector<bool>> PassedOn(const NameAttrList& body, size_t n);
  /// The condition of a While, with controls that wait for its effects.
  absl::StatusOr<Strings> AddCondition(const NameAttrList& cond, const Types& types,
                                       const Loop& loop);
  /// Where the body gives an invariant for a variable that is none, only an iteration passes it on.
  absl::Status HoldInvariants(Loop* loop);
  /// What a For counts by.
  struct Bounds {
    std::string start = {}, limit, delta;
    std::string up = {}, down = {};  ///< The sign of `delta`.
    std::string check = {};          ///< Fails if they lead nowhere: start > limit going up, say.
  };
  absl::StatusOr<Bounds> AddBounds(const NodeDef& node, const Strings& inputs,
                                   const Strings& controls);

  const GraphDef& def_;
  const FunctionLibrary library_;
  absl::FunctionRef<bool(const NodeDef&)> wanted_;
  GraphDef out_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, std::string> strings_;  ///< Constants, by node.
  std::vector<std::string> stack_;  ///< The functions whose bodies are being put in.
  /// "^node": runs exactly when the branch or iteration that is being put in runs; "" outside.
  std::string gate_;
  bool has_primitive_flow_ = false;  ///< The graph has Switch or Enter nodes of its own.
};

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_FUNCTION_EXPANDER_H_

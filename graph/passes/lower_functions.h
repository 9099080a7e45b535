/// Functional control flow and calls as primitive nodes.
#ifndef TROUPE_GRAPH_PASSES_LOWER_FUNCTIONS_H_
#define TROUPE_GRAPH_PASSES_LOWER_FUNCTIONS_H_

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/op_registry.h"

namespace troupe {

class GraphDef;
class NodeDef;

/// True for the ops that `LowerFunctionalOps` can replace: If, While, Case (and their Stateless
/// forms), For, PartitionedCall, StatefulPartitionedCall, RemoteCall.
bool IsFunctionalOp(std::string_view op);

/// Replaces functional nodes for which `wanted` is true, those inside the bodies that this brings
/// in included, by the bodies of their functions and Switch, Merge, Enter, Exit, NextIteration,
/// LoopCond nodes. Direct calls inside those bodies are inlined. Nodes of a body are on the devices
/// that they ask for, within that of the functional node; those of a RemoteCall within its target.
/// A RemoteCall whose target is not a constant stays as it is.
///
/// For a node called `n`, everything new is called `n/...`; `n` itself becomes an IdentityN of its
/// results (NoOp if there are none) that waits for the effects of the bodies: names that others use
/// stay. What `n` waits for, its bodies wait for. A loop's frame is called `n`; variables that the
/// body passes on unchanged are invariants (`is_constant`) and leave it without an Exit; iterations
/// of a body with stateful nodes follow one another.
///
/// InvalidArgument names the node: functions that call themselves, attributes, arguments and
/// results that do not fit, more than a million nodes in all. NotFound: a function that the library
/// does not have. The library is kept.
absl::StatusOr<GraphDef> LowerFunctionalOps(const GraphDef& def, const OpRegistry& ops,
                                            absl::FunctionRef<bool(const NodeDef&)> wanted);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_LOWER_FUNCTIONS_H_

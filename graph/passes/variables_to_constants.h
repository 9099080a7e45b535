/// Freezing: the part of a graph that some outputs need, with the variables' values in it.
#ifndef TROUPE_GRAPH_PASSES_VARIABLES_TO_CONSTANTS_H_
#define TROUPE_GRAPH_PASSES_VARIABLES_TO_CONSTANTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

/// The nodes that `outputs` ("node" or "node:port") need, and the functions that these call. Calls
/// and functional control flow that take resources are put in the place of their nodes
/// (`LowerFunctionalOps`), so that all uses of a variable are nodes of the graph. NotFound: an
/// output that is not there; else the errors of lowering.
absl::StatusOr<GraphDef> ExtractForFreezing(const GraphDef& def, const OpRegistry& ops,
                                            const std::vector<std::string>& outputs);

/// The nodes of `def` that are variables: VarHandleOp, VariableV2, Variable.
std::vector<const NodeDef*> VariablesOf(const GraphDef& def);

/// Puts constants in the place of the variables that `values` names, by their nodes. What reads a
/// variable reads the constant then, through Identity, Switch, Merge, Enter, Exit and NextIteration
/// too; gathers of resources become gathers. FailedPrecondition: a node that writes a variable, or
/// takes one as no constant can be taken. InvalidArgument: a graph of 2 GB or more.
absl::Status VariablesToConstants(const OpRegistry& ops,
                                  const std::map<std::string, Tensor>& values, GraphDef* def);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_VARIABLES_TO_CONSTANTS_H_

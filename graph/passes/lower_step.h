/// Which functional nodes of a step are run as primitive control flow, and making it so.
#ifndef TROUPE_GRAPH_PASSES_LOWER_STEP_H_
#define TROUPE_GRAPH_PASSES_LOWER_STEP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "graph/function_library.h"
#include "graph/passes/subgraph.h"
#include "graph/step_signature.h"

namespace troupe {

/// True for a functional node that is to be lowered, were it not for functions that call
/// themselves: one that asks for it with TensorFlow's attribute `_lower_using_switch_merge`, and
/// with several devices a call whose bodies ask for devices, or a RemoteCall.
bool IsLowered(const FunctionLibrary& library, const NodeDef& node, bool several_devices);

/// A graph of its own with what `subgraph` runs, in which functional nodes are lowered (but for
/// functions that may call themselves); nullptr if none is. RemoteCalls need a constant target.
/// `lowered` is `signature` in that graph. InvalidArgument, NotFound: the functions cannot be put
/// in.
absl::StatusOr<std::shared_ptr<Graph>> LowerForStep(const Graph& graph, const Subgraph& subgraph,
                                                    const StepSignature& signature,
                                                    bool several_devices, StepSignature* lowered);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_LOWER_STEP_H_

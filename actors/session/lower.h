/// Which functional nodes of a step are run as primitive control flow, and making it so.
#ifndef TROUPE_ACTORS_SESSION_LOWER_H_
#define TROUPE_ACTORS_SESSION_LOWER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "actors/session/step_signature.h"
#include "graph/passes/subgraph.h"

namespace troupe {

/// A graph of its own with what `subgraph` runs, in which the functional nodes that ask for it
/// (with TensorFlow's attribute `_lower_using_switch_merge`) are lowered; nullptr if there are
/// none. With several devices, so are calls whose bodies ask for devices, and RemoteCalls with a
/// constant target. Functions that may call themselves are never lowered. `lowered` is `signature`
/// in that graph. InvalidArgument, NotFound: the functions cannot be put in.
absl::StatusOr<std::shared_ptr<Graph>> LowerForStep(const Graph& graph, const Subgraph& subgraph,
                                                    const StepSignature& signature,
                                                    bool several_devices, StepSignature* lowered);

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_LOWER_H_

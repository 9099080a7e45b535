/// From a signature to what each device runs, without kernels: what local sessions and the masters
/// of clusters have in common.
#ifndef TROUPE_GRAPH_PASSES_STEP_GRAPH_H_
#define TROUPE_GRAPH_PASSES_STEP_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/passes/partition.h"
#include "graph/passes/place.h"
#include "graph/passes/schedule_receives.h"
#include "graph/passes/subgraph.h"
#include "graph/step_signature.h"

namespace troupe {

/// What a signature executes.
struct StepGraph {
  Subgraph subgraph;
  std::shared_ptr<Graph> lowered;  ///< Holds the nodes if functional ops were lowered.
};

/// Prunes, lowers, checks and, if `simplify`, simplifies: else every node that is needed is run.
/// `check_devices` sees the nodes before any is folded away, so that an impossible device is always
/// refused. With several devices calls are lowered whose bodies ask for some. NotFound: ops that
/// are not registered, all of them.
absl::StatusOr<StepGraph> PrepareStep(
    const Graph& graph, const StepSignature& signature, bool simplify, bool several_devices,
    absl::FunctionRef<absl::Status(const Subgraph&)> check_devices);

/// Per fetch: the feeds that it depends on.
std::vector<std::vector<int>> FeedsOfFetches(const Subgraph& whole);

/// Places, cuts, and schedules the Recvs. `placed` sees where everything is, `report` says why.
absl::StatusOr<PartitionedGraph> CutStep(const PlacementInput& placement,
                                         const PartitionOptions& partition,
                                         const ScheduleReceivesOptions& schedule, Subgraph subgraph,
                                         absl::FunctionRef<void(const Subgraph&)> placed,
                                         PlacementReport* report = nullptr);

/// Logs, as warnings, which nodes are on a device; many a line, as a log takes few at a time.
void LogPlacement(const Subgraph& subgraph, const std::string& device);

}  // namespace troupe

#endif  // TROUPE_GRAPH_PASSES_STEP_GRAPH_H_

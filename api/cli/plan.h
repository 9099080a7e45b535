// Where the nodes of a graph would run.

#ifndef TROUPE_API_CLI_PLAN_H_
#define TROUPE_API_CLI_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "api/cli/cli.h"
#include "graph/protos/graph.pb.h"

namespace troupe::cli {

/// How a step is placed on devices and cut.
struct StepPlan {
  std::string text;  ///< A table of the nodes, and a line per transfer.
  GraphDef graph;    ///< What each device runs, Sends and Recvs included, for pictures.
};

/// Plans the step that `options` name (feeds, fetches, targets; without fetches and targets all
/// nodes that nobody consumes) for `options.devices`, as a session would. InvalidArgument.
absl::StatusOr<StepPlan> MakePlan(const GraphDef& def, const Options& options);

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_PLAN_H_

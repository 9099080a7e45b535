/// Where the nodes of a graph would run: for the command line.
#ifndef TROUPE_API_INTERNAL_PLAN_H_
#define TROUPE_API_INTERNAL_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/export.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

/// What is to be planned. Without fetches and targets: all nodes that nobody consumes.
struct PlanRequest {
  std::vector<std::string> feeds, fetches, targets;
  /// A number of CPU devices of one process, or complete names between commas.
  std::string devices;
  bool optimize = true;
};

/// How a step is placed on devices and cut.
struct StepPlan {
  std::string text;  ///< A table of the nodes, and a line per transfer.
  GraphDef graph;    ///< What each device runs, Sends and Recvs included, for pictures.
};

/// Plans a step as a session would. InvalidArgument.
TROUPE_EXPORT absl::StatusOr<StepPlan> MakePlan(const GraphDef& def, const PlanRequest& request);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_PLAN_H_

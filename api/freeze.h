/// Freezing: a graph that needs no variables, for whoever only runs it.
#ifndef TROUPE_API_FREEZE_H_
#define TROUPE_API_FREEZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/session.h"
#include "devices/export.h"
#include "graph/protos/graph.pb.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// How a graph is frozen. A value.
struct FreezeOptions {
  /// Variables, by their nodes, that stay variables.
  std::vector<std::string> keep = {};
  /// Devices that nodes ask for are forgotten.
  bool clear_devices = false;
};

/// The part of the session's graph that `outputs` ("node" or "node:port"; nodes for their effect
/// too) need, with the values that variables have in the session as constants: reference variables,
/// resource variables, and those that functions capture. Calls and functional control flow that
/// take variables are lowered to primitive nodes; names of the outputs stay. What else the part
/// holds stays as it is: a table still needs its initializer.
///
/// The session reads variables by nodes of the graph; if none reads one, a node is added. Codes:
/// NotFound: an output that is not there; FailedPrecondition: a variable without a value, a node
/// that writes one, a variable inside a function that no reader can be given; InvalidArgument:
/// functions that call themselves, 2 GB or more.
absl::StatusOr<GraphDef> FreezeGraph(Session& session, const std::vector<std::string>& outputs,
                                     const FreezeOptions& options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_FREEZE_H_

/// What an operator does with a cluster that runs, by way of any of its tasks. The program `troupe`
/// has a command for each.
#ifndef TROUPE_API_ADMINISTRATION_H_
#define TROUPE_API_ADMINISTRATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/session.h"
#include "devices/export.h"
#include "devices/log.h"
#include "net/cluster_spec.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

// `cluster`: its target ("troupe://host:port"), heartbeat timeout and certificates count. All
// return Unavailable if nobody answers there, and are thread-safe.

/// Has a task leave the cluster for good, also one that is dead or cannot be reached: nobody waits
/// for it any more, and its name and address are free for another one that joins. If it lives, it
/// serves nobody any more: its steps end with Unavailable, and `Server::Join` returns. Returns when
/// all members that live have heard of it. OK if it has left before; NotFound: there is no such
/// task; FailedPrecondition: no task would be left.
absl::Status RemoveTask(const SessionOptions& cluster, const TaskId& task);

// What follows asks `task`, or the one at the cluster's target if it is absent. NotFound: the
// cluster has no such task; Unavailable, too: it cannot be reached, or is lost meanwhile.

/// The last lines that a task has logged, from level `least` on and the oldest first: at most
/// `most` of the 1,000 that its process keeps. InvalidArgument: a negative number.
absl::StatusOr<std::vector<std::string>> ReadLog(const SessionOptions& cluster,
                                                 const std::optional<TaskId>& task, LogLevel least,
                                                 int most);

/// How much a trace of a task has.
struct TaskTrace {
  int64_t num_steps = 0;
  bool full = false;  ///< There was no room for the next step: the trace ended early.
};
/// Takes the times of the nodes that a task runs, for steps of any client that begin and end within
/// `duration`, but for those that fail. Each node costs two readings of the clock more meanwhile,
/// and each step the writing of its trace. Returns when the time is over, or sooner if the trace is
/// full. `metadata` gets what traced runs give, without partitions. `duration`: from 0 to ten
/// minutes; `max_bytes`: of the metadata, from 1 to 64 MiB; else InvalidArgument. AlreadyExists:
/// another client traces the task.
absl::StatusOr<TaskTrace> TraceTask(const SessionOptions& cluster,
                                    const std::optional<TaskId>& task, absl::Duration duration,
                                    int64_t max_bytes, RunMetadata* metadata);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_ADMINISTRATION_H_

#include "api/administration.h"

#include <utility>

#include "api/internal/master_link.h"
#include "devices/status_macros.h"
#include "graph/protos/config.pb.h"

namespace troupe {

namespace {

/// For an answer that waits for others'.
ClusterTime Patience(const SessionOptions& cluster) {
  return 2 * absl::ToInt64Microseconds(cluster.heartbeat_timeout);
}

/// A link to a task.
absl::StatusOr<std::unique_ptr<MasterLink>> LinkTo(const SessionOptions& cluster,
                                                   const std::optional<TaskId>& task) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<MasterLink> link, MasterLink::Create(cluster));
  if (!task.has_value()) return link;
  cluster::Message ask, known;
  ask.mutable_get_status();
  TROUPE_RETURN_IF_ERROR(link->CallAndWait(std::move(ask), Patience(cluster), &known));
  for (const cluster::Task& member : known.get_status_reply().tasks()) {
    if (member.left() || member.name() != task->ToString()) continue;
    SessionOptions there = cluster;
    there.target = StrCat("troupe://", member.address());
    return MasterLink::Create(there);
  }
  return absl::NotFoundError(
      StrCat("there is no task ", task->ToString(), " in the cluster of ", cluster.target));
}

}  // namespace

absl::Status RemoveTask(const SessionOptions& cluster, const TaskId& task) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MasterLink> link, MasterLink::Create(cluster));
  cluster::Message leave;
  leave.mutable_leave_cluster()->mutable_task()->set_name(task.ToString());
  return link->CallAndWait(std::move(leave), Patience(cluster), nullptr);
}

absl::StatusOr<std::vector<std::string>> ReadLog(const SessionOptions& cluster,
                                                 const std::optional<TaskId>& task, LogLevel least,
                                                 int most) {
  if (most < 0) return InvalidArgument("a log has no ", most, " lines");
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MasterLink> link, LinkTo(cluster, task));
  cluster::Message ask, reply;
  ask.mutable_get_log()->set_level(static_cast<int>(least));
  ask.mutable_get_log()->set_lines(most);
  TROUPE_RETURN_IF_ERROR(link->CallAndWait(std::move(ask), Patience(cluster), &reply));
  const auto& lines = reply.get_log_reply().lines();
  return std::vector<std::string>(lines.begin(), lines.end());
}

absl::StatusOr<TaskTrace> TraceTask(const SessionOptions& cluster,
                                    const std::optional<TaskId>& task, absl::Duration duration,
                                    int64_t max_bytes, RunMetadata* metadata) {
  if (duration < absl::ZeroDuration() || duration > absl::Minutes(10)) {
    return InvalidArgument("a trace takes up to ten minutes, not ", absl::FormatDuration(duration));
  }
  if (max_bytes < 1 || max_bytes > 64 << 20) {
    return InvalidArgument("a trace has from 1 byte to 64 MiB, not ", max_bytes, " bytes");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MasterLink> link, LinkTo(cluster, task));
  cluster::Message ask, answer;
  const ClusterTime time = absl::ToInt64Microseconds(duration);
  ask.mutable_trace()->set_duration_us(time);
  ask.mutable_trace()->set_max_bytes(max_bytes);
  TROUPE_RETURN_IF_ERROR(link->CallAndWait(std::move(ask), time + Patience(cluster), &answer));
  const cluster::TraceReply& reply = answer.trace_reply();
  if (!metadata->ParseFromString(reply.metadata())) {
    return absl::DataLossError("the trace cannot be read");
  }
  metadata->clear_partition_graphs();
  return TaskTrace{reply.num_steps(), reply.full()};
}

}  // namespace troupe

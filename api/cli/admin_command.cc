#include "api/cli/admin_command.h"

#include <iostream>
#include <optional>

#include "api/administration.h"
#include "api/cli/certificates_command.h"
#include "api/internal/chrome_trace.h"
#include "devices/status_macros.h"
#include "graph/protos/config.pb.h"

namespace troupe::cli {

namespace {

SessionOptions ClusterOf(const AdminOptions& options) {
  SessionOptions cluster;
  cluster.target = options.master;
  options.credentials.CopyTo(kClientFiles, &cluster);
  return cluster;
}

absl::StatusOr<std::optional<TaskId>> TaskOf(const AdminOptions& options) {
  if (options.task.empty()) return std::nullopt;
  TROUPE_ASSIGN_OR_RETURN(TaskId task, TaskId::FromDeviceName(options.task));
  return std::optional<TaskId>(std::move(task));
}

}  // namespace

absl::StatusOr<int> LeaveCommand(const AdminOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const TaskId task, TaskId::FromDeviceName(options.task));
  TROUPE_RETURN_IF_ERROR(RemoveTask(ClusterOf(options), task));
  return 0;
}

absl::StatusOr<int> LogCommand(const AdminOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<TaskId> task, TaskOf(options));
  TROUPE_ASSIGN_OR_RETURN(const LogLevel least, ParseLogLevel(options.level));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                          ReadLog(ClusterOf(options), task, least, options.lines));
  for (const std::string& line : lines) std::cout << line << "\n";
  return 0;
}

absl::StatusOr<int> TracingCommand(const AdminOptions& options) {
  constexpr int64_t kMaxBytes = 16 << 20;
  TROUPE_ASSIGN_OR_RETURN(const std::optional<TaskId> task, TaskOf(options));
  TROUPE_RETURN_IF_ERROR(TryFile("", options.file));
  RunMetadata metadata;
  TROUPE_ASSIGN_OR_RETURN(
      const TaskTrace trace,
      TraceTask(ClusterOf(options), task, absl::Seconds(options.seconds), kMaxBytes, &metadata));
  TROUPE_RETURN_IF_ERROR(WriteFile(options.file, ToChromeTrace(metadata.step_stats())));
  std::cout << "steps: " << trace.num_steps << (trace.full ? "; then the trace was full" : "")
            << "\n";
  return 0;
}

}  // namespace troupe::cli

// The tasks of a cluster as processes of this machine.

#ifndef TROUPE_API_PROGRAM_TASK_PROCESSES_H_
#define TROUPE_API_PROGRAM_TASK_PROCESSES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/termination_signals.h"

namespace troupe {

/// Starts a process for each task of a cluster, and again when it fails. Not thread-safe.
class TaskProcesses {
 public:
  /// The pauses begin anew after a process that lived so long.
  static constexpr absl::Duration kSettled = absl::Seconds(5);
  /// So many processes of a task that end before they serve: there is no use in another one.
  static constexpr int kMaxFailures = 6;

  /// The arguments of a task's process, the program first.
  using Arguments = std::function<std::vector<std::string>(const TaskId& task)>;
  TaskProcesses(const ClusterSpec& cluster, Arguments arguments);

  /// Starts all of them and waits until each serves. Unavailable: one did not within a minute.
  absl::Status Start();
  /// Starts those again that fail, until a signal comes; tells on standard error. The first time at
  /// once, then after pauses that double from 0.2 s to 3.2 s. One that ends with status 0 was told
  /// to, or has left the cluster: it is not started again. Unavailable: one does not come to serve.
  absl::Status Supervise(const TerminationSignals& signals);
  /// Tells all to drain; kills those that have not ended after 15 s. Whether all ended well; the
  /// others are named on standard error.
  bool End();

 private:
  struct Child {
    TaskId task;
    ChildProcess process;
    absl::Time started;
    bool serves = false;                           ///< It has said so.
    bool over = false;                             ///< It has ended, and that is known.
    absl::Time start_at = absl::InfiniteFuture();  ///< When it is started again.
    int failures = 0;                              ///< In a row, for the pauses.
    int in_vain = 0;                               ///< In a row, before it served.
  };
  absl::StatusOr<ChildProcess> StartProcess(const TaskId& task) const;
  absl::Status Look(Child* child) const;
  absl::Status Failed(Child* child, const std::string& how) const;
  absl::Status StartAgain(Child* child) const;

  const std::vector<TaskId> tasks_;
  const Arguments arguments_;
  std::vector<Child> children_;
};

}  // namespace troupe

#endif  // TROUPE_API_PROGRAM_TASK_PROCESSES_H_

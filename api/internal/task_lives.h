/// Whether the tasks of a cluster are still those that a session found.
#ifndef TROUPE_API_INTERNAL_TASK_LIVES_H_
#define TROUPE_API_INTERNAL_TASK_LIVES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/session.h"

namespace troupe {

/// The lives of a cluster's devices at a time. A task that is killed and back between two steps has
/// lost its variables, tables and queues, and a step's error says so in its own way:
/// FailedPrecondition, for instance. A value.
class TaskLives {
 public:
  /// As the session's master sees them now. A session of this process has none.
  static absl::StatusOr<TaskLives> Of(const Session& session);

  /// The error of a step as what it is: Unavailable, if a task has been started again since, or
  /// the master is gone. OutOfRange and DeadlineExceeded stay what they are.
  absl::Status Explain(const Session& session, const absl::Status& status) const;

 private:
  std::map<std::string, uint64_t> incarnations_;  ///< By device.
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_TASK_LIVES_H_

/// The queues of a training, at one moment.
#ifndef TROUPE_API_INTERNAL_HELD_QUEUES_H_
#define TROUPE_API_INTERNAL_HELD_QUEUES_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "api/internal/running_queue_runner.h"
#include "api/internal/training_state.h"
#include "api/session.h"

namespace troupe {

/// Keeps the queue runners of a session from beginning steps, for as long as it lives. Used by the
/// thread that trains, between two steps. Thread-compatible.
class HeldQueues {
 public:
  explicit HeldQueues(Session& session) : session_(session) {}
  ~HeldQueues();
  HeldQueues(const HeldQueues&) = delete;
  HeldQueues& operator=(const HeldQueues&) = delete;

  /// Waits until every step of a runner of the graph's has ended, or stands before its full queue
  /// with what it brings: nothing is on its way then. Tells what those queues hold, the queues that
  /// they are filled from, where the readers are that they read from, the variables with which the
  /// runners' steps count, and what staging areas, staging maps and barriers of the graph hold. Of
  /// a session with a target, all tasks that it has used are asked. DeadlineExceeded names a queue
  /// whose runners did not come to rest; Unimplemented one with elements that cannot be saved;
  /// ResourceExhausted: a task's part is too large for a message; Unavailable: a task is lost. The
  /// error of a runner that has failed.
  absl::Status Save(absl::Duration patience, TrainingState* state);

  /// See `RestoreQueues`.
  absl::Status Restore(TrainingState state);

 private:
  /// Holds the runners of a queue, and waits for them. `*there`: there is such a queue.
  absl::StatusOr<QueueState> Settle(const Node& queue, absl::Time deadline, bool* there);

  Session& session_;
  std::vector<std::shared_ptr<RunningQueueRunner>> held_;
};

/// Makes queues, readers, variables, staging areas, staging maps and barriers of a session, whose
/// runners have not begun, what they were. What does not fit, as the graph or the cluster has
/// changed, is logged and begins anew.
absl::Status RestoreQueues(Session& session, TrainingState state);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_HELD_QUEUES_H_

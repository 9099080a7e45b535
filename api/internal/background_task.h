/// One thing at a time that is done on a thread of its own, while its owner goes on.
#ifndef TROUPE_API_INTERNAL_BACKGROUND_TASK_H_
#define TROUPE_API_INTERNAL_BACKGROUND_TASK_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace troupe {

/// Thread-compatible. The destructor waits for nothing: what is under way owns all that it needs.
class BackgroundTask {
 public:
  /// `patience`: how long the task before is waited for.
  explicit BackgroundTask(absl::Duration patience = absl::Minutes(1)) : patience_(patience) {}

  /// Waits for the task before, gives its error, and begins with this one if there was none.
  absl::Status Begin(std::function<absl::Status()> task);
  /// Waits for the task; its error, if nobody has been told. DeadlineExceeded: it still runs.
  absl::Status Wait();

 private:
  struct State;
  const absl::Duration patience_;
  std::shared_ptr<State> running_;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_BACKGROUND_TASK_H_

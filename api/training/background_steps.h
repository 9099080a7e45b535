/// Steps that run beside others.
#ifndef TROUPE_API_TRAINING_BACKGROUND_STEPS_H_
#define TROUPE_API_TRAINING_BACKGROUND_STEPS_H_

#include <memory>
#include <mutex>
#include <thread>

#include "api/training/recoverable_session.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Runs a node over and over on a thread and in a session of its own, until it is stopped or fails:
/// the chief's part of synchronous training, say. A task that was lost is waited for as
/// `RecoverableSession` does, whose `local_init` is run again then. Thread-safe.
class BackgroundSteps {
 public:
  /// Returns when the first session is ready; errors are its.
  static absl::StatusOr<std::unique_ptr<BackgroundSteps>> Start(std::shared_ptr<Graph> graph,
                                                                RecoverableSessionOptions options,
                                                                Node* step);
  ~BackgroundSteps();

  /// Ends the step that runs. Returns, in bounded time, why it had ended before; OK: it had not.
  absl::Status Stop();
  /// OK while it runs.
  absl::Status status() const;

 private:
  BackgroundSteps(std::unique_ptr<RecoverableSession> session, Node* step);

  std::unique_ptr<RecoverableSession> session_;
  mutable std::mutex mutex_;
  absl::Status status_;
  bool stopping_ = false;
  std::mutex stop_;  ///< One thread stops.
  std::thread thread_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_BACKGROUND_STEPS_H_

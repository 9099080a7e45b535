/// Session managers: sessions whose variables have values.
#ifndef TROUPE_API_TRAINING_SESSION_MANAGER_H_
#define TROUPE_API_TRAINING_SESSION_MANAGER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/session.h"
#include "api/training/saver.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What tells that a model is ready, and makes it so. A value.
struct SessionManagerOptions {
  /// Vectors of names of what is not ready; invalid: nothing is asked.
  Output ready_op, ready_for_local_init_op;
  /// May be nullptr.
  Node* local_init_op = nullptr;
  FeedMap local_init_feeds;
  /// The longest pause between two looks whether what is waited for is there.
  absl::Duration recovery_wait = absl::Seconds(30);
};

/// Where a session's variables come from. A value.
struct RestoreOptions {
  /// nullptr: nothing is restored.
  std::shared_ptr<Saver> saver;
  /// The folder whose latest checkpoint is taken, or a checkpoint by its name: one of them.
  std::string checkpoint_dir, checkpoint_filename;
  /// Wait until there is a checkpoint.
  bool wait_for_checkpoint = false;
  /// For everything together: waiting, restoring, initializing.
  absl::Duration max_wait = absl::Hours(2);
};

/// What gives variables values if nothing was restored. A value.
struct InitOptions {
  Node* init_op = nullptr;
  FeedMap init_feeds;
  std::function<absl::Status(Session& session)> init_fn;
};

/// Makes sessions of a graph for a chief, which initializes or restores the model, and for workers,
/// which wait until that has been done. Everything has a deadline; a session that did not become
/// ready has been closed. Thread-safe.
class SessionManager {
 public:
  SessionManager(std::shared_ptr<Graph> graph, SessionManagerOptions options)
      : graph_(std::move(graph)), options_(std::move(options)) {}

  /// Restores the latest checkpoint, or, if there is none, initializes the model.
  /// FailedPrecondition if it is not ready then, with what is missing; Unavailable if a task was
  /// started again meanwhile; errors of the steps; DeadlineExceeded.
  absl::StatusOr<std::unique_ptr<Session>> PrepareSession(const SessionOptions& session,
                                                          const RestoreOptions& restore,
                                                          const InitOptions& init) const;

  struct Recovered {
    std::unique_ptr<Session> session;
    bool ready = false;  ///< Something was restored, and the model is ready.
  };
  /// Restores the latest checkpoint, if there is one; never initializes the model.
  absl::StatusOr<Recovered> RecoverSession(const SessionOptions& session,
                                           const RestoreOptions& restore) const;

  /// Waits until somebody else has made the model ready; a master that is not there yet is waited
  /// for as well. DeadlineExceeded names what is missing.
  absl::StatusOr<std::unique_ptr<Session>> WaitForSession(
      const SessionOptions& session, absl::Duration max_wait = absl::Hours(2)) const;

 private:
  absl::Status Prepare(Session& session, const RestoreOptions& restore, const InitOptions& init,
                       absl::Time deadline) const;
  /// The checkpoint that was restored, or "".
  absl::StatusOr<std::string> Restore(Session& session, const RestoreOptions& restore,
                                      absl::Time deadline) const;
  /// FailedPrecondition: it was not ready for that.
  absl::Status LocalInit(Session& session, absl::Time deadline) const;
  /// FailedPrecondition names what `ready` gives.
  absl::Status Check(Session& session, const Output& ready, const char* what,
                     absl::Time deadline) const;

  const std::shared_ptr<Graph> graph_;
  const SessionManagerOptions options_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SESSION_MANAGER_H_

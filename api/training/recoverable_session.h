/// Sessions of workers: begun together, and made anew when a task was lost.
#ifndef TROUPE_API_TRAINING_RECOVERABLE_SESSION_H_
#define TROUPE_API_TRAINING_RECOVERABLE_SESSION_H_

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/session.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Waits until `uninitialized` (`ReportUninitializedVariables`) names no variable. DeadlineExceeded
/// names those that are missing; other errors are those of the session.
absl::Status WaitUntilReady(Session& session, const Output& uninitialized, absl::Duration timeout);

/// How a worker's session begins. A value.
struct RecoverableSessionOptions {
  SessionOptions session;
  /// `ReportUninitializedVariables(scope)`.
  Output uninitialized;
  /// The chief's alone: gives variables their values, run whenever some have none.
  Node* init = nullptr;
  /// Run in every new session once all variables have values; may be nullptr.
  Node* local_init = nullptr;
  /// How long a new session waits for variables, and each of the nodes above may take.
  absl::Duration ready_timeout = absl::Minutes(1);
  /// How long steps are tried again after a task was lost.
  absl::Duration recovery_timeout = absl::Minutes(1);
};

/// A session that is replaced by a new one when it fails because a task was lost. One worker, the
/// chief, initializes the variables; the others wait until that is done. Thread-safe.
///
///     auto session = RecoverableSession::Create(s.graph(), {
///         .session = {.target = server->target()},
///         .uninitialized = ReportUninitializedVariables(s),
///         .init = is_chief ? init : nullptr});
///     absl::Status status = (*session)->Run([&](Session& session) {
///       return session.RunTargets({train}, feeds);
///     });
class RecoverableSession {
 public:
  /// Returns when variables are there. Unavailable, DeadlineExceeded: who or what was missing for
  /// the whole of `recovery_timeout`.
  static absl::StatusOr<std::unique_ptr<RecoverableSession>> Create(
      std::shared_ptr<Graph> graph, RecoverableSessionOptions options);
  ~RecoverableSession();

  /// Runs `step`. After Unavailable or Aborted, and after FailedPrecondition if variables have lost
  /// their values, in a new session once more, until `recovery_timeout` has passed since the first
  /// such error; other errors are the result. A step that failed may have had its effect already.
  absl::Status Run(const std::function<absl::Status(Session&)>& step);
  /// Ends what runs with Cancelled; nothing can be run any more. Returns in bounded time.
  void Close();
  /// How many sessions there have been.
  int num_sessions() const;

 private:
  RecoverableSession(std::shared_ptr<Graph> graph, RecoverableSessionOptions options);
  absl::StatusOr<std::shared_ptr<Session>> Current();
  absl::Status Prepare(Session& session);
  bool IsRecoverable(const absl::Status& status, Session* session) const;
  void Drop(const std::shared_ptr<Session>& session);

  const std::shared_ptr<Graph> graph_;
  const RecoverableSessionOptions options_;
  std::mutex making_;  ///< One thread makes a new session.
  mutable std::mutex mutex_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Session> preparing_;
  int num_sessions_ = 0;
  bool closed_ = false;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_RECOVERABLE_SESSION_H_

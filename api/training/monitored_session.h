/// Monitored sessions: steps with hooks around them, which survive the loss of tasks.
#ifndef TROUPE_API_TRAINING_MONITORED_SESSION_H_
#define TROUPE_API_TRAINING_MONITORED_SESSION_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "api/training/session_run_hook.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Scaffold;
class TaskLives;

/// Makes sessions whose variables have values: the first one, and others after a loss.
using SessionCreator = std::function<absl::StatusOr<std::unique_ptr<Session>>()>;
using Hooks = std::vector<std::shared_ptr<SessionRunHook>>;

/// A value.
struct MonitoredSessionOptions {
  /// Whether a session is replaced by a new one that failed with Unavailable or Aborted, as a task
  /// was lost, or in any way after a task was started again.
  bool recover = true;
  /// How long that is tried before the error is the step's.
  absl::Duration recovery_timeout = absl::Minutes(10);
  /// How long `Close` waits for members of the coordinator.
  absl::Duration stop_grace_period = absl::Minutes(2);
  /// Completed once the hooks have begun and before the graph is finalized, for creators that need
  /// it (monitored_training_session.h).
  std::shared_ptr<Scaffold> scaffold = nullptr;
};

/// Runs steps with hooks around them. It starts the queue runners of the graph and finalizes it.
///
///     auto session = MonitoredSession::Create(s.graph(), creator, {
///         std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(10000))});
///     while (!(*session)->should_stop()) {
///       auto values = (*session)->Run(feeds, {loss}, {train});
///       if (!values.ok()) break;
///     }
///     absl::Status status = (*session)->Close();
///
/// Not thread-safe.
class MonitoredSession {
 public:
  /// Calls `Begin` of the hooks, finalizes the graph, and makes the first session. Errors are those
  /// of the hooks and of `creator`.
  static absl::StatusOr<std::unique_ptr<MonitoredSession>> Create(
      std::shared_ptr<Graph> graph, SessionCreator creator, Hooks hooks = {},
      MonitoredSessionOptions options = {});
  /// Closes it.
  ~MonitoredSession();

  /// A step, with what the hooks want beside; gives the fetches. OutOfRange: inputs have come to
  /// their end, so that it should stop. FailedPrecondition: it has been closed, or has failed. If
  /// queue runners failed before, their error is what the step gives.
  absl::StatusOr<std::vector<Tensor>> Run(const FeedMap& feeds, absl::Span<const Output> fetches,
                                          absl::Span<Node* const> targets = {},
                                          const RunOptions& options = {},
                                          RunMetadata* metadata = nullptr);
  /// Several runs as one step, which begins again as a whole: `step` is given the session, whose
  /// runs have no hooks, and `run`, which does what `Run` does.
  using HookedRun = std::function<absl::StatusOr<std::vector<Tensor>>(
      const FeedMap& feeds, absl::Span<const Output> fetches, absl::Span<Node* const> targets)>;
  absl::Status RunStep(
      const std::function<absl::Status(Session& session, const HookedRun& run)>& step);

  /// Whether a hook, a member of the coordinator or the end of the inputs has asked for the end, or
  /// it has failed or was closed. A member that has lost a task is no end: the next step begins
  /// with a new session.
  bool should_stop() const;
  /// `End` of the hooks, unless a step has failed; then the coordinator stops and the session is
  /// closed. The first error of these. Further calls give the same.
  absl::Status Close();

  /// How many sessions there have been.
  int num_sessions() const { return num_sessions_; }
  /// nullptr between the loss of one session and the next step.
  Session* session() const { return session_.get(); }

 private:
  MonitoredSession(std::shared_ptr<Graph> graph, SessionCreator creator, Hooks hooks,
                   MonitoredSessionOptions options);
  absl::Status MakeSession();
  void DropSession();
  absl::StatusOr<std::vector<Tensor>> RunHooked(const SessionRunArgs& args,
                                                absl::Span<Node* const> targets,
                                                RunMetadata* metadata);
  absl::Status Recovering(const std::function<absl::Status()>& step);
  /// Unavailable for an error that follows from a task's restart.
  absl::Status Explain(const absl::Status& status) const;
  /// Why members of the coordinator have stopped, if that is the loss of a task.
  absl::Status LossOfMembers() const;
  absl::Status End();

  const std::shared_ptr<Graph> graph_;
  const SessionCreator creator_;
  const Hooks hooks_;
  const MonitoredSessionOptions options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Session> session_;  ///< Ends before the coordinator.
  std::unique_ptr<TaskLives> lives_;  ///< When the session was made.
  int num_sessions_ = 0;
  bool stop_ = false, failed_ = false, closed_ = false;
  absl::Status end_;  ///< Of `Close`.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_MONITORED_SESSION_H_

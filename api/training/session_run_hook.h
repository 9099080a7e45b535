/// Hooks: what is done around the steps of a monitored session.
#ifndef TROUPE_API_TRAINING_SESSION_RUN_HOOK_H_
#define TROUPE_API_TRAINING_SESSION_RUN_HOOK_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/coordinator.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What a caller, or a hook, wants of a step. A value.
struct SessionRunArgs {
  FeedMap feeds;
  std::vector<Output> fetches;
  /// The shortest of all counts.
  absl::Duration timeout = absl::InfiniteDuration();
  bool trace = false;  ///< If anybody wants it, all get the metadata.
};

/// What a step gave a hook. Lives as long as the call.
struct SessionRunValues {
  absl::Span<const Tensor> results;       ///< Of the hook's own fetches.
  const RunMetadata* metadata = nullptr;  ///< nullptr: the step was not traced.
};

/// A step, as hooks see it. Lives as long as the step.
class SessionRunContext {
 public:
  SessionRunContext(Session& session, const SessionRunArgs& args, absl::Span<Node* const> targets)
      : session_(session), args_(args), targets_(targets) {}

  /// For steps of a hook's own.
  Session& session() const { return session_; }
  /// What the caller wants.
  const SessionRunArgs& original_args() const { return args_; }
  absl::Span<Node* const> original_targets() const { return targets_; }
  /// No more steps after this one: `MonitoredSession::should_stop`.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }

 private:
  Session& session_;
  const SessionRunArgs& args_;
  const absl::Span<Node* const> targets_;
  bool stop_requested_ = false;
};

/// Takes part in every step of a monitored session. Called by the thread that uses the session, in
/// the order in which hooks were given; an error is the error of the step, or of the session's
/// creation or end.
///
/// A step that fails has no `AfterRun`; a session that fails has no `End`. After a task was lost
/// there is a new session, with `AfterCreateSession` of its own, and the step begins again.
class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;

  /// Before the first session: nodes may be added, with a root scope of the graph. Nodes that are
  /// added later are seen by no session.
  virtual absl::Status Begin(const Scope& scope);
  /// The variables have values, queue runners have been started.
  virtual absl::Status AfterCreateSession(Session& session, Coordinator& coordinator);
  /// What is to be fetched and fed with this step.
  virtual absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context);
  virtual absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values);
  /// The last call: the session ends, as all steps that were wanted have been run.
  virtual absl::Status End(Session& session);
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_SESSION_RUN_HOOK_H_

#include "api/training/session_manager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "api/internal/task_lives.h"
#include "api/internal/training_state_listener.h"
#include "api/training/checkpoint_files.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

/// Longest list of names in a message.
constexpr int64_t kMostNames = 10;

/// Pauses that begin short, as what is waited for is often there at once, and become long.
class Pauses {
 public:
  Pauses(absl::Duration longest, absl::Time deadline) : longest_(longest), deadline_(deadline) {}
  /// False: the deadline has passed.
  bool Wait() {
    const absl::Duration left = deadline_ - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    absl::SleepFor(std::min({next_, longest_, left}));
    next_ = 2 * next_;
    return true;
  }

 private:
  const absl::Duration longest_;
  const absl::Time deadline_;
  absl::Duration next_ = absl::Milliseconds(50);
};

RunOptions Until(absl::Time deadline) {
  return {.timeout = std::max(deadline - absl::Now(), absl::ZeroDuration())};
}

/// For a session that is to be there by `deadline`.
SessionOptions CreatedBy(absl::Time deadline, SessionOptions options) {
  options.creation_timeout = std::min(options.creation_timeout, deadline - absl::Now());
  return options;
}

absl::Status NotReady(absl::Status status, const char* what) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return WithContext(StrCat(what, " did not make the model ready: "), status);
}

}  // namespace

absl::Status SessionManager::Check(Session& session, const Output& ready, const char* what,
                                   absl::Time deadline) const {
  if (!ready.valid()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                          session.Run(FeedMap{}, {ready}, {}, Until(deadline)));
  const int64_t missing = values[0].num_elements();
  if (missing == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const auto names, values[0].values<std::string>());
  return absl::FailedPreconditionError(
      StrCat(what, ": ", absl::StrJoin(names.subspan(0, kMostNames), ", "),
             missing > kMostNames ? StrCat(" and ", missing - kMostNames, " more") : ""));
}

absl::Status SessionManager::LocalInit(Session& session, absl::Time deadline) const {
  if (options_.local_init_op == nullptr) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(Check(session, options_.ready_for_local_init_op,
                               "not ready for the local initialization", deadline));
  return session.Run(options_.local_init_feeds, {}, {options_.local_init_op}, Until(deadline))
      .status();
}

absl::StatusOr<std::string> SessionManager::Restore(Session& session, const RestoreOptions& restore,
                                                    absl::Time deadline) const {
  if (!restore.checkpoint_dir.empty() && !restore.checkpoint_filename.empty()) {
    return InvalidArgument("a session is restored from a folder, '", restore.checkpoint_dir,
                           "', or from a checkpoint, '", restore.checkpoint_filename,
                           "', not from both");
  }
  if (restore.saver == nullptr) return "";
  if (!restore.checkpoint_filename.empty()) {
    TROUPE_RETURN_IF_ERROR(
        restore.saver->Restore(session, restore.checkpoint_filename, Until(deadline)));
    return restore.checkpoint_filename;
  }
  if (restore.checkpoint_dir.empty()) return "";
  Pauses pauses(options_.recovery_wait, deadline);
  while (true) {
    const auto state = GetCheckpointState(restore.checkpoint_dir);
    if (state.ok() && !state->latest.empty()) {
      TROUPE_RETURN_IF_ERROR(restore.saver->Restore(session, state->latest, Until(deadline)));
      TROUPE_RETURN_IF_ERROR(restore.saver->recover_last_checkpoints(state->all));
      return state->latest;
    }
    if (!state.ok() && !absl::IsNotFound(state.status())) return state.status();
    if (!restore.wait_for_checkpoint) return "";
    if (!pauses.Wait()) {
      return absl::DeadlineExceededError(StrCat("there is no checkpoint in ",
                                                restore.checkpoint_dir, " after ",
                                                absl::FormatDuration(restore.max_wait)));
    }
  }
}

absl::StatusOr<std::unique_ptr<Session>> SessionManager::PrepareSession(
    const SessionOptions& options, const RestoreOptions& restore, const InitOptions& init) const {
  const absl::Time deadline = absl::Now() + restore.max_wait;
  TROUPE_ASSIGN_OR_RETURN(auto session, Session::Create(graph_, CreatedBy(deadline, options)));
  TROUPE_ASSIGN_OR_RETURN(const TaskLives lives, TaskLives::Of(*session));
  const absl::Status status = Prepare(*session, restore, init, deadline);
  if (!status.ok()) return lives.Explain(*session, status);
  return session;
}

absl::Status SessionManager::Prepare(Session& session, const RestoreOptions& restore,
                                     const InitOptions& init, absl::Time deadline) const {
  TROUPE_ASSIGN_OR_RETURN(const std::string checkpoint, Restore(session, restore, deadline));
  const bool restored = !checkpoint.empty();
  if (!restored) {
    if (init.init_op == nullptr && init.init_fn == nullptr && options_.local_init_op == nullptr) {
      return absl::FailedPreconditionError(
          "there is no checkpoint, and neither init_op, init_fn nor local_init_op was given");
    }
    if (init.init_op != nullptr) {
      TROUPE_RETURN_IF_ERROR(
          session.Run(init.init_feeds, {}, {init.init_op}, Until(deadline)).status());
    }
    if (init.init_fn != nullptr) {
      TROUPE_RETURN_IF_ERROR(CatchExceptions([&] { return init.init_fn(session); }));
    }
  }
  const char* const what = restored ? "the checkpoint" : "the initialization";
  TROUPE_RETURN_IF_ERROR(NotReady(LocalInit(session, deadline), what));
  // What the local initialization has drawn, counted and put into queues is not the training's.
  if (restored) TROUPE_RETURN_IF_ERROR(RestoreTrainingState(session, checkpoint));
  return NotReady(Check(session, options_.ready_op, "not ready", deadline), what);
}

absl::StatusOr<SessionManager::Recovered> SessionManager::RecoverSession(
    const SessionOptions& options, const RestoreOptions& restore) const {
  const absl::Time deadline = absl::Now() + restore.max_wait;
  Recovered recovered;
  TROUPE_ASSIGN_OR_RETURN(recovered.session, Session::Create(graph_, CreatedBy(deadline, options)));
  TROUPE_ASSIGN_OR_RETURN(const std::string checkpoint,
                          Restore(*recovered.session, restore, deadline));
  const bool restored = !checkpoint.empty();
  absl::Status ready = LocalInit(*recovered.session, deadline);
  if (restored && ready.ok()) {
    TROUPE_RETURN_IF_ERROR(RestoreTrainingState(*recovered.session, checkpoint));
    ready = Check(*recovered.session, options_.ready_op, "not ready", deadline);
  }
  if (!ready.ok() && !absl::IsFailedPrecondition(ready)) return ready;
  if (!ready.ok() && restored) {
    WriteLog(LogLevel::kInfo, "", {"session not ready"}, std::string(ready.message()));
  }
  recovered.ready = restored && ready.ok();
  return recovered;
}

absl::StatusOr<std::unique_ptr<Session>> SessionManager::WaitForSession(
    const SessionOptions& options, absl::Duration max_wait) const {
  const absl::Time deadline = absl::Now() + max_wait;
  Pauses pauses(options_.recovery_wait, deadline);
  std::string missing;
  do {
    auto session = Session::Create(graph_, CreatedBy(deadline, options));
    absl::Status status = session.status();
    if (status.ok()) status = LocalInit(**session, deadline);
    if (status.ok()) status = Check(**session, options_.ready_op, "not ready", deadline);
    if (status.ok()) return session;
    const bool late = absl::IsDeadlineExceeded(status) && absl::Now() >= deadline;
    const bool may_come = absl::IsFailedPrecondition(status) || absl::IsUnavailable(status) ||
                          absl::IsAborted(status);
    if (!may_come && !late) return status;
    if (missing.empty()) {
      WriteLog(LogLevel::kInfo, "", {"waits for the model"}, std::string(status.message()));
    }
    if (!late || missing.empty()) missing = std::string(status.message());
  } while (pauses.Wait());
  return absl::DeadlineExceededError(
      StrCat("the session was not ready after ", absl::FormatDuration(max_wait), ": ", missing));
}

}  // namespace troupe

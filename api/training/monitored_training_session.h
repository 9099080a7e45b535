/// Sessions for training: variables are initialized or restored, saved, and shown.
#ifndef TROUPE_API_TRAINING_MONITORED_TRAINING_SESSION_H_
#define TROUPE_API_TRAINING_MONITORED_TRAINING_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/session.h"
#include "api/training/basic_hooks.h"
#include "api/training/monitored_session.h"
#include "api/training/scaffold.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Makes a chief's sessions: restored from the latest checkpoint, or initialized. A value.
struct ChiefSessionCreator {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Scaffold> scaffold;
  SessionOptions session = {};  ///< `target` is the master.
  /// The folder whose latest checkpoint is restored, or a checkpoint by its name.
  std::string checkpoint_dir = {}, checkpoint_filename = {};
  /// For everything together.
  absl::Duration max_wait = absl::Hours(2);

  absl::StatusOr<std::unique_ptr<Session>> operator()() const;
};

/// Makes a worker's sessions: waits until the chief has made the model ready. A value.
struct WorkerSessionCreator {
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Scaffold> scaffold;
  SessionOptions session = {};
  absl::Duration max_wait = absl::Minutes(30);

  absl::StatusOr<std::unique_ptr<Session>> operator()() const;
};

/// TensorFlow's arguments of `MonitoredTrainingSession`. A value.
struct MonitoredTrainingOptions {
  /// TensorFlow's `master` and `config`: `session.target` is the master.
  SessionOptions session = {};
  /// One worker initializes, restores, saves and writes summaries; the others wait for it.
  bool is_chief = true;
  /// "": nothing is restored or saved.
  std::string checkpoint_dir = {};
  /// nullptr: one with all defaults.
  std::shared_ptr<Scaffold> scaffold = {};
  Hooks hooks = {};
  /// Before `hooks`, in the chief only.
  Hooks chief_only_hooks = {};
  /// TensorFlow's `save_checkpoint_secs`, `save_checkpoint_steps`; {}: no checkpoints.
  HookInterval save_checkpoints = {.time = absl::Minutes(10)};
  /// The training goes on while a checkpoint is written (`AsyncCheckpointer`). A saver or scaffold
  /// that is given must be made for it: `SaverOptions::asynchronous`,
  /// `ScaffoldOptions::asynchronous_saver`; else FailedPrecondition.
  bool asynchronous_checkpoints = false;
  /// `save_summaries_steps`, `save_summaries_secs`; {}: no summaries.
  HookInterval save_summaries = {.steps = 100};
  absl::Duration stop_grace_period = absl::Minutes(2);
  /// Steps a second are logged, and written as a summary, every so many steps; 0: never.
  int64_t log_step_count_steps = 100;
  /// How long a chief's session may take to become ready, and a worker waits for it.
  absl::Duration max_wait = absl::Hours(2);
  /// Where summaries are written; "": the folder of the checkpoints, if there is one.
  std::string summary_dir = {};
  /// How long a lost task is waited for.
  absl::Duration recovery_timeout = absl::Minutes(10);
};

/// A session for training, with TensorFlow's hooks: after a crash the program is begun again and
/// goes on from the last checkpoint; when a task is lost, a new session does.
///
///     auto session = MonitoredTrainingSession(s.graph(), {
///         .checkpoint_dir = "/tmp/run",
///         .hooks = {std::make_shared<StopAtStepHook>(StopAtStepHook::LastStep(10000))}});
///     while (session.ok() && !(*session)->should_stop()) {
///       if (!(*session)->Run({}, {}, {train}).ok()) break;
///     }
///     absl::Status status = (*session)->Close();
absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(
    std::shared_ptr<Graph> graph, MonitoredTrainingOptions options = {});

/// TensorFlow's arguments of `SingularMonitoredSession`. A value.
struct SingularMonitoredOptions {
  Hooks hooks = {};
  std::shared_ptr<Scaffold> scaffold = {};
  SessionOptions session = {};
  std::string checkpoint_dir = {}, checkpoint_filename = {};
  absl::Duration stop_grace_period = absl::Minutes(2);
};

/// A session that is not made anew when a task is lost: the error is the step's.
absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(
    std::shared_ptr<Graph> graph, SingularMonitoredOptions options = {});

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_MONITORED_TRAINING_SESSION_H_

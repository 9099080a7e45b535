/// A hook that saves checkpoints.
#ifndef TROUPE_API_TRAINING_CHECKPOINT_SAVER_HOOK_H_
#define TROUPE_API_TRAINING_CHECKPOINT_SAVER_HOOK_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/training/async_checkpointer.h"
#include "api/training/basic_hooks.h"
#include "api/training/saver.h"
#include "api/training/session_run_hook.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Takes part in every save of a `CheckpointSaverHook`; an error is the error of the step. Called
/// by the thread that uses the session.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;

  /// Before the first session: nodes may be added.
  virtual absl::Status Begin(const Scope&) { return absl::OkStatus(); }
  virtual absl::Status BeforeSave(Session&, int64_t /*global_step*/) { return absl::OkStatus(); }
  /// The checkpoint is complete; true: the training shall stop (not asked of the first one, before
  /// any step).
  virtual absl::StatusOr<bool> AfterSave(Session&, int64_t /*global_step*/) { return false; }
  virtual absl::Status End(Session&, int64_t /*global_step*/) { return absl::OkStatus(); }
};

/// A value.
struct CheckpointSaverOptions {
  /// Saves every so many global steps, or so often.
  HookInterval interval = {.steps = 0, .time = absl::Minutes(10)};
  /// nullptr: the saver of the graph (`Saver::OfGraph`), which is made if there is none.
  std::shared_ptr<Saver> saver;
  /// Asked for the saver, in place of the above, when a session has been made: a scaffold's is made
  /// after hooks have begun.
  std::function<std::shared_ptr<Saver>()> find_saver;
  /// Checkpoints are FOLDER/`basename`-STEP.
  std::string basename = "model.ckpt";
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners;
  /// Writes the graph as FOLDER/graph.pbtxt, and MetaGraphs beside checkpoints.
  bool save_graph_def = true;
  /// Of every save.
  SaveOptions save;
  /// The training goes on while a checkpoint is written; `AfterSave` comes with a later step then,
  /// or at the end. The saver must be asynchronous; the one that is made is.
  bool asynchronous = false;
  /// Of asynchronous saves. Listeners are not told of one that is skipped.
  AsyncCheckpointerOptions::WhenBusy when_busy = AsyncCheckpointerOptions::WhenBusy::kWait;
  HookClock now = absl::Now;
};

/// Saves when a session has been made, then every so often, and at the end unless the last step has
/// been saved; TensorFlow 1.x's `tf.train.CheckpointSaverHook`.
class CheckpointSaverHook final : public SessionRunHook {
 public:
  explicit CheckpointSaverHook(std::string folder, CheckpointSaverOptions options = {});
  ~CheckpointSaverHook() override;

  absl::Status Begin(const Scope& scope) override;
  absl::Status AfterCreateSession(Session& session, Coordinator&) override;
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override;
  absl::Status AfterRun(SessionRunContext& context, const SessionRunValues& values) override;
  absl::Status End(Session& session) override;

  /// After `Begin`.
  const std::shared_ptr<Saver>& saver() const { return options_.saver; }

 private:
  void MakeCheckpointer();
  absl::Status Save(Session& session, int64_t step);
  /// Tells listeners of asynchronous saves that are complete.
  absl::Status Deliver(Session& session);
  absl::Status AfterSave(Session& session, int64_t step);

  const std::string folder_;
  CheckpointSaverOptions options_;
  HookTimer timer_;
  Output step_;
  bool stop_ = false;        ///< A listener wants it.
  int64_t last_saved_ = -1;  ///< The step of the last save that was begun.
  std::mutex mutex_;
  std::vector<bool> written_;   ///< Whether saves went well, of those not delivered; guarded.
  std::vector<int64_t> begun_;  ///< Their steps, and that of the one under way.
  std::unique_ptr<AsyncCheckpointer> checkpointer_;  ///< Ends first.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_CHECKPOINT_SAVER_HOOK_H_

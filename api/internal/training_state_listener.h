/// Keeps the state of kernels beside checkpoints.
#ifndef TROUPE_API_INTERNAL_TRAINING_STATE_LISTENER_H_
#define TROUPE_API_INTERNAL_TRAINING_STATE_LISTENER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "api/session.h"
#include "api/summary.h"
#include "api/training/checkpoint_saver_hook.h"

namespace troupe {

/// Before each checkpoint writes the file of `training_state.h` and flushes the event file: a
/// checkpoint that is there has its state and its curve. Afterwards removes the states of
/// checkpoints that are gone, and says in the event file that there is a checkpoint.
class TrainingStateListener final : public CheckpointSaverListener {
 public:
  /// Checkpoints are `path`-STEP. `writer` may be nullptr.
  TrainingStateListener(std::string path, std::shared_ptr<SummaryWriter> writer);

  absl::Status BeforeSave(Session& session, int64_t global_step) override;
  absl::StatusOr<bool> AfterSave(Session& session, int64_t global_step) override;

 private:
  std::string Prefix(int64_t global_step) const;

  const std::string path_;
  const std::shared_ptr<SummaryWriter> writer_;
  absl::Duration patience_ = absl::Seconds(5);  ///< With the steps of queue runners.
  std::set<int64_t> pending_;  ///< Saves that have begun and are not known to be complete.
};

/// Has a session that was restored from the checkpoint `prefix` go on where it was. OK if nothing
/// is known of that, as after a checkpoint of TensorFlow's. DataLoss: the file is damaged.
absl::Status RestoreTrainingState(Session& session, const std::string& prefix);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_TRAINING_STATE_LISTENER_H_

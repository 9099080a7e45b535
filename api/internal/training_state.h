/// The file beside a checkpoint with what TensorFlow's format has no room for.
#ifndef TROUPE_API_INTERNAL_TRAINING_STATE_H_
#define TROUPE_API_INTERNAL_TRAINING_STATE_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel_state.h"

namespace troupe {

struct TrainingState {
  int64_t global_step = 0;
  KernelStates kernels;
};

/// PREFIX.troupe-state: a record file (docs/formats.md) of one record, a TrainingStateDef.
/// TensorFlow takes no notice of it.
std::string TrainingStatePath(const std::string& prefix);

/// Written aside, synced and renamed, as all of a checkpoint is.
absl::Status WriteTrainingState(const std::string& prefix, const TrainingState& state);

/// NotFound: there is none. DataLoss, with the file's name: it was torn or altered.
absl::StatusOr<TrainingState> ReadTrainingState(const std::string& prefix);

/// Removes those in a folder whose checkpoints are not there, but for `kept`, which are paths.
absl::Status RemoveOrphanedStates(const std::string& directory, const std::set<std::string>& kept);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_TRAINING_STATE_H_

/// The file beside a checkpoint with what TensorFlow's format has no room for.
#ifndef TROUPE_API_INTERNAL_TRAINING_STATE_H_
#define TROUPE_API_INTERNAL_TRAINING_STATE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/state/resource_state.h"
#include "kernels/kernel_state.h"
#include "kernels/queues/queue.h"

namespace troupe {

struct TrainingState {
  int64_t global_step = 0;
  KernelStates kernels;
  // By the node's name:
  std::map<std::string, QueueState> queues;
  std::map<std::string, Tensor> variables;     ///< With which queue runners count.
  std::map<std::string, std::string> readers;  ///< From which queue runners read: `ReaderState`s.
  /// Staging areas and maps, and barriers.
  std::vector<KeptResource> resources;
};

/// PREFIX.troupe-state: a record file (docs/formats.md), of which TensorFlow takes no notice.
std::string TrainingStatePath(const std::string& prefix);

/// Written aside, synced and renamed, as all of a checkpoint is. Memory does not grow by the size
/// of queues and of large states of kernels. ResourceExhausted: an element takes 2 GiB or more.
absl::Status WriteTrainingState(const std::string& prefix, const TrainingState& state);

/// NotFound: there is none. DataLoss, with the file's name, and that of the queue or variable: it
/// was torn or altered. Memory grows with what is there, not with what the file claims.
absl::StatusOr<TrainingState> ReadTrainingState(const std::string& prefix);

/// Removes those in a folder whose checkpoints are not there, but for `kept`, which are names in
/// the folder. One that cannot be removed is logged.
absl::Status RemoveOrphanedStates(const std::string& directory, const std::set<std::string>& kept);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_TRAINING_STATE_H_

/// Checkpoints as files: which there are, what is in them. Names are prefixes, as `Saver::Save`
/// gives them; what is said of a prefix goes for both formats. Thread-safe.
#ifndef TROUPE_API_TRAINING_CHECKPOINT_FILES_H_
#define TROUPE_API_TRAINING_CHECKPOINT_FILES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "devices/export.h"
#include "devices/storage/checkpoint_state.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What the state file of a folder says; prefixes in it are as a program opens them. NotFound
/// without such a file; DataLoss, with file and line, if it is damaged.
absl::StatusOr<CheckpointHistory> GetCheckpointState(
    const std::string& directory,
    const std::string& latest_filename = std::string(kCheckpointStateFile));

/// Replaces the state file of a folder. `history.latest` is added to `history.all` if it is not the
/// last one there. InvalidArgument if the file's name has a path, or is that of the checkpoint.
absl::Status UpdateCheckpointState(const std::string& directory, CheckpointHistory history,
                                   const CheckpointStateOptions& options = {});

/// The prefix of the latest checkpoint in a folder. NotFound: the folder has no state file, hence
/// no checkpoint. DataLoss: the file is damaged, or the checkpoint that it names is not there;
/// training that begins anew then would overwrite what can still be saved.
absl::StatusOr<std::string> LatestCheckpoint(
    const std::string& directory,
    const std::string& latest_filename = std::string(kCheckpointStateFile));

/// Whether there is a checkpoint; an error if that cannot be told. Its contents are not looked at.
absl::StatusOr<bool> CheckpointExists(const std::string& prefix);

/// When a checkpoint was written, by the file system's clock. NotFound.
absl::StatusOr<absl::Time> CheckpointTime(const std::string& prefix);

/// Removes the files of a checkpoint, the MetaGraph beside it first. Files that are not there are
/// no error.
absl::Status RemoveCheckpoint(const std::string& prefix,
                              std::string_view meta_graph_suffix = "meta");

/// Where the MetaGraph of a checkpoint is: "model-7.meta", also for "model-7-?????-of-00003".
std::string MetaGraphFile(std::string_view prefix, std::string_view suffix = "meta");

/// A tensor of a checkpoint. A value.
struct CheckpointVariable {
  std::string name;
  ElementType type = ElementType::kInvalid;
  Shape shape;  ///< Of the whole, also if it was saved in parts.
  /// In checkpoints of TensorFlow 2's `tf.train.Checkpoint`, whose names are places among objects
  /// ("model/w/.ATTRIBUTES/VARIABLE_VALUE"): the variable's own name ("dense/kernel"), else "".
  std::string full_name = "";
};

/// All tensors of a checkpoint, sorted by name. A folder stands for its latest checkpoint.
absl::StatusOr<std::vector<CheckpointVariable>> ListVariables(const std::string& checkpoint);

/// A tensor of a checkpoint, by its name or full name, put together if it was saved in parts. A
/// folder stands for its latest checkpoint. NotFound, DataLoss: with names of tensor and file.
/// InvalidArgument: it is the full name of several.
absl::StatusOr<Tensor> LoadVariable(const std::string& checkpoint, std::string_view name);

/// `checkpoint` itself, or the latest one if it is a folder.
absl::StatusOr<std::string> FindCheckpoint(const std::string& checkpoint);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_CHECKPOINT_FILES_H_

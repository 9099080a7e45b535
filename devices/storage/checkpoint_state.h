/// The file "checkpoint" beside checkpoints: which is the latest, and which are kept. It is a text
/// message, CheckpointState, as TensorFlow writes it (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_CHECKPOINT_STATE_H_
#define TROUPE_DEVICES_STORAGE_CHECKPOINT_STATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/storage/file_system.h"
#include "devices/storage/whole_file.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

inline constexpr std::string_view kCheckpointStateFile = "checkpoint";

/// Prefixes are as a program opens them: not relative to the folder of the file.
struct CheckpointHistory {
  std::string latest;
  std::vector<std::string> all;    ///< oldest first; `latest` is added at the end if it is missing
  std::vector<double> timestamps;  ///< of `all`, seconds since 1970; empty if not known
  double last_preserved = 0;       ///< when a checkpoint was last kept for good; 0 if never
};

struct CheckpointStateOptions {
  /// Absolute prefixes in the folder are written without its path, so that it can be moved. Those
  /// that are not absolute are always written as they are seen from the folder.
  bool relative_paths = false;
  std::string file_name = std::string(kCheckpointStateFile);
  ReplaceOptions replace;
};

/// Replaces the file in `directory` atomically. InvalidArgument unless there are as many timestamps
/// as checkpoints, or none.
absl::Status WriteCheckpointState(FileSystem* file_system, const std::string& directory,
                                  CheckpointHistory history,
                                  const CheckpointStateOptions& options = {});

/// Relative prefixes in the file get the folder's path. NotFound without such a file; DataLoss,
/// which names file and line, if it is damaged. Whether the checkpoints exist is not checked.
absl::StatusOr<CheckpointHistory> ReadCheckpointState(
    FileSystem* file_system, const std::string& directory,
    const std::string& file_name = std::string(kCheckpointStateFile));

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_CHECKPOINT_STATE_H_

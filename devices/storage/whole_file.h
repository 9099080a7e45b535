/// Files read and replaced as a whole, and files found by a pattern.
#ifndef TROUPE_DEVICES_STORAGE_WHOLE_FILE_H_
#define TROUPE_DEVICES_STORAGE_WHOLE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/storage/file_system.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// How a file is replaced.
struct ReplaceOptions {
  /// The new file survives a power cut once the call has returned. Without it, a power cut may
  /// leave neither the old file nor the new one.
  bool sync = true;
  /// End of the temporary name. Two that write one file at the same time need different ones; empty
  /// stands for one that no other call uses, in this process or elsewhere.
  std::string temporary_suffix;
};

/// `path`.tempstate`suffix`, the name of a file that is being written; see
/// `ReplaceOptions::temporary_suffix`.
std::string TemporaryName(std::string_view path, std::string_view suffix);

/// ResourceExhausted if there are more than `max_bytes`.
absl::StatusOr<std::string> ReadWholeFile(FileSystem* file_system, const std::string& path,
                                          size_t max_bytes = size_t{1} << 30);

/// Writes a file aside in the same folder, syncs it, renames it and syncs the folder: whoever looks
/// sees the old contents or all of the new ones, even after a power cut at any moment. After an
/// error the old file is there unless the error came from the folder's sync.
absl::Status ReplaceFile(FileSystem* file_system, const std::string& path,
                         std::string_view contents, const ReplaceOptions& options = {});

/// `CreateDirectories`, and each folder that was not there survives a power cut if `sync`.
absl::Status CreateDirectoriesSynced(FileSystem* file_system, const std::string& directory,
                                     bool sync);

/// Paths that match a pattern, sorted. `*`, `?` and `[...]` stand for characters of one name, not
/// for slashes; a backslash takes the next character as it is. A folder that is not there has no
/// names.
absl::StatusOr<std::vector<std::string>> MatchFiles(FileSystem* file_system,
                                                    const std::string& pattern);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_WHOLE_FILE_H_

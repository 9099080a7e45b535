/// Which file system a path belongs to, by its scheme.
#ifndef TROUPE_DEVICES_STORAGE_FILE_SYSTEM_REGISTRY_H_
#define TROUPE_DEVICES_STORAGE_FILE_SYSTEM_REGISTRY_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/storage/file_system.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// File systems by scheme. A path without a scheme, and `file://`, is the local one's. Thread-safe.
class FileSystemRegistry {
 public:
  /// Holds the local file system.
  FileSystemRegistry();

  /// Paths that begin with `scheme://` are `file_system`'s. AlreadyExists if the scheme is taken.
  absl::Status Register(std::string_view scheme, std::unique_ptr<FileSystem> file_system);

  /// Unimplemented, with the schemes that there are, if nobody has registered this one. The result
  /// lives as long as the registry.
  absl::StatusOr<FileSystem*> Find(std::string_view path) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<FileSystem>, std::less<>> file_systems_;
};

/// The process's registry. Libraries that are loaded register here:
///
///     FileSystems().Register("s3", std::make_unique<S3FileSystem>());
FileSystemRegistry& FileSystems();

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_FILE_SYSTEM_REGISTRY_H_

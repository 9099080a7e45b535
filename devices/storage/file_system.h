/// Where files are kept: an interface, so that a library can add an object store, and a test a disk
/// that fails.
///
/// A path may begin with `scheme://`; the scheme says whose it is (file_system_registry.h). A file
/// system gets paths as they were given, scheme included.
///
/// Errors have the codes that `absl::ErrnoToStatus` gives and name the file: NotFound,
/// PermissionDenied, FailedPrecondition (a read-only disk, a folder where a file should be),
/// ResourceExhausted (a full disk).
#ifndef TROUPE_DEVICES_STORAGE_FILE_SYSTEM_H_
#define TROUPE_DEVICES_STORAGE_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A file that is read at any place. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;

  /// Reads `to.size()` bytes from `offset` on; fewer only where the file ends. The number read.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, absl::Span<char> to) const = 0;

  /// Bytes that the file has now.
  virtual absl::StatusOr<uint64_t> Size() const = 0;
};

/// A file that is written from its beginning to its end. The destructor closes it and can report no
/// error. After an error nothing is known about what the file holds. Thread-compatible.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  /// May keep the bytes in memory until `Flush`, `Sync` or `Close`.
  virtual absl::Status Append(std::string_view bytes) = 0;
  /// Readers see what was appended. It is not safe from a power cut.
  virtual absl::Status Flush() = 0;
  /// What was appended survives a power cut, if the file's name does (`SyncDirectory`).
  virtual absl::Status Sync() = 0;
  /// Flushes. Nothing but the destructor is called afterwards.
  virtual absl::Status Close() = 0;
};

/// What is known about a file without opening it.
struct FileStat {
  uint64_t size = 0;  ///< in bytes; 0 for a folder
  bool is_directory = false;
  int64_t modified_ns = 0;  ///< since 1970, by the file system's clock
};

/// Files under names in folders. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenForReading(
      const std::string& path) = 0;
  /// An empty file under this name, in place of one that there was.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;

  virtual absl::StatusOr<FileStat> Stat(const std::string& path) = 0;
  /// OK or NotFound; any other error if that cannot be told.
  virtual absl::Status Exists(const std::string& path) { return Stat(path).status(); }
  /// Whether two paths name the same file, however they are spelled. It need not be there. False
  /// where that cannot be told.
  virtual bool IsSameFile(const std::string& a, const std::string& b);
  /// Names in a folder, without the folder's own path, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;

  /// With its parents. OK if it is there already.
  virtual absl::Status CreateDirectories(const std::string& directory) = 0;
  /// A file.
  virtual absl::Status Remove(const std::string& path) = 0;
  /// A folder. FailedPrecondition or AlreadyExists if it is not empty.
  virtual absl::Status RemoveDirectory(const std::string& directory) = 0;
  /// Whoever looks sees either the old file under the name `to` or all of the new one, even after
  /// a power cut. Both names are in this file system.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  /// The same, but AlreadyExists if there is a file `to`. Unless it is overridden, a file that
  /// appears meanwhile is replaced.
  virtual absl::Status RenameNew(const std::string& from, const std::string& to);
  /// Names that were created, renamed or removed in the folder stay so after a power cut.
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
};

/// Fills `to`. DataLoss, which names `path` and the offset, if the file ends before.
absl::Status ReadExactly(const RandomAccessFile& file, const std::string& path, uint64_t offset,
                         absl::Span<char> to);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_FILE_SYSTEM_H_

/// Writes files of records: TensorFlow's TFRecord format, plain or compressed (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_RECORD_WRITER_H_
#define TROUPE_DEVICES_STORAGE_RECORD_WRITER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/storage/file_system.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// How a file as a whole is compressed. `kAny` is for readers of records: they find it out by the
/// first bytes.
enum class FileCompression : uint8_t { kNone, kZlib, kGzip, kAny };

/// "", "NONE", "ZLIB" or "GZIP", as TensorFlow's ops name them. InvalidArgument for another name.
absl::StatusOr<FileCompression> ParseFileCompression(std::string_view name);

struct RecordWriterOptions {
  FileCompression compression = FileCompression::kNone;
  int level = -1;  ///< zlib's, 0 to 9; -1 is its default, 6
};

/// One file, from its beginning. Memory is that of buffers. After an error, nothing is known about
/// the last records. Thread-compatible.
class RecordWriter {
 public:
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(
      FileSystem* file_system, const std::string& path, const RecordWriterOptions& options = {});
  /// In the file system that the path names.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(
      const std::string& path, const RecordWriterOptions& options = {});

  absl::Status Write(std::string_view record);
  /// Readers see all records so far. It makes a compressed file larger.
  absl::Status Flush();
  /// They survive a power cut, too, if the file's name does.
  absl::Status Sync();
  /// Completes the file. Without it, the end of a compressed one is missing.
  absl::Status Close();

 private:
  explicit RecordWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<WritableFile> file_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_RECORD_WRITER_H_

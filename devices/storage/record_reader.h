/// Reads files of records: TensorFlow's TFRecord format, plain or compressed (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_RECORD_READER_H_
#define TROUPE_DEVICES_STORAGE_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/storage/file_system.h"
#include "devices/storage/record_writer.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class ByteSource;

struct RecordReaderOptions {
  FileCompression compression = FileCompression::kNone;
  /// Where the first record begins, in bytes; only for files that are not compressed.
  uint64_t offset = 0;
  /// Longer records are refused.
  uint64_t max_record_bytes = uint64_t{1} << 31;
};

/// One file, from its beginning. Checksums are verified, and memory grows with what is there, not
/// with what a length claims. Thread-compatible.
class RecordReader {
 public:
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      FileSystem* file_system, const std::string& path, const RecordReaderOptions& options = {});
  /// In the file system that the path names.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      const std::string& path, const RecordReaderOptions& options = {});
  ~RecordReader();

  /// The next record; false, and nothing in `record`, at the end of the file.
  /// DataLoss, which names the file and the offset of the record, if it is cut off or damaged. The
  /// reader stays before such a record: in a plain file that somebody still writes, the next call
  /// may find all of it. ResourceExhausted for a record that is too long.
  absl::StatusOr<bool> Next(std::string* record);

  /// Where the next record begins, in bytes of the file as it is without compression.
  uint64_t offset() const { return offset_; }

 private:
  RecordReader(std::shared_ptr<const RandomAccessFile> file, std::string path,
               const RecordReaderOptions& options);

  absl::Status Rewind();
  absl::StatusOr<size_t> Read(absl::Span<char> to);
  absl::StatusOr<bool> ReadRecord(std::string* record);
  absl::Status Fill(size_t size, std::string* bytes);
  absl::Status Damaged(std::string_view what) const;

  const std::shared_ptr<const RandomAccessFile> file_;
  const std::string path_;
  const RecordReaderOptions options_;
  uint64_t offset_;
  std::unique_ptr<ByteSource> source_;
  absl::Status status_;  // of a compressed file, which cannot be read again from the middle
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_RECORD_READER_H_

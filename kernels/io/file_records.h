/// Files of records of any form, read one record after another.
#ifndef TROUPE_KERNELS_IO_FILE_RECORDS_H_
#define TROUPE_KERNELS_IO_FILE_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/record_writer.h"

namespace troupe {

/// What files hold.
struct FileRecordsOptions {
  enum class Kind : uint8_t {
    kRecords,      ///< TensorFlow's record format.
    kLines,        ///< Text; lines end with "\n" or "\r\n", the last one with the file.
    kFixedLength,  ///< A header, records, a footer. What is too short for a record is left out.
    kWholeFile,    ///< The file is one record.
    kIdentity,     ///< The file's name is one record; the file is not opened.
  };
  Kind kind = Kind::kRecords;
  FileCompression compression = FileCompression::kNone;  ///< Of `kRecords`, `kFixedLength`.
  int64_t skip_header_lines = 0;                         ///< Of `kLines`.
  /// Of `kFixedLength`: bytes, and how far from one record's beginning to the next one's; 0: as
  /// far as it is long.
  int64_t header_bytes = 0, record_bytes = 0, footer_bytes = 0, hop_bytes = 0;

  bool operator==(const FileRecordsOptions&) const = default;
};

/// "TFRecord", "TextLine" and so on.
const char* KindName(FileRecordsOptions::Kind kind);

/// A place between two records of a file.
struct RecordPlace {
  int64_t records = 0;  ///< Before it; of lines, those of the header included.
  uint64_t offset = 0;  ///< In bytes, without compression.
};

/// One file. Thread-compatible.
class FileRecords {
 public:
  /// `path`, read on from `place`. The error of the file system, which names the file; DataLoss
  /// if the file ends before `place`.
  static absl::StatusOr<std::unique_ptr<FileRecords>> Open(const FileRecordsOptions& options,
                                                           const std::string& path,
                                                           RecordPlace place = {});
  virtual ~FileRecords() = default;

  /// The next record and its key, which is the file's name, a colon and an offset (of records), a
  /// line's number from 1 or a record's from 0; or the name alone. False at the end.
  /// DataLoss, which names file and offset, for damage; ResourceExhausted for a record of more
  /// than 1 GiB. After an error of a plain file, the same place is tried again.
  virtual absl::StatusOr<bool> Next(std::string* key, std::string* value) = 0;

  RecordPlace place() const { return place_; }

 protected:
  FileRecords(std::string path, RecordPlace place) : path_(std::move(path)), place_(place) {}

  const std::string path_;
  RecordPlace place_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_FILE_RECORDS_H_

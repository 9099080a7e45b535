/// Reads tables: sorted maps from keys to values in one file, in leveldb's format, which is
/// TensorFlow's too (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_TABLE_READER_H_
#define TROUPE_DEVICES_STORAGE_TABLE_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/file_system.h"

namespace troupe {

/// One table. Its index is kept in memory, blocks are read when they are needed. The file may be a
/// stranger's: checksums, lengths and the order of keys are verified, and no more memory is taken
/// than the file has bytes (a compressed block: 64 times as many). DataLoss names the file and the
/// offset of the block. Thread-safe.
///
/// leveldb's own reader is not used: it allocates what a block's handle claims, and reads past the
/// end of a block in which two lengths add up to 2^32.
class TableReader {
 public:
  static absl::StatusOr<std::unique_ptr<TableReader>> Open(FileSystem* file_system,
                                                           const std::string& path);

  /// The value of a key; nullopt if the table has no such key.
  absl::StatusOr<std::optional<std::string>> Get(std::string_view key) const;

  /// More bytes than this cannot be in all values together, whatever is claimed.
  uint64_t MaxContent() const;

  /// Calls `f` for all keys in order, until it returns an error, which is passed on.
  absl::Status ForEach(
      absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)> f) const;

 private:
  struct Handle {
    uint64_t offset = 0;
    uint64_t size = 0;  // without the trailer
  };
  struct IndexEntry {
    std::string last_key;  // no key of the block is greater, all of the next one are
    Handle block;
  };
  using Visitor = absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)>;

  TableReader(std::unique_ptr<RandomAccessFile> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  absl::Status ReadIndex();
  absl::Status Damaged(uint64_t offset, std::string_view what) const;
  bool TakeHandle(std::string_view* bytes, Handle* handle) const;
  absl::StatusOr<std::string> ReadBlock(const Handle& handle) const;
  absl::StatusOr<std::string> Decompress(const Handle& handle, std::string_view block) const;
  absl::Status VisitBlock(const Handle& handle, std::string_view block, Visitor f) const;

  const std::unique_ptr<RandomAccessFile> file_;
  const std::string path_;
  uint64_t blocks_end_ = 0;  // where the footer begins
  std::vector<IndexEntry> index_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_TABLE_READER_H_

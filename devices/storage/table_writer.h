/// Writes tables: sorted maps from keys to values in one file, in leveldb's format, which is
/// TensorFlow's too (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_TABLE_WRITER_H_
#define TROUPE_DEVICES_STORAGE_TABLE_WRITER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "devices/storage/file_system.h"

namespace troupe {

/// Writes one table to a file that the caller opened, and syncs and closes. Memory is that of one
/// block. Thread-compatible.
class TableWriter {
 public:
  /// `file` outlives the writer. Nothing is compressed, as in TensorFlow's checkpoints.
  explicit TableWriter(WritableFile* file);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  /// Keys must come in strictly increasing order, as bytes: InvalidArgument for another one. Also
  /// the file's error; after one, every call returns it.
  absl::Status Add(std::string_view key, std::string_view value);
  /// Writes the rest. Nothing may be added afterwards.
  absl::Status Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::string last_key_;
  bool empty_ = true;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_TABLE_WRITER_H_

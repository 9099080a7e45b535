/// The bytes of one tensor in a data file, read in order and verified at the end.
#ifndef TROUPE_DEVICES_STORAGE_ENTRY_STREAM_H_
#define TROUPE_DEVICES_STORAGE_ENTRY_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "devices/storage/file_system.h"

namespace troupe {

/// Reads `size` bytes from `offset` on. Small pieces are read by way of a buffer.
/// Thread-compatible.
class EntryStream {
 public:
  /// `file` and `path`, which is for messages, outlive the stream.
  EntryStream(const RandomAccessFile& file, const std::string& path, uint64_t offset, uint64_t size)
      : file_(file), path_(path), next_(offset), end_(offset + size) {}

  /// Copies the next `size` bytes; there must be as many.
  absl::Status Read(char* to, uint64_t size);
  absl::Status Skip(uint64_t size);
  /// Reads the rest. The checksum of all bytes.
  absl::StatusOr<uint32_t> Finish();

 private:
  absl::Status Fill();

  const RandomAccessFile& file_;
  const std::string& path_;
  uint64_t next_;  // what is to be read from the file next
  const uint64_t end_;
  uint32_t crc_ = 0;  // of all that was read from the file
  std::string buffer_;
  size_t used_ = 0;  // bytes of buffer_ that were handed out
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_ENTRY_STREAM_H_

/// Files that zlib compresses and decompresses as they are written and read.
#ifndef TROUPE_DEVICES_STORAGE_COMPRESSED_FILE_H_
#define TROUPE_DEVICES_STORAGE_COMPRESSED_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/storage/file_system.h"

namespace troupe {

/// What is around the compressed bytes (RFC 1950, RFC 1952).
enum class ZlibFormat { kZlib, kGzip };

/// What is appended goes to `file` compressed. `Flush` ends a block, so that a reader gets all
/// bytes; `Close` writes the end of the stream. `level` is 0 to 9, or -1 for zlib's default:
/// InvalidArgument for another one.
absl::StatusOr<std::unique_ptr<WritableFile>> NewDeflatingFile(std::unique_ptr<WritableFile> file,
                                                               ZlibFormat format, int level);

/// Bytes that are read in order. Thread-compatible.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `to`; fewer bytes only at the end. DataLoss, which names the file, for damage.
  virtual absl::StatusOr<size_t> Read(absl::Span<char> to) = 0;
};

/// The file as it is, from `offset` on; `path` is for messages.
std::unique_ptr<ByteSource> NewFileSource(std::shared_ptr<const RandomAccessFile> file,
                                          uint64_t offset);
/// The file decompressed. Several gzip streams, one behind the other, are one (RFC 1952, 2.2). A
/// stream that is cut off is DataLoss.
absl::StatusOr<std::unique_ptr<ByteSource>> NewInflatingSource(
    std::shared_ptr<const RandomAccessFile> file, const std::string& path, ZlibFormat format);

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_COMPRESSED_FILE_H_

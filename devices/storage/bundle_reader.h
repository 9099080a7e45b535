/// Reads checkpoints in TensorFlow's V2 format, "bundles" (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_BUNDLE_READER_H_
#define TROUPE_DEVICES_STORAGE_BUNDLE_READER_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system.h"
#include "graph/protos/checkpoint.pb.h"

namespace troupe {

/// The index of a bundle. A damaged one is refused: DataLoss names the entry. Unimplemented for
/// big-endian data, FailedPrecondition for a version that this program is too old for.
struct BundleIndex {
  BundleHeaderProto header;
  /// Tensors and, under keys that begin with a zero byte, slices.
  std::map<std::string, BundleEntryProto, std::less<>> entries;
};
absl::StatusOr<BundleIndex> ReadBundleIndex(FileSystem* file_system, const std::string& prefix);

/// An open bundle: the index is in memory, data files are opened when they are needed. Elements are
/// read straight into the tensor. A slice of a tensor that was saved whole costs reading all of it,
/// for its checksum, in blocks. Thread-safe.
class BundleReader : public CheckpointReader {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(FileSystem* file_system,
                                                                const std::string& prefix);

 private:
  /// Where the elements of a piece are.
  struct Location {
    const BundleEntryProto* entry;
    const RandomAccessFile* file;
    std::string path;
  };

  BundleReader(FileSystem* file_system, const std::string& prefix, BundleIndex index);

  absl::Status FillTensors();
  absl::StatusOr<Location> Locate(const Piece& piece) const;
  absl::StatusOr<const RandomAccessFile*> DataFile(int shard, const std::string& path) const;
  absl::Status CheckPiece(const Piece& piece) const override;
  absl::Status ReadPiece(const Piece& piece, const TensorSlice& wanted, Tensor* to) const override;

  FileSystem* const file_system_;
  const BundleIndex index_;
  mutable std::mutex mutex_;  // guards files_
  mutable std::map<int, std::unique_ptr<RandomAccessFile>> files_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_BUNDLE_READER_H_

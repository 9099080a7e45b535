/// Reads checkpoints in TensorFlow's V1 format: tables of SavedTensorSlices (docs/formats.md).
/// `V1CheckpointWriter` writes them, for old graphs; TensorFlow itself has written V2 since 1.0.
#ifndef TROUPE_DEVICES_STORAGE_V1_CHECKPOINT_H_
#define TROUPE_DEVICES_STORAGE_V1_CHECKPOINT_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system.h"
#include "devices/storage/table_reader.h"
#include "graph/protos/checkpoint.pb.h"

namespace troupe {

/// An open checkpoint of one or more files. A part of a tensor is read whole, in memory of twice
/// its size. Thread-safe.
class V1CheckpointReader : public CheckpointReader {
 public:
  /// `pattern` is a file, or has wildcards that match all of a sharded checkpoint:
  /// "model.ckpt-?????-of-00003". NotFound if nothing matches.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(FileSystem* file_system,
                                                                const std::string& pattern);

 private:
  /// One file.
  struct Part {
    std::string path;
    std::unique_ptr<TableReader> table;
    uint64_t least_bytes = 0;  // of what its list of tensors claims
  };

  explicit V1CheckpointReader(const std::string& pattern) : CheckpointReader(pattern) {}

  absl::Status AddFile(FileSystem* file_system, const std::string& path);
  absl::Status AddTensor(const SavedSliceMeta& meta, const std::string& path, size_t part);
  absl::Status Damaged(const Piece& piece, const Part& part, std::string_view what) const;
  /// The values as they are in the file; not fewer bytes than they need.
  absl::StatusOr<std::string> BytesOf(const Piece& piece, const Part& part,
                                      const std::string& key) const;
  absl::StatusOr<Tensor> Load(const Piece& piece) const;
  absl::Status CheckPiece(const Piece& piece) const override;
  absl::Status ReadPiece(const Piece& piece, const TensorSlice& wanted, Tensor* to) const override;

  std::vector<Part> parts_;
  std::map<std::string, size_t> part_of_key_;  // SliceKey to the index in parts_
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_V1_CHECKPOINT_H_

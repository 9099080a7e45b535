/// Writes checkpoints in TensorFlow's V1 format: a table of SavedTensorSlices (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_V1_CHECKPOINT_WRITER_H_
#define TROUPE_DEVICES_STORAGE_V1_CHECKPOINT_WRITER_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/file_system.h"
#include "devices/storage/tensor_slice.h"
#include "devices/tensor.h"
#include "graph/protos/checkpoint.pb.h"

namespace troupe {

/// One file, for graphs that still have the ops Save and SaveSlices. The table is sorted, so that
/// all of it is held in memory until `Finish`: `BundleWriter` is for large checkpoints. What was
/// under the name stays until then. Thread-compatible.
class V1CheckpointWriter {
 public:
  static absl::StatusOr<std::unique_ptr<V1CheckpointWriter>> Create(FileSystem* file_system,
                                                                    const std::string& path);

  /// As `BundleWriter::Add` and `AddSlice`; InvalidArgument also for a tensor of more than 1 GiB,
  /// for which the format has no room.
  absl::Status Add(std::string_view name, const Tensor& tensor);
  absl::Status AddSlice(std::string_view name, const Shape& full, const TensorSlice& slice,
                        const Tensor& tensor);
  /// The file is complete under its name, and survives a power cut.
  absl::Status Finish();

 private:
  V1CheckpointWriter(FileSystem* file_system, std::string path)
      : file_system_(file_system), path_(std::move(path)) {}

  absl::Status WriteTable(WritableFile* file);

  FileSystem* const file_system_;
  const std::string path_;
  std::map<std::string, SavedSliceMeta> tensors_;  ///< By name.
  std::map<std::string, std::string> values_;      ///< Records by their keys.
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_V1_CHECKPOINT_WRITER_H_

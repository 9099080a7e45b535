/// Writes checkpoints in TensorFlow's V2 format, "bundles": PREFIX.index, a table of names, and
/// PREFIX.data-00000-of-00001, the elements (docs/formats.md).
#ifndef TROUPE_DEVICES_STORAGE_BUNDLE_WRITER_H_
#define TROUPE_DEVICES_STORAGE_BUNDLE_WRITER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/storage/bundle_files.h"
#include "devices/storage/file_system.h"
#include "devices/storage/tensor_slice.h"
#include "devices/tensor.h"

namespace troupe {

struct BundleWriterOptions {
  /// `Finish` returns when the checkpoint survives a power cut. Without it, a power cut may leave
  /// an index whose data are not there; a reader finds that out.
  bool sync = true;
  /// End of the temporary names. Two writers of one prefix need different ones; empty stands for
  /// one that no other writer in this process has.
  std::string temporary_suffix;
};

/// One bundle, written a tensor at a time. Memory does not grow with the elements, only with the
/// number of tensors: 100 to 200 bytes each. Nothing is to be seen under `prefix` before `Finish`,
/// and a checkpoint that is there already under the same prefix stays whole until then. A writer
/// that is destroyed without `Finish` removes what it has written. Thread-compatible.
class BundleWriter {
 public:
  /// Makes the folder of `prefix` and opens a temporary file there.
  static absl::StatusOr<std::unique_ptr<BundleWriter>> Create(
      FileSystem* file_system, const std::string& prefix, const BundleWriterOptions& options = {});
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  /// A tensor in host memory, plain or of strings. Elements are written straight from its buffer.
  /// InvalidArgument for an empty name or a tensor on another device, AlreadyExists for a name that
  /// was added before, Unimplemented for resources and variants; these leave the writer as it was.
  /// The file's error, with the tensor's name: the writer can only be destroyed then.
  absl::Status Add(std::string_view name, const Tensor& tensor);

  /// A part of the tensor `name`, whose shape is `full`. All parts have one type and `full`; a
  /// reader gets the tensor whole if the parts cover it. InvalidArgument if the slice is not
  /// inside, or has another shape than `tensor`.
  absl::Status AddSlice(std::string_view name, const Shape& full, const TensorSlice& slice,
                        const Tensor& tensor);

  /// The checkpoint is complete under its name. Nothing may be called afterwards.
  absl::Status Finish();

  /// Bytes of elements so far.
  int64_t bytes() const { return bytes_; }

 private:
  BundleWriter(FileSystem* file_system, std::string prefix, BundleWriterOptions options);

  absl::Status Check(std::string_view name, const Tensor& tensor) const;
  absl::Status AddEntry(const std::string& key, std::string_view name, const Tensor& tensor);
  absl::StatusOr<uint32_t> WritePlain(const Tensor& tensor);
  absl::StatusOr<uint32_t> WriteStrings(const Tensor& tensor);
  absl::Status Append(std::string_view bytes);

  FileSystem* const file_system_;
  const std::string prefix_;
  const BundleWriterOptions options_;
  const std::string data_path_;
  std::unique_ptr<WritableFile> data_;
  PendingBundle bundle_;
  int64_t bytes_ = 0;
  absl::Status status_;  // the first error of the file
  bool finished_ = false;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_BUNDLE_WRITER_H_

/// The bytes of files, for sources that give pieces of them.
#ifndef TROUPE_API_DATA_FILE_BYTES_H_
#define TROUPE_API_DATA_FILE_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/data/stage.h"
#include "api/dataset.h"
#include "devices/buffer.h"
#include "devices/storage/compressed_file.h"

namespace troupe::data {

/// A file from its beginning to its end, decompressed, in blocks of memory which may be shared: a
/// block that somebody views is not written to any more. Thread-compatible.
class FileBytes {
 public:
  static constexpr size_t kBlockBytes = 256 << 10;

  /// `offset`: in the decompressed bytes. DataLoss: the file ends before it.
  static absl::StatusOr<std::unique_ptr<FileBytes>> Open(const std::string& path,
                                                         FileCompression compression,
                                                         uint64_t offset);

  /// Has `n` bytes ready at `data`, fewer only if the file ends; how many there are. Memory grows
  /// with what is there, not with what is asked for. Addresses are valid until the next call, and
  /// longer for who holds `buffer`.
  absl::StatusOr<size_t> Need(size_t n);
  /// The same for what looks for an end that is not yet there: as much again as there is, up to
  /// `most` bytes, but at least a block more. So what is held is copied a few times only.
  absl::StatusOr<size_t> NeedMore(size_t most) {
    return Need(std::max(available() + kBlockBytes, std::min(2 * available(), most)));
  }
  const char* data() const { return static_cast<const char*>(buffer_->data()) + begin_; }
  size_t available() const { return end_ - begin_; }
  const RefPtr<Buffer>& buffer() const { return buffer_; }
  void Consume(size_t n) {
    begin_ += n;
    offset_ += n;
  }

  /// Of `data`, in the decompressed bytes.
  uint64_t offset() const { return offset_; }

 private:
  explicit FileBytes(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  absl::Status Reserve(size_t n);

  const std::unique_ptr<ByteSource> source_;
  RefPtr<Buffer> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

/// A source that reads one file after another.
class FilesStage : public Stage {
 public:
  FilesStage(const Place& place, const char* kind, std::vector<std::string> files,
             FileCompression compression)
      : Stage(place.player, place.parent, StrCat(kind, "(", files.size(), ")")),
        files_(std::move(files)),
        compression_(compression) {}
  void Start(uint64_t) override {
    file_ = 0;
    NextFileAt(0);
  }

 protected:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) final;
  absl::Status Save(PositionWriter* to) override;
  void Restore(PositionReader* from) override;

  /// Appends up to `limit` elements of the file; false: the file has ended.
  virtual absl::StatusOr<bool> Read(FileBytes* file, size_t limit, Block* out) = 0;
  const std::string& path() const { return files_[file_]; }

 private:
  void NextFileAt(uint64_t offset) {
    bytes_ = nullptr;
    offset_ = offset;
  }

  const std::vector<std::string> files_;
  const FileCompression compression_;
  size_t file_ = 0;
  uint64_t offset_ = 0;  ///< Where the file is begun when it is opened.
  std::unique_ptr<FileBytes> bytes_;
};

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_FILE_BYTES_H_

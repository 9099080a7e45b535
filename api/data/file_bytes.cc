#include "api/data/file_bytes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"

namespace troupe::data {
namespace {

absl::Status EndsBefore(const std::string& path, uint64_t offset, uint64_t size) {
  return absl::DataLossError(StrCat(path, ": it ends at byte ", size, ", before byte ", offset,
                                    ", where it was to be read on: it has become shorter"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileBytes>> FileBytes::Open(const std::string& path,
                                                           FileCompression compression,
                                                           uint64_t offset) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem * file_system, FileSystems().Find(path));
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file,
                          file_system->OpenForReading(path));
  if (compression == FileCompression::kAny) {
    return InvalidArgument(path, ": a dataset is told how its files are compressed");
  }
  std::unique_ptr<ByteSource> source;
  if (compression == FileCompression::kNone) {
    if (offset > 0) {
      TROUPE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
      if (offset > size) return EndsBefore(path, offset, size);
    }
    source = NewFileSource(std::move(file), offset);
  } else {
    const ZlibFormat format =
        compression == FileCompression::kGzip ? ZlibFormat::kGzip : ZlibFormat::kZlib;
    TROUPE_ASSIGN_OR_RETURN(source, NewInflatingSource(std::move(file), path, format));
  }
  std::unique_ptr<FileBytes> bytes(new FileBytes(std::move(source)));
  if (compression == FileCompression::kNone) {
    bytes->offset_ = offset;
    return bytes;
  }
  while (bytes->offset_ < offset) {
    TROUPE_ASSIGN_OR_RETURN(const size_t n, bytes->Need(1));
    if (n == 0) return EndsBefore(path, offset, bytes->offset_);
    bytes->Consume(static_cast<size_t>(std::min<uint64_t>(n, offset - bytes->offset_)));
  }
  return bytes;
}

absl::Status FileBytes::Reserve(size_t n) {
  const size_t held = available();
  if (buffer_ && buffer_->unique() && buffer_->bytes() >= n) {
    if (begin_ + n > buffer_->bytes() || held == 0) {
      std::memmove(buffer_->data(), data(), held);
      begin_ = 0;
      end_ = held;
    }
    return absl::OkStatus();
  }
  RefPtr<Buffer> larger =
      Buffer::Allocate(HostAllocator(), ElementType::kUint8, static_cast<int64_t>(n));
  if (!larger) return absl::ResourceExhaustedError(StrCat("no memory for ", n, " bytes of a file"));
  if (held > 0) std::memcpy(larger->data(), data(), held);
  buffer_ = std::move(larger);
  begin_ = 0;
  end_ = held;
  return absl::OkStatus();
}

absl::StatusOr<size_t> FileBytes::Need(size_t n) {
  while (available() < n && !at_end_) {
    // At most as much again as was there.
    const size_t step = std::min(n, std::max(kBlockBytes, 2 * available()));
    TROUPE_RETURN_IF_ERROR(Reserve(std::max(step, kBlockBytes)));
    const size_t room = buffer_->bytes() - end_;
    TROUPE_ASSIGN_OR_RETURN(
        const size_t read,
        source_->Read(absl::MakeSpan(static_cast<char*>(buffer_->data()) + end_, room)));
    end_ += read;
    at_end_ = read < room;
  }
  return available();
}

absl::StatusOr<Progress> FilesStage::DoPull(size_t limit, Block* out) {
  const size_t begin = out->size();
  while (file_ < files_.size() && out->size() - begin < limit) {
    TROUPE_RETURN_IF_ERROR(CheckWanted());
    if (bytes_ == nullptr) {
      absl::StatusOr<std::unique_ptr<FileBytes>> bytes =
          FileBytes::Open(path(), compression_, offset_);
      if (!bytes.ok()) return Named(bytes.status());
      bytes_ = *std::move(bytes);
    }
    absl::StatusOr<bool> more = Read(bytes_.get(), limit - (out->size() - begin), out);
    if (!more.ok()) return Named(more.status());
    if (!*more) {
      ++file_;
      NextFileAt(0);
    }
  }
  return out->size() > begin ? Progress::kSome : Progress::kEnd;
}

absl::Status FilesStage::Save(PositionWriter* to) {
  to->Number(file_);
  to->Number(bytes_ == nullptr ? offset_ : bytes_->offset());
  return absl::OkStatus();
}

void FilesStage::Restore(PositionReader* from) {
  file_ = static_cast<size_t>(from->Number(files_.size()));
  NextFileAt(from->Number());
}

}  // namespace troupe::data

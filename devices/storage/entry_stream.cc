#include "devices/storage/entry_stream.h"

#include <algorithm>
#include <cstring>

#include "devices/status_macros.h"
#include "devices/storage/crc32c.h"

namespace troupe {
namespace {

/// Read from the file and then for the checksum while it is in the processor's cache.
constexpr uint64_t kBlockBytes = 256 << 10;

}  // namespace

absl::Status EntryStream::Fill() {
  buffer_.resize(std::min(kBlockBytes, end_ - next_));
  used_ = 0;
  TROUPE_RETURN_IF_ERROR(ReadExactly(file_, path_, next_, absl::MakeSpan(buffer_)));
  crc_ = ExtendCrc32c(crc_, buffer_);
  next_ += buffer_.size();
  return absl::OkStatus();
}

absl::Status EntryStream::Read(char* to, uint64_t size) {
  while (size > 0) {
    const uint64_t buffered = std::min<uint64_t>(size, buffer_.size() - used_);
    if (buffered > 0) {
      std::memcpy(to, buffer_.data() + used_, buffered);
      used_ += buffered;
      to += buffered;
      size -= buffered;
    } else if (size >= kBlockBytes || size == end_ - next_) {
      const uint64_t block = std::min(size, kBlockBytes);
      TROUPE_RETURN_IF_ERROR(ReadExactly(file_, path_, next_, absl::MakeSpan(to, block)));
      crc_ = ExtendCrc32c(crc_, {to, block});
      next_ += block;
      to += block;
      size -= block;
    } else {
      TROUPE_RETURN_IF_ERROR(Fill());
    }
  }
  return absl::OkStatus();
}

absl::Status EntryStream::Skip(uint64_t size) {
  while (size > 0) {
    if (used_ == buffer_.size()) TROUPE_RETURN_IF_ERROR(Fill());
    const uint64_t buffered = std::min<uint64_t>(size, buffer_.size() - used_);
    used_ += buffered;
    size -= buffered;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> EntryStream::Finish() {
  used_ = buffer_.size();
  while (next_ < end_) TROUPE_RETURN_IF_ERROR(Fill());
  return crc_;
}

}  // namespace troupe

#include "devices/storage/table_reader.h"

#include <snappy.h>

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"

namespace troupe {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr size_t kTrailerBytes = 5;  // kind of compression, checksum
constexpr char kPlain = 0;
constexpr char kSnappy = 1;
/// A copy of 64 bytes takes 3 bytes at least, so nothing grows more.
constexpr size_t kMaxSnappyRatio = 64;
/// Keys share their beginnings with at most 15 predecessors in what leveldb and TensorFlow write,
/// so the keys of a block have at most 16 times its bytes.
constexpr uint64_t kMaxKeyRatio = 64;

/// A stop that is no error; ForEach's caller never sees it.
absl::Status Stop() { return absl::CancelledError(); }

}  // namespace

absl::StatusOr<std::unique_ptr<TableReader>> TableReader::Open(FileSystem* file_system,
                                                               const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(auto file, file_system->OpenForReading(path));
  std::unique_ptr<TableReader> reader(new TableReader(std::move(file), path));
  TROUPE_RETURN_IF_ERROR(reader->ReadIndex());
  return reader;
}

absl::Status TableReader::Damaged(uint64_t offset, std::string_view what) const {
  return absl::DataLossError(StrCat(path_, ", byte ", offset, ": not a table, or damaged: ", what));
}

bool TableReader::TakeHandle(std::string_view* bytes, Handle* handle) const {
  if (!TakeVarint(bytes, &handle->offset) || !TakeVarint(bytes, &handle->size)) return false;
  // In the order that cannot overflow.
  return handle->offset <= blocks_end_ && handle->size <= blocks_end_ - handle->offset &&
         kTrailerBytes <= blocks_end_ - handle->offset - handle->size;
}

absl::Status TableReader::ReadIndex() {
  TROUPE_ASSIGN_OR_RETURN(const uint64_t size, file_->Size());
  if (size < kFooterBytes) {
    return Damaged(0, StrCat("it has ", size, " bytes, less than a footer"));
  }
  blocks_end_ = size - kFooterBytes;
  char footer[kFooterBytes];
  TROUPE_RETURN_IF_ERROR(ReadExactly(*file_, path_, blocks_end_, absl::MakeSpan(footer)));
  if (DecodeFixed<uint64_t>(footer + kFooterBytes - 8) != kMagic) {
    return Damaged(size - 8, "its last 8 bytes are not a table's");
  }
  std::string_view handles(footer, kFooterBytes - 8);
  Handle metaindex, index;
  if (!TakeHandle(&handles, &metaindex) || !TakeHandle(&handles, &index)) {
    return Damaged(blocks_end_, "the footer points outside of the file");
  }
  // Every writer puts the index last. Without this check the footer, which has no checksum, could
  // point to a block of data.
  if (index.offset + index.size + kTrailerBytes != blocks_end_) {
    return Damaged(blocks_end_, "the index does not end where the footer begins");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string block, ReadBlock(index));
  return VisitBlock(index, block, [&](std::string_view key, std::string_view value) {
    IndexEntry entry{std::string(key), {}};
    if (!TakeHandle(&value, &entry.block)) {
      return Damaged(index.offset, "the index points outside of the file");
    }
    index_.push_back(std::move(entry));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> TableReader::ReadBlock(const Handle& handle) const {
  std::string block(handle.size + kTrailerBytes, '\0');
  TROUPE_RETURN_IF_ERROR(ReadExactly(*file_, path_, handle.offset, absl::MakeSpan(block)));
  const uint32_t stored = DecodeFixed<uint32_t>(block.data() + handle.size + 1);
  const uint32_t actual = Crc32c(std::string_view(block).substr(0, handle.size + 1));
  if (UnmaskCrc32c(stored) != actual) {
    return Damaged(handle.offset,
                   StrCat("the checksum of a block of ", handle.size, " bytes is wrong"));
  }
  const char kind = block[handle.size];
  block.resize(handle.size);
  if (kind == kPlain) return block;
  if (kind == kSnappy) return Decompress(handle, block);
  return Damaged(handle.offset, StrCat("compression ", static_cast<int>(kind),
                                       " is unknown; expected 0 (none) or 1 (snappy)"));
}

absl::StatusOr<std::string> TableReader::Decompress(const Handle& handle,
                                                    std::string_view block) const {
  size_t size = 0;
  std::string plain;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size) ||
      size / kMaxSnappyRatio > block.size()) {
    return Damaged(handle.offset, "the length of a compressed block is impossible");
  }
  plain.resize(size);
  if (!snappy::RawUncompress(block.data(), block.size(), plain.data())) {
    return Damaged(handle.offset, "a compressed block cannot be decompressed");
  }
  return plain;
}

absl::Status TableReader::VisitBlock(const Handle& handle, std::string_view block,
                                     Visitor f) const {
  const auto damaged = [&](std::string_view what) { return Damaged(handle.offset, what); };
  // Entries, then the offsets of those that share nothing with their predecessors, then how many.
  if (block.size() < 4) return damaged("a block is too short");
  const uint64_t restarts = DecodeFixed<uint32_t>(block.data() + block.size() - 4);
  if (restarts > block.size() / 4 - 1) return damaged("a block claims too many restarts");
  std::string_view entries = block.substr(0, block.size() - 4 * (restarts + 1));
  std::string key;
  uint64_t key_bytes = 0;
  bool first = true;
  while (!entries.empty()) {
    uint64_t shared, unshared, value_size;
    if (!TakeVarint(&entries, &shared) || !TakeVarint(&entries, &unshared) ||
        !TakeVarint(&entries, &value_size)) {
      return damaged("the lengths of an entry are cut off");
    }
    if (shared > key.size() || unshared > entries.size() ||
        value_size > entries.size() - unshared) {
      return damaged("an entry is longer than its block");
    }
    const std::string_view tail = entries.substr(0, unshared);
    if (!first && std::string_view(key).substr(shared) >= tail) {
      return damaged("keys are out of order");
    }
    key.resize(shared);
    key.append(tail);
    key_bytes += key.size();
    if (key_bytes / kMaxKeyRatio > block.size()) return damaged("keys share too much");
    TROUPE_RETURN_IF_ERROR(f(key, entries.substr(unshared, value_size)));
    entries.remove_prefix(unshared + value_size);
    first = false;
  }
  return absl::OkStatus();
}

uint64_t TableReader::MaxContent() const { return blocks_end_ * kMaxSnappyRatio; }

absl::StatusOr<std::optional<std::string>> TableReader::Get(std::string_view key) const {
  const auto entry = std::partition_point(index_.begin(), index_.end(),
                                          [&](const IndexEntry& e) { return e.last_key < key; });
  std::optional<std::string> found;
  if (entry == index_.end()) return found;
  TROUPE_ASSIGN_OR_RETURN(const std::string block, ReadBlock(entry->block));
  const absl::Status status =
      VisitBlock(entry->block, block, [&](std::string_view at, std::string_view value) {
        if (at < key) return absl::OkStatus();
        if (at == key) found = std::string(value);
        return Stop();
      });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  return found;
}

absl::Status TableReader::ForEach(Visitor f) const {
  std::string last;
  bool first = true;
  for (const IndexEntry& entry : index_) {
    TROUPE_ASSIGN_OR_RETURN(const std::string block, ReadBlock(entry.block));
    const auto visit = [&](std::string_view key, std::string_view value) {
      if ((!first && key <= last) || key > entry.last_key) {
        return Damaged(entry.block.offset, "keys are out of order");
      }
      first = false;
      last = key;
      return f(key, value);
    };
    TROUPE_RETURN_IF_ERROR(VisitBlock(entry.block, block, visit));
  }
  return absl::OkStatus();
}

}  // namespace troupe

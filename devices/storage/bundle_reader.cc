#include "devices/storage/bundle_reader.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/escaping.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/bundle_files.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/entry_stream.h"
#include "devices/storage/slice_copy.h"
#include "devices/storage/table_reader.h"

namespace troupe {
namespace {

template <typename Message>
bool Parse(std::string_view bytes, Message* message) {
  return bytes.size() <= INT_MAX &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

absl::Status CheckHeader(const std::string& path, std::string_view key, std::string_view value,
                         BundleHeaderProto* header) {
  if (!key.empty() || !Parse(value, header) || header->num_shards() < 0) {
    return absl::DataLossError(StrCat(path, ": the first entry is no header of a checkpoint"));
  }
  if (header->endianness() != BundleHeaderProto::LITTLE) {
    return absl::UnimplementedError(
        StrCat(path,
               ": the checkpoint was written by a big-endian machine; write it again on a "
               "little-endian one"));
  }
  const VersionDef& version = header->version();
  const auto& bad = version.bad_consumers();
  if (version.min_consumer() > kBundleVersion ||
      std::find(bad.begin(), bad.end(), kBundleVersion) != bad.end()) {
    return absl::FailedPreconditionError(StrCat(
        path, ": the checkpoint's version ", version.producer(), " needs a reader of version ",
        version.min_consumer(), "; this one has ", kBundleVersion));
  }
  return absl::OkStatus();
}

std::string Where(std::string_view tensor, const std::string& path, int64_t offset) {
  return StrCat("Tensor '", tensor, "', ", path, ", byte ", offset, ": ");
}

absl::Status WrongChecksum(uint32_t stored, uint32_t actual) {
  return absl::DataLossError(StrCat("the checksum is ", absl::Hex(actual), ", expected ",
                                    absl::Hex(UnmaskCrc32c(stored)), ": the data are damaged"));
}

/// Varint lengths, the masked checksum of the lengths, then the strings.
absl::Status ParseStrings(std::string_view bytes, uint32_t stored, absl::Span<std::string> to) {
  std::vector<uint64_t> lengths(to.size());
  std::string fixed;  // as the checksum takes them
  uint64_t sum = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint(&bytes, &length) || length > bytes.size()) {
      return absl::DataLossError("the length of a string is cut off or too large");
    }
    if (length <= UINT32_MAX) {
      AppendFixed(static_cast<uint32_t>(length), &fixed);
    } else {
      AppendFixed(length, &fixed);
    }
    sum += length;  // at most the square of the size, far below 2^64
  }
  if (bytes.size() < 4 || sum != bytes.size() - 4) {
    return absl::DataLossError("the lengths of the strings do not add up");
  }
  const uint32_t crc = Crc32c(fixed);
  if (UnmaskCrc32c(DecodeFixed<uint32_t>(bytes.data())) != crc) {
    return absl::DataLossError("the checksum of the strings' lengths is wrong");
  }
  const uint32_t actual = ExtendCrc32c(crc, bytes);
  if (actual != UnmaskCrc32c(stored)) return WrongChecksum(stored, actual);
  bytes.remove_prefix(4);
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = bytes.substr(0, lengths[i]);
    bytes.remove_prefix(lengths[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BundleIndex> ReadBundleIndex(FileSystem* file_system, const std::string& prefix) {
  const std::string path = BundleIndexFile(prefix);
  TROUPE_ASSIGN_OR_RETURN(const auto table, TableReader::Open(file_system, path));
  BundleIndex index;
  bool first = true;
  const auto take = [&](std::string_view key, std::string_view value) -> absl::Status {
    if (std::exchange(first, false)) return CheckHeader(path, key, value, &index.header);
    BundleEntryProto entry;
    if (!Parse(value, &entry)) {
      return absl::DataLossError(StrCat(
          path, ": the entry of '", absl::CHexEscape({key.data(), key.size()}), "' is no message"));
    }
    index.entries.emplace(key, std::move(entry));
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(table->ForEach(take));
  if (first) return absl::DataLossError(StrCat(path, ": the checkpoint has no header"));
  return index;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> BundleReader::Open(FileSystem* file_system,
                                                                     const std::string& prefix) {
  return CatchExceptions([&]() -> absl::StatusOr<std::unique_ptr<CheckpointReader>> {
    TROUPE_ASSIGN_OR_RETURN(BundleIndex index, ReadBundleIndex(file_system, prefix));
    std::unique_ptr<BundleReader> reader(new BundleReader(file_system, prefix, std::move(index)));
    TROUPE_RETURN_IF_ERROR(reader->FillTensors());
    return reader;
  });
}

BundleReader::BundleReader(FileSystem* file_system, const std::string& prefix, BundleIndex index)
    : CheckpointReader(prefix), file_system_(file_system), index_(std::move(index)) {}

absl::Status BundleReader::FillTensors() {
  for (const auto& [key, entry] : index_.entries) {
    const auto damaged = [&, &key = key](std::string_view what) {
      return absl::DataLossError(StrCat(BundleIndexFile(prefix_), ": the entry of '",
                                        absl::CHexEscape(key), "' is damaged: ", what));
    };
    CheckpointTensor tensor;
    if (entry.dtype() <= 0 || entry.dtype() >= kRefOffset) return damaged("the type is unknown");
    tensor.type = static_cast<ElementType>(entry.dtype());
    absl::StatusOr<Shape> shape = Shape::FromProto(entry.shape());
    if (!shape.ok()) return damaged(StrCat(shape.status().message()));
    tensor.shape = *std::move(shape);
    for (const TensorSliceProto& proto : entry.slices()) {
      absl::StatusOr<TensorSlice> slice = TensorSlice::FromProto(proto);
      const absl::Status inside = slice.ok() ? slice->In(tensor.shape).status() : slice.status();
      if (!inside.ok()) return damaged(StrCat(inside.message()));
      tensor.slices.push_back(*std::move(slice));
    }
    if (entry.shard_id() < 0 || entry.shard_id() >= std::max(1, index_.header.num_shards()) ||
        entry.offset() < 0 || entry.size() < 0 || entry.size() > INT64_MAX - entry.offset()) {
      return damaged(StrCat("it points to ", entry.size(), " bytes at byte ", entry.offset(),
                            " of shard ", entry.shard_id(), " of ", index_.header.num_shards()));
    }
    tensor.bytes = entry.size();
    if (!key.starts_with('\0')) tensors_.emplace(key, std::move(tensor));
  }
  for (auto& [name, tensor] : tensors_) {
    if (!tensor.slices.empty()) tensor.bytes = 0;
    for (const TensorSlice& slice : tensor.slices) {
      const auto entry = index_.entries.find(SliceKey(name, slice));
      if (entry == index_.entries.end()) continue;  // Who reads it finds that out.
      const int64_t size = entry->second.size();
      tensor.bytes = size > INT64_MAX - tensor.bytes ? INT64_MAX : tensor.bytes + size;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const RandomAccessFile*> BundleReader::DataFile(int shard,
                                                               const std::string& path) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<RandomAccessFile>& file = files_[shard];
  if (file == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(file, file_system_->OpenForReading(path));
  }
  return file.get();
}

absl::StatusOr<BundleReader::Location> BundleReader::Locate(const Piece& piece) const {
  Location location{};
  const std::string key =
      piece.saved == nullptr ? std::string(piece.name) : SliceKey(piece.name, *piece.saved);
  const auto found = index_.entries.find(key);
  if (found == index_.entries.end()) {
    return absl::DataLossError(StrCat("Tensor '", piece.name, "', ", BundleIndexFile(prefix_),
                                      ": the slice '", piece.saved->ToString(), "' is missing"));
  }
  location.entry = &found->second;
  const BundleEntryProto& entry = found->second;
  location.path = BundleDataFile(prefix_, entry.shard_id(), index_.header.num_shards());
  absl::StatusOr<const RandomAccessFile*> file = DataFile(entry.shard_id(), location.path);
  if (!file.ok()) return WithContext(StrCat("Tensor '", piece.name, "': "), file.status());
  location.file = *file;
  return location;
}

absl::Status BundleReader::CheckPiece(const Piece& piece) const {
  TROUPE_ASSIGN_OR_RETURN(const Location location, Locate(piece));
  const BundleEntryProto& entry = *location.entry;
  const auto damaged = [&](std::string_view what) {
    return absl::DataLossError(StrCat(Where(piece.name, location.path, entry.offset()), what));
  };
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::FromProto(entry.shape()));
  if (shape != piece.place.shape() || entry.dtype() != static_cast<DataType>(piece.tensor->type)) {
    return damaged(StrCat("the slice '", piece.saved == nullptr ? "" : piece.saved->ToString(),
                          "' has another type or shape than the tensor"));
  }
  TROUPE_ASSIGN_OR_RETURN(const uint64_t file_bytes, location.file->Size());
  if (static_cast<uint64_t>(entry.offset() + entry.size()) > file_bytes) {
    return damaged(StrCat("it has ", entry.size(), " bytes, but the file ends at byte ", file_bytes,
                          ": the file is truncated"));
  }
  if (piece.tensor->type == ElementType::kString) {
    if (shape.num_elements() <= entry.size()) return absl::OkStatus();
    return damaged(StrCat(shape.num_elements(), " strings cannot be in ", entry.size(), " bytes"));
  }
  const int64_t expected = MultiplyWithoutOverflow(
      shape.num_elements(), static_cast<int64_t>(ElementSize(piece.tensor->type)));
  if (expected == entry.size()) return absl::OkStatus();
  return damaged(StrCat("it has ", entry.size(), " bytes; type and shape need ",
                        expected < 0 ? std::string("more than 2^63") : StrCat(expected)));
}

absl::Status BundleReader::ReadPiece(const Piece& piece, const TensorSlice& wanted,
                                     Tensor* to) const {
  TROUPE_ASSIGN_OR_RETURN(const Location location, Locate(piece));
  const BundleEntryProto& entry = *location.entry;
  EntryStream stream(*location.file, location.path, static_cast<uint64_t>(entry.offset()),
                     static_cast<uint64_t>(entry.size()));
  const auto in_context = [&](const absl::Status& status) {
    return WithContext(Where(piece.name, location.path, entry.offset()), status);
  };
  if (piece.tensor->type == ElementType::kString) {
    std::string bytes(static_cast<size_t>(entry.size()), '\0');
    absl::Status status = stream.Read(bytes.data(), bytes.size());
    TROUPE_ASSIGN_OR_RETURN(Tensor strings,
                            Tensor::Allocate(ElementType::kString, piece.place.shape()));
    if (status.ok()) {
      status = ParseStrings(bytes, entry.crc32c(), strings.mutable_values<std::string>());
    }
    if (!status.ok()) return in_context(status);
    CopyCommon(strings, piece.place, wanted, to);
    return absl::OkStatus();
  }
  const auto size = static_cast<int64_t>(ElementSize(piece.tensor->type));
  char* const elements = static_cast<char*>(to->mutable_raw_data());
  int64_t at = 0;
  absl::Status status = ForEachRun(piece.place, wanted, [&](const Run& run) {
    TROUPE_RETURN_IF_ERROR(stream.Skip(static_cast<uint64_t>((run.from - at) * size)));
    at = run.from + run.length;
    return stream.Read(elements + run.to * size, static_cast<uint64_t>(run.length * size));
  });
  if (!status.ok()) return in_context(status);
  const absl::StatusOr<uint32_t> crc = stream.Finish();
  if (!crc.ok()) return in_context(crc.status());
  if (*crc != UnmaskCrc32c(entry.crc32c())) return in_context(WrongChecksum(entry.crc32c(), *crc));
  if (piece.tensor->type == ElementType::kBool) {
    // A stranger's byte may be neither 0 nor 1, which no bool is.
    const int64_t n = to->num_elements();
    for (int64_t i = 0; i < n; ++i) elements[i] = elements[i] != 0;
  }
  return absl::OkStatus();
}

}  // namespace troupe

#include "devices/storage/bundle_writer.h"

#include <algorithm>
#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

/// Read for the checksum and then for the file while it is in the processor's cache.
constexpr size_t kBlockBytes = 256 << 10;

std::string Quoted(std::string_view name) { return StrCat("Tensor '", name, "'"); }

}  // namespace

absl::StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(
    FileSystem* file_system, const std::string& prefix, const BundleWriterOptions& options) {
  if (PathBase(prefix).empty()) {
    return InvalidArgument("'", prefix, "' names no checkpoint; expected FOLDER/NAME");
  }
  std::unique_ptr<BundleWriter> writer(new BundleWriter(file_system, prefix, options));
  TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(file_system, PathDirectory(prefix), options.sync));
  TROUPE_ASSIGN_OR_RETURN(writer->data_, file_system->Create(writer->data_path_));
  return writer;
}

BundleWriter::BundleWriter(FileSystem* file_system, std::string prefix, BundleWriterOptions options)
    : file_system_(file_system),
      prefix_(std::move(prefix)),
      options_(std::move(options)),
      data_path_(TemporaryName(BundleDataFile(prefix_, 0, 1), options_.temporary_suffix)) {}

BundleWriter::~BundleWriter() {
  if (finished_) return;
  data_.reset();
  file_system_->Remove(data_path_).IgnoreError();
}

absl::Status BundleWriter::Check(std::string_view name, const Tensor& tensor) const {
  TROUPE_RETURN_IF_ERROR(status_);
  if (name.empty()) return InvalidArgument("A tensor in a checkpoint needs a name");
  if (!tensor.valid() || tensor.space() != MemorySpace::kHost) {
    return InvalidArgument(Quoted(name),
                           " is not in host memory; copy it there before it is saved");
  }
  if (tensor.type() == ElementType::kResource || tensor.type() == ElementType::kVariant) {
    return absl::UnimplementedError(
        StrCat(Quoted(name), " is of type ", ElementTypeName(tensor.type()),
               ", which checkpoints do not hold; save the tensors that it refers to"));
  }
  return absl::OkStatus();
}

absl::Status BundleWriter::Add(std::string_view name, const Tensor& tensor) {
  TROUPE_RETURN_IF_ERROR(Check(name, tensor));
  return AddEntry(std::string(name), name, tensor);
}

absl::Status BundleWriter::AddSlice(std::string_view name, const Shape& full,
                                    const TensorSlice& slice, const Tensor& tensor) {
  TROUPE_RETURN_IF_ERROR(Check(name, tensor));
  const absl::StatusOr<TensorSlice> inside = slice.In(full);
  if (!inside.ok()) return WithContext(StrCat(Quoted(name), ": "), inside.status());
  if (inside->shape() != tensor.shape()) {
    return InvalidArgument(Quoted(name), ": the slice '", slice.ToString(), "' of shape ",
                           inside->shape().ToString(), " cannot hold a tensor of shape ",
                           tensor.shape().ToString());
  }
  const std::string key(name);
  const auto whole = bundle_.entries.find(key);
  if (whole == bundle_.entries.end()) {
    TROUPE_RETURN_IF_ERROR(AddEntry(SliceKey(name, slice), name, tensor));
    BundleEntryProto& entry = bundle_.entries[key];
    entry.set_dtype(static_cast<DataType>(tensor.type()));
    full.ToProto(entry.mutable_shape());
    slice.ToProto(entry.add_slices());
    return absl::OkStatus();
  }
  BundleEntryProto& entry = whole->second;
  const absl::StatusOr<Shape> shape = Shape::FromProto(entry.shape());
  if (entry.slices().empty() || entry.dtype() != static_cast<DataType>(tensor.type()) ||
      !shape.ok() || *shape != full) {
    return InvalidArgument(Quoted(name), ": a slice of ", ElementTypeName(tensor.type()),
                           full.ToString(), " was added to a tensor of ",
                           ElementTypeName(static_cast<ElementType>(entry.dtype())),
                           shape.ok() ? shape->ToString() : "",
                           entry.slices().empty() ? " that is there as a whole" : "");
  }
  TROUPE_RETURN_IF_ERROR(AddEntry(SliceKey(name, slice), name, tensor));
  slice.ToProto(entry.add_slices());
  return absl::OkStatus();
}

absl::Status BundleWriter::AddEntry(const std::string& key, std::string_view name,
                                    const Tensor& tensor) {
  if (bundle_.entries.contains(key)) {
    return absl::AlreadyExistsError(
        StrCat(Quoted(name), " was added to the checkpoint ", prefix_, " before"));
  }
  const int64_t offset = bytes_;
  const absl::StatusOr<uint32_t> crc =
      tensor.type() == ElementType::kString ? WriteStrings(tensor) : WritePlain(tensor);
  if (!crc.ok()) {
    status_ = WithContext(StrCat(Quoted(name), ": "), crc.status());
    return status_;
  }
  BundleEntryProto& entry = bundle_.entries[key];
  entry.set_dtype(static_cast<DataType>(tensor.type()));
  tensor.shape().ToProto(entry.mutable_shape());
  entry.set_offset(offset);
  entry.set_size(bytes_ - offset);
  entry.set_crc32c(MaskCrc32c(*crc));
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> BundleWriter::WritePlain(const Tensor& tensor) {
  std::string_view rest;
  if (tensor.num_elements() > 0) {
    rest = {static_cast<const char*>(tensor.raw_data()), tensor.bytes()};
  }
  uint32_t crc = 0;
  while (!rest.empty()) {
    const std::string_view block = rest.substr(0, kBlockBytes);
    crc = ExtendCrc32c(crc, block);
    TROUPE_RETURN_IF_ERROR(Append(block));
    rest.remove_prefix(block.size());
  }
  return crc;
}

absl::StatusOr<uint32_t> BundleWriter::WriteStrings(const Tensor& tensor) {
  // The checksum takes lengths as numbers of fixed width, not as the varints that are written.
  std::string lengths, fixed;
  uint32_t crc = 0;
  const auto flush = [&] {
    crc = ExtendCrc32c(crc, fixed);
    fixed.clear();
    const absl::Status status = Append(lengths);
    lengths.clear();
    return status;
  };
  const absl::Span<const std::string> strings = tensor.unchecked_values<std::string>();
  for (const std::string& value : strings) {
    AppendVarint(value.size(), &lengths);
    if (value.size() <= UINT32_MAX) {
      AppendFixed(static_cast<uint32_t>(value.size()), &fixed);
    } else {
      AppendFixed(static_cast<uint64_t>(value.size()), &fixed);
    }
    if (fixed.size() >= kBlockBytes) TROUPE_RETURN_IF_ERROR(flush());
  }
  TROUPE_RETURN_IF_ERROR(flush());
  AppendFixed(MaskCrc32c(crc), &fixed);
  lengths = fixed;
  TROUPE_RETURN_IF_ERROR(flush());
  for (const std::string& value : strings) {
    crc = ExtendCrc32c(crc, value);
    TROUPE_RETURN_IF_ERROR(Append(value));
  }
  return crc;
}

absl::Status BundleWriter::Append(std::string_view bytes) {
  TROUPE_RETURN_IF_ERROR(data_->Append(bytes));
  bytes_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status BundleWriter::Finish() {
  TROUPE_RETURN_IF_ERROR(status_);
  if (options_.sync) TROUPE_RETURN_IF_ERROR(data_->Sync());
  TROUPE_RETURN_IF_ERROR(data_->Close());
  bundle_.data_files = {data_path_};
  TROUPE_RETURN_IF_ERROR(
      CommitBundle(file_system_, prefix_, bundle_, options_.sync, options_.temporary_suffix));
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace troupe

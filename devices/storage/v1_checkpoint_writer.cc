#include "devices/storage/v1_checkpoint_writer.h"

#include <complex>
#include <cstring>
#include <utility>

#include "devices/exceptions.h"
#include "devices/half.h"
#include "devices/quantized.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "devices/storage/table_writer.h"
#include "devices/storage/whole_file.h"
#include "graph/protos/tensor.pb.h"

namespace troupe {
namespace {

constexpr int kV1Version = 1;
constexpr size_t kMostBytes = size_t{1} << 30;  // A message has 2 GiB at most.

template <typename T, typename Add>
void Each(const Tensor& tensor, Add add) {
  for (const T& value : tensor.unchecked_values<T>()) add(value);
}

template <typename T>
void AddInts(const Tensor& tensor, TensorProto* to) {
  Each<T>(tensor, [to](T value) { to->add_int_val(value); });
}

template <typename T>
void AddQuantized(const Tensor& tensor, TensorProto* to) {
  Each<T>(tensor, [to](T element) { to->add_int_val(element.value); });
}

/// The elements in the fields of their type; a V1 checkpoint has neither the type nor the shape
/// there.
absl::Status FillValues(const Tensor& tensor, TensorProto* to) {
  switch (tensor.type()) {
    case ElementType::kFloat:
      Each<float>(tensor, [to](float value) { to->add_float_val(value); });
      break;
    case ElementType::kDouble:
      Each<double>(tensor, [to](double value) { to->add_double_val(value); });
      break;
    case ElementType::kInt8:
      AddInts<int8_t>(tensor, to);
      break;
    case ElementType::kUint8:
      AddInts<uint8_t>(tensor, to);
      break;
    case ElementType::kInt16:
      AddInts<int16_t>(tensor, to);
      break;
    case ElementType::kUint16:
      AddInts<uint16_t>(tensor, to);
      break;
    case ElementType::kInt32:
      AddInts<int32_t>(tensor, to);
      break;
    case ElementType::kQint8:
      AddQuantized<qint8>(tensor, to);
      break;
    case ElementType::kQuint8:
      AddQuantized<quint8>(tensor, to);
      break;
    case ElementType::kQint16:
      AddQuantized<qint16>(tensor, to);
      break;
    case ElementType::kQuint16:
      AddQuantized<quint16>(tensor, to);
      break;
    case ElementType::kQint32:
      AddQuantized<qint32>(tensor, to);
      break;
    case ElementType::kInt64:
      Each<int64_t>(tensor, [to](int64_t value) { to->add_int64_val(value); });
      break;
    case ElementType::kUint32:
      Each<uint32_t>(tensor, [to](uint32_t value) { to->add_uint32_val(value); });
      break;
    case ElementType::kUint64:
      Each<uint64_t>(tensor, [to](uint64_t value) { to->add_uint64_val(value); });
      break;
    case ElementType::kBool:
      Each<bool>(tensor, [to](bool value) { to->add_bool_val(value); });
      break;
    case ElementType::kHalf:
    case ElementType::kBfloat16: {
      const char* const bytes = static_cast<const char*>(tensor.raw_data());
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, bytes + 2 * i, sizeof(bits));
        to->add_half_val(bits);
      }
      break;
    }
    case ElementType::kComplex64:
      Each<std::complex<float>>(tensor, [to](std::complex<float> value) {
        to->add_scomplex_val(value.real());
        to->add_scomplex_val(value.imag());
      });
      break;
    case ElementType::kComplex128:
      Each<std::complex<double>>(tensor, [to](std::complex<double> value) {
        to->add_dcomplex_val(value.real());
        to->add_dcomplex_val(value.imag());
      });
      break;
    case ElementType::kString:
      Each<std::string>(tensor, [to](const std::string& value) { to->add_string_val(value); });
      break;
    default:
      return absl::UnimplementedError(
          StrCat("checkpoints of the V1 format hold no ", ElementTypeName(tensor.type())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<V1CheckpointWriter>> V1CheckpointWriter::Create(
    FileSystem* file_system, const std::string& path) {
  if (PathBase(path).empty()) {
    return InvalidArgument("'", path, "' names no checkpoint; expected FOLDER/NAME");
  }
  return std::unique_ptr<V1CheckpointWriter>(new V1CheckpointWriter(file_system, path));
}

absl::Status V1CheckpointWriter::Add(std::string_view name, const Tensor& tensor) {
  return AddSlice(name, tensor.shape(), TensorSlice(tensor.shape().rank()), tensor);
}

absl::Status V1CheckpointWriter::AddSlice(std::string_view name, const Shape& full,
                                          const TensorSlice& slice, const Tensor& tensor) {
  const std::string quoted = StrCat("Tensor '", name, "'");
  if (name.empty()) return InvalidArgument("A tensor in a checkpoint needs a name");
  if (!tensor.valid() || tensor.space() != MemorySpace::kHost) {
    return InvalidArgument(quoted, " is not in host memory; copy it there before it is saved");
  }
  const absl::StatusOr<TensorSlice> inside = slice.In(full);
  if (!inside.ok()) return WithContext(StrCat(quoted, ": "), inside.status());
  if (inside->shape() != tensor.shape()) {
    return InvalidArgument(quoted, ": the slice '", slice.ToString(), "' of shape ",
                           inside->shape().ToString(), " cannot hold a tensor of shape ",
                           tensor.shape().ToString());
  }
  SavedTensorSlices record;
  record.mutable_data()->set_name(std::string(name));
  slice.ToProto(record.mutable_data()->mutable_slice());
  const absl::Status filled = FillValues(tensor, record.mutable_data()->mutable_data());
  if (!filled.ok()) return WithContext(StrCat(quoted, ": "), filled);
  if (record.ByteSizeLong() > kMostBytes) {
    return InvalidArgument(quoted, " takes ", record.ByteSizeLong(),
                           " bytes: the V1 format has no room for it; use SaveV2");
  }
  const std::string key = SliceKey(name, slice);
  if (values_.contains(key)) {
    return absl::AlreadyExistsError(
        StrCat(quoted, " was added to the checkpoint ", path_, " before"));
  }
  const auto [found, added] = tensors_.try_emplace(std::string(name));
  SavedSliceMeta& meta = found->second;
  if (added) {
    meta.set_name(std::string(name));
    meta.set_type(static_cast<DataType>(tensor.type()));
    full.ToProto(meta.mutable_shape());
  } else if (meta.type() != static_cast<DataType>(tensor.type()) ||
             *Shape::FromProto(meta.shape()) != full) {
    return InvalidArgument(quoted, ": slices differ in type, or in the shape of the whole");
  }
  slice.ToProto(meta.add_slice());
  values_[key] = record.SerializeAsString();
  return absl::OkStatus();
}

absl::Status V1CheckpointWriter::WriteTable(WritableFile* file) {
  SavedTensorSlices all;
  all.mutable_meta()->mutable_versions()->set_producer(kV1Version);
  for (const auto& [name, meta] : tensors_) *all.mutable_meta()->add_tensor() = meta;
  TableWriter table(file);
  TROUPE_RETURN_IF_ERROR(table.Add("", all.SerializeAsString()));
  for (const auto& [key, value] : values_) TROUPE_RETURN_IF_ERROR(table.Add(key, value));
  TROUPE_RETURN_IF_ERROR(table.Finish());
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status V1CheckpointWriter::Finish() {
  const std::string folder(PathDirectory(path_)), temporary = TemporaryName(path_, "");
  TROUPE_RETURN_IF_ERROR(CreateDirectoriesSynced(file_system_, folder, /*sync=*/true));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          file_system_->Create(temporary));
  absl::Status status = WriteTable(file.get());
  if (status.ok()) status = file_system_->Rename(temporary, path_);
  if (!status.ok()) {
    file_system_->Remove(temporary).IgnoreError();
    return status;
  }
  return file_system_->SyncDirectory(folder);
}

}  // namespace troupe

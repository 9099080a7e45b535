#include "devices/storage/v1_checkpoint.h"

#include <algorithm>
#include <climits>
#include <optional>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/slice_copy.h"
#include "devices/storage/whole_file.h"
#include "devices/tensor_proto.h"
#include "graph/protos/tensor.pb.h"

namespace troupe {
namespace {

/// The version of V1 checkpoints that is read; there has been no other.
constexpr int kV1Version = 1;

bool Parse(const std::string& bytes, SavedTensorSlices* message) {
  return bytes.size() <= INT_MAX && message->ParseFromString(bytes);
}

/// Values that a message has for elements of a type. The message names neither type nor shape.
int64_t NumValues(const TensorProto& values, ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return values.float_val_size();
    case ElementType::kDouble:
      return values.double_val_size();
    case ElementType::kInt8:
    case ElementType::kUint8:
    case ElementType::kInt16:
    case ElementType::kUint16:
    case ElementType::kInt32:
    case ElementType::kQint8:
    case ElementType::kQuint8:
    case ElementType::kQint16:
    case ElementType::kQuint16:
    case ElementType::kQint32:
      return values.int_val_size();
    case ElementType::kInt64:
      return values.int64_val_size();
    case ElementType::kUint32:
      return values.uint32_val_size();
    case ElementType::kUint64:
      return values.uint64_val_size();
    case ElementType::kBool:
      return values.bool_val_size();
    case ElementType::kHalf:
    case ElementType::kBfloat16:
      return values.half_val_size();
    case ElementType::kComplex64:
      return values.scomplex_val_size() / 2;
    case ElementType::kComplex128:
      return values.dcomplex_val_size() / 2;
    case ElementType::kString:
      return values.string_val_size();
    default:
      return 0;
  }
}

/// Bytes that a value takes in a message, at least.
uint64_t LeastBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return 4;
    case ElementType::kDouble:
    case ElementType::kComplex64:
      return 8;
    case ElementType::kComplex128:
      return 16;
    case ElementType::kString:
      return 2;  // The field, and the length.
    default:
      return 1;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> V1CheckpointReader::Open(
    FileSystem* file_system, const std::string& pattern) {
  return CatchExceptions([&]() -> absl::StatusOr<std::unique_ptr<CheckpointReader>> {
    std::vector<std::string> files = {pattern};
    if (!file_system->Exists(pattern).ok()) {
      TROUPE_ASSIGN_OR_RETURN(files, MatchFiles(file_system, pattern));
    }
    if (files.empty()) return absl::NotFoundError(StrCat("There is no file ", pattern));
    std::unique_ptr<V1CheckpointReader> reader(new V1CheckpointReader(pattern));
    for (const std::string& file : files) {
      TROUPE_RETURN_IF_ERROR(reader->AddFile(file_system, file));
    }
    return reader;
  });
}

absl::Status V1CheckpointReader::AddFile(FileSystem* file_system, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(auto table, TableReader::Open(file_system, path));
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, table->Get(""));
  SavedTensorSlices record;
  if (!bytes || !Parse(*bytes, &record) || !record.has_meta()) {
    return absl::DataLossError(StrCat(path,
                                      ": the table has no list of tensors: it is no V1 "
                                      "checkpoint, or damaged"));
  }
  if (record.meta().versions().min_consumer() > kV1Version) {
    return absl::FailedPreconditionError(StrCat(path, ": the checkpoint needs a reader of version ",
                                                record.meta().versions().min_consumer(),
                                                "; this one has ", kV1Version));
  }
  const uint64_t most = table->MaxContent();
  parts_.push_back({path, std::move(table)});
  for (const SavedSliceMeta& meta : record.meta().tensor()) {
    TROUPE_RETURN_IF_ERROR(AddTensor(meta, path, parts_.size() - 1));
    if (parts_.back().least_bytes <= most) continue;
    return absl::DataLossError(StrCat("Tensor '", meta.name(), "', ", path, ": the tensors claim ",
                                      parts_.back().least_bytes,
                                      " bytes, more than the file can hold"));
  }
  return absl::OkStatus();
}

absl::Status V1CheckpointReader::AddTensor(const SavedSliceMeta& meta, const std::string& path,
                                           size_t part) {
  const auto damaged = [&](std::string_view what) {
    return absl::DataLossError(StrCat("Tensor '", meta.name(), "', ", path, ": ", what));
  };
  if (meta.type() <= 0 || meta.type() >= kRefOffset) return damaged("the type is unknown");
  const absl::StatusOr<Shape> shape = Shape::FromProto(meta.shape());
  if (!shape.ok()) return damaged(StrCat(shape.status().message()));
  const auto type = static_cast<ElementType>(meta.type());
  const auto [found, added] = tensors_.try_emplace(meta.name());
  CheckpointTensor& tensor = found->second;
  if (!added && (tensor.type != type || tensor.shape != *shape)) {
    return damaged("another file of the checkpoint gives it another type or shape");
  }
  tensor.type = type;
  tensor.shape = *shape;
  for (const TensorSliceProto& proto : meta.slice()) {
    const absl::StatusOr<TensorSlice> slice = TensorSlice::FromProto(proto);
    const absl::Status inside = slice.ok() ? slice->In(*shape).status() : slice.status();
    if (!inside.ok()) return damaged(StrCat(inside.message()));
    if (parts_[part].least_bytes >> 62 != 0) return damaged("the tensors claim too many elements");
    if (!part_of_key_.emplace(SliceKey(meta.name(), *slice), part).second) {
      return damaged(StrCat("the slice '", slice->ToString(), "' is there twice"));
    }
    const auto elements = static_cast<uint64_t>(slice->In(*shape)->shape().num_elements());
    parts_[part].least_bytes += std::min(elements, uint64_t{1} << 58) * LeastBytes(type);
    tensor.slices.push_back(*slice);
    tensor.bytes += static_cast<int64_t>(std::min(elements, uint64_t{1} << 56) * ElementSize(type));
  }
  if (tensor.slices.empty()) return damaged("no slice of it was saved");
  return absl::OkStatus();
}

absl::Status V1CheckpointReader::Damaged(const Piece& piece, const Part& part,
                                         std::string_view what) const {
  return absl::DataLossError(StrCat("Tensor '", piece.name, "', ", part.path, ", slice '",
                                    piece.saved->ToString(), "': ", what));
}

absl::StatusOr<std::string> V1CheckpointReader::BytesOf(const Piece& piece, const Part& part,
                                                        const std::string& key) const {
  absl::StatusOr<std::optional<std::string>> bytes = part.table->Get(key);
  if (!bytes.ok()) return WithContext(StrCat("Tensor '", piece.name, "', "), bytes.status());
  if (!bytes->has_value()) return Damaged(piece, part, "its values are missing");
  const auto elements = static_cast<uint64_t>(piece.place.shape().num_elements());
  if ((*bytes)->size() / LeastBytes(piece.tensor->type) >= elements) return **std::move(bytes);
  return Damaged(piece, part,
                 StrCat("its values have ", (*bytes)->size(), " bytes, too few for ", elements,
                        " of ", ElementTypeName(piece.tensor->type)));
}

absl::Status V1CheckpointReader::CheckPiece(const Piece& piece) const {
  const std::string key = SliceKey(piece.name, *piece.saved);
  return BytesOf(piece, parts_[part_of_key_.at(key)], key).status();
}

absl::StatusOr<Tensor> V1CheckpointReader::Load(const Piece& piece) const {
  const std::string key = SliceKey(piece.name, *piece.saved);
  const Part& part = parts_[part_of_key_.at(key)];
  const auto damaged = [&](std::string_view what) { return Damaged(piece, part, what); };
  TROUPE_ASSIGN_OR_RETURN(std::string bytes, BytesOf(piece, part, key));
  SavedTensorSlices record;
  if (!Parse(bytes, &record) || record.data().name() != piece.name) {
    return damaged("its values are damaged");
  }
  std::string().swap(bytes);
  TensorProto& values = *record.mutable_data()->mutable_data();
  const int64_t expected = piece.place.shape().num_elements();
  if (NumValues(values, piece.tensor->type) != expected) {
    return damaged(StrCat("it has ", NumValues(values, piece.tensor->type), " values of ",
                          ElementTypeName(piece.tensor->type), ", expected ", expected));
  }
  values.set_dtype(static_cast<DataType>(piece.tensor->type));
  values.clear_tensor_content();
  piece.place.shape().ToProto(values.mutable_tensor_shape());
  absl::StatusOr<Tensor> tensor = TakeTensorFromProto(&values);
  if (tensor.ok()) return tensor;
  return WithContext(StrCat("Tensor '", piece.name, "', ", part.path, ": "), tensor.status());
}

absl::Status V1CheckpointReader::ReadPiece(const Piece& piece, const TensorSlice& wanted,
                                           Tensor* to) const {
  TROUPE_ASSIGN_OR_RETURN(const Tensor part, Load(piece));
  CopyCommon(part, piece.place, wanted, to);
  return absl::OkStatus();
}

}  // namespace troupe

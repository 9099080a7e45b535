#include "devices/storage/checkpoint_reader.h"

#include <utility>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/bundle_files.h"
#include "devices/storage/bundle_reader.h"
#include "devices/storage/slice_copy.h"
#include "devices/storage/v1_checkpoint.h"

namespace troupe {

absl::StatusOr<const CheckpointTensor*> CheckpointReader::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return &found->second;
  return absl::NotFoundError(StrCat("Key ", name, " not found in checkpoint ", prefix_,
                                    ", which has ", tensors_.size(), " tensors"));
}

absl::Status CheckpointReader::CheckType(std::string_view name, ElementType type) const {
  if (ElementSize(type) > 0 && type != ElementType::kResource && type != ElementType::kVariant) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(StrCat("Tensor '", name, "' in ", prefix_, " is of type ",
                                         ElementTypeName(type), ", which cannot be read"));
}

absl::StatusOr<Tensor> CheckpointReader::Read(std::string_view name, Allocator* allocator) const {
  TROUPE_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(name));
  return ReadSlice(name, TensorSlice(tensor->shape.rank()), allocator);
}

absl::StatusOr<std::vector<CheckpointReader::Piece>> CheckpointReader::PiecesOf(
    std::string_view name, const CheckpointTensor& tensor, const TensorSlice& wanted) const {
  std::vector<Piece> pieces;
  if (tensor.slices.empty()) {
    TROUPE_ASSIGN_OR_RETURN(TensorSlice all, TensorSlice(tensor.shape.rank()).In(tensor.shape));
    pieces.push_back({name, &tensor, nullptr, std::move(all)});
    return pieces;
  }
  std::vector<TensorSlice> parts;
  for (const TensorSlice& slice : tensor.slices) {
    TROUPE_ASSIGN_OR_RETURN(TensorSlice place, slice.In(tensor.shape));
    std::optional<TensorSlice> part = Intersect(place, wanted);
    if (!part) continue;
    parts.push_back(*std::move(part));
    pieces.push_back({name, &tensor, &slice, std::move(place)});
  }
  const auto overlap = FindOverlap(parts);
  if (!overlap.ok()) {
    return WithContext(StrCat("Tensor '", name, "' in ", prefix_, ": "), overlap.status());
  }
  if (!overlap->has_value()) return pieces;
  const auto [one, other] = **overlap;
  return absl::DataLossError(StrCat("Tensor '", name, "' in ", prefix_, ": the slices '",
                                    pieces[one].saved->ToString(), "' and '",
                                    pieces[other].saved->ToString(), "' overlap"));
}

absl::Status CheckpointReader::CheckCovered(std::string_view name, const CheckpointTensor& tensor,
                                            const std::vector<Piece>& pieces,
                                            const TensorSlice& wanted) const {
  if (tensor.slices.empty()) return absl::OkStatus();
  int64_t covered = 0;
  for (const Piece& piece : pieces) {
    const std::optional<TensorSlice> part = Intersect(piece.place, wanted);
    if (part) covered += part->shape().num_elements();
  }
  const int64_t elements = wanted.shape().num_elements();
  if (covered == elements) return absl::OkStatus();
  return absl::NotFoundError(StrCat("Tensor '", name, "' of shape ", tensor.shape.ToString(),
                                    " in ", prefix_, ": the slices that were saved hold ", covered,
                                    " of the ", elements, " elements of '", wanted.ToString(),
                                    "'"));
}

absl::StatusOr<Tensor> CheckpointReader::ReadPieces(ElementType type,
                                                    absl::Span<const Piece> pieces,
                                                    const TensorSlice& wanted,
                                                    Allocator* allocator) const {
  for (const Piece& piece : pieces) TROUPE_RETURN_IF_ERROR(CheckPiece(piece));
  TROUPE_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(type, wanted.shape(), allocator));
  for (const Piece& piece : pieces) TROUPE_RETURN_IF_ERROR(ReadPiece(piece, wanted, &result));
  return result;
}

absl::StatusOr<Tensor> CheckpointReader::ReadSlice(std::string_view name, const TensorSlice& slice,
                                                   Allocator* allocator) const {
  return CatchExceptions([&]() -> absl::StatusOr<Tensor> {
    TROUPE_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(name));
    TROUPE_RETURN_IF_ERROR(CheckType(name, tensor->type));
    const absl::StatusOr<TensorSlice> wanted = slice.In(tensor->shape);
    if (!wanted.ok()) {
      return WithContext(StrCat("Tensor '", name, "' in ", prefix_, ": "), wanted.status());
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(name, *tensor, *wanted));
    TROUPE_RETURN_IF_ERROR(CheckCovered(name, *tensor, pieces, *wanted));
    return ReadPieces(tensor->type, pieces, *wanted, allocator);
  });
}

absl::Status CheckpointReader::Verify() const {
  return CatchExceptions([&]() -> absl::Status {
    for (const auto& [name, tensor] : tensors_) {
      // A type that cannot be read has a checksum that cannot be verified.
      if (!CheckType(name, tensor.type).ok()) continue;
      TROUPE_ASSIGN_OR_RETURN(const TensorSlice all,
                              TensorSlice(tensor.shape.rank()).In(tensor.shape));
      TROUPE_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(name, tensor, all));
      for (const Piece& piece : pieces) {
        TROUPE_RETURN_IF_ERROR(
            ReadPieces(tensor.type, {&piece, 1}, piece.place, HostAllocator()).status());
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(FileSystem* file_system,
                                                                 const std::string& prefix) {
  const absl::Status exists = file_system->Exists(BundleIndexFile(prefix));
  if (exists.ok()) return BundleReader::Open(file_system, prefix);
  if (!absl::IsNotFound(exists)) return exists;
  absl::StatusOr<std::unique_ptr<CheckpointReader>> v1 =
      V1CheckpointReader::Open(file_system, prefix);
  if (!absl::IsNotFound(v1.status())) return v1;
  return absl::NotFoundError(StrCat("There is no checkpoint ", prefix, ": neither ",
                                    BundleIndexFile(prefix), " nor ", prefix, " is there"));
}

}  // namespace troupe

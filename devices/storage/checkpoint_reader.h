/// Reads checkpoints of either format.
#ifndef TROUPE_DEVICES_STORAGE_CHECKPOINT_READER_H_
#define TROUPE_DEVICES_STORAGE_CHECKPOINT_READER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/allocator.h"
#include "devices/export.h"
#include "devices/storage/file_system.h"
#include "devices/storage/tensor_slice.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What a checkpoint says about a tensor.
struct CheckpointTensor {
  ElementType type = ElementType::kInvalid;
  Shape shape;
  /// Of a tensor that was saved in parts; empty if it was saved whole.
  std::vector<TensorSlice> slices;
  /// What its elements take in the files; of the V1 format, which has no fixed size for them, what
  /// they take in memory.
  int64_t bytes = 0;
};

/// An open checkpoint. The files may be a stranger's: whatever is read was verified by its
/// checksum, and memory is taken only for what is there. Errors name the tensor, the file and the
/// offset: NotFound for an unknown name or a lost file, InvalidArgument for a slice that is not
/// inside, DataLoss for damage, Unimplemented for types that hold no tensors here. Thread-safe.
class CheckpointReader {
 public:
  virtual ~CheckpointReader() = default;

  using Tensors = std::map<std::string, CheckpointTensor, std::less<>>;
  const Tensors& tensors() const { return tensors_; }
  absl::StatusOr<const CheckpointTensor*> Find(std::string_view name) const;

  /// A whole tensor, put together if it was saved in parts.
  absl::StatusOr<Tensor> Read(std::string_view name, Allocator* allocator = HostAllocator()) const;
  /// A part of a tensor, whichever way it was saved.
  absl::StatusOr<Tensor> ReadSlice(std::string_view name, const TensorSlice& slice,
                                   Allocator* allocator = HostAllocator()) const;
  /// Reads everything, one part after the other. The first error.
  absl::Status Verify() const;

 protected:
  /// Part of a tensor that was saved as one piece.
  struct Piece {
    std::string_view name;
    const CheckpointTensor* tensor = nullptr;
    const TensorSlice* saved = nullptr;  ///< as it was saved; null for the whole tensor
    TensorSlice place;                   ///< the same, lengths written out
  };

  explicit CheckpointReader(std::string prefix) : prefix_(std::move(prefix)) {}

  /// That the piece is there and as long as it should be: before memory is taken.
  virtual absl::Status CheckPiece(const Piece& piece) const = 0;
  /// Copies what the piece has of `wanted` to `to`, which holds the elements of `wanted`. The
  /// tensor is plain or of strings.
  virtual absl::Status ReadPiece(const Piece& piece, const TensorSlice& wanted,
                                 Tensor* to) const = 0;

  const std::string prefix_;  ///< for messages
  Tensors tensors_;

 private:
  absl::Status CheckType(std::string_view name, ElementType type) const;
  /// Those that have elements of `wanted`. DataLoss if two have the same ones.
  absl::StatusOr<std::vector<Piece>> PiecesOf(std::string_view name, const CheckpointTensor& tensor,
                                              const TensorSlice& wanted) const;
  /// NotFound if they do not have all elements of `wanted`.
  absl::Status CheckCovered(std::string_view name, const CheckpointTensor& tensor,
                            const std::vector<Piece>& pieces, const TensorSlice& wanted) const;
  absl::StatusOr<Tensor> ReadPieces(ElementType type, absl::Span<const Piece> pieces,
                                    const TensorSlice& wanted, Allocator* allocator) const;
};

/// Opens PREFIX.index and its data (V2), or the file or files PREFIX (V1, where the name may have
/// wildcards). NotFound if there is neither.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(FileSystem* file_system,
                                                                 const std::string& prefix);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_STORAGE_CHECKPOINT_READER_H_

/// Tensor lists: what the variants of the TensorList ops hold.
#ifndef TROUPE_KERNELS_DATA_TENSOR_LIST_H_
#define TROUPE_KERNELS_DATA_TENSOR_LIST_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/data/element_memory.h"
#include "kernels/data/variant_value.h"
#include "kernels/kernel.h"

namespace troupe {

/// A list of tensors of one element type whose shapes fit one partial shape. Elements may be
/// uninitialised (invalid tensors); a tail of those takes no memory. Thread-compatible.
class TensorList final : public VariantValue {
 public:
  static constexpr int64_t kMaxSize = INT32_MAX;
  /// Elements that memory is reserved for: a guard against indices that are mistakes.
  static constexpr int64_t kMaxStored = int64_t{1} << 26;

  TensorList(ElementType type, PartialShape element_shape, int64_t max_size = -1)
      : VariantValue(Kind::kList),
        type_(type),
        element_shape_(std::move(element_shape)),
        max_size_(max_size) {}
  TensorList(const TensorList&) = default;

  ElementType type() const { return type_; }
  const PartialShape& element_shape() const { return element_shape_; }
  /// As many elements may be pushed, -1: any number.
  int64_t max_size() const { return max_size_; }
  int64_t size() const { return size_; }
  /// An invalid tensor if the element is not initialised. `i` must be within the list.
  const Tensor& at(int64_t i) const {
    static const Tensor uninitialized{};
    return i < static_cast<int64_t>(stored_.size()) ? stored_[i] : uninitialized;
  }
  /// The elements up to the last one that is initialised; there may be uninitialised ones.
  absl::Span<const Tensor> stored() const { return stored_; }

  /// InvalidArgument unless a tensor of this type and shape may be an element; `action`: "append".
  absl::Status Check(const Tensor& tensor, const char* action) const {
    if (tensor.type() == type_ && element_shape_.IsCompatibleWith(tensor.shape())) {
      return absl::OkStatus();
    }
    return Refuse(tensor, action);
  }
  /// InvalidArgument unless an op that handles elements of `type` may use the list.
  absl::Status CheckType(ElementType type) const {
    return type == type_ ? absl::OkStatus() : RefuseType(type);
  }

  // Changes: by a sole owner. Tensors must have been checked.
  absl::Status Push(Tensor tensor);  ///< ResourceExhausted
  Tensor Pop();                      ///< The list must not be empty.
  absl::Status Set(int64_t i, Tensor tensor);
  void Resize(int64_t size);
  void Reserve(int64_t size) { stored_.reserve(size); }

  /// Element `i` where kernels want it, zeros if it is not initialised: of the list's element shape
  /// merged with what input `shape_input` of the op says, and with the shapes of other elements if
  /// that leaves something unknown. InvalidArgument.
  absl::StatusOr<Tensor> Read(int64_t i, const Tensor& shape_input,
                              const ElementMemory& memory) const;
  /// The list's element shape merged with the one that an input gives. InvalidArgument.
  absl::StatusOr<PartialShape> MergedShape(const Tensor& shape_input) const;

  const char* name() const override { return "TensorList"; }
  RefPtr<VariantValue> Copy() const override { return MakeRef<TensorList>(*this); }
  absl::StatusOr<RefPtr<VariantValue>> ZerosLike(const ElementMemory& memory) const override;
  absl::Status AddFrom(const VariantValue& other, const ElementMemory& memory) override;
  absl::Span<Tensor> tensors() override { return absl::MakeSpan(stored_); }

 private:
  absl::Status Refuse(const Tensor& tensor, const char* action) const;
  absl::Status RefuseType(ElementType type) const;
  absl::Status StoreUpTo(int64_t size);

  ElementType type_;
  PartialShape element_shape_;
  int64_t max_size_;
  int64_t size_ = 0;
  std::vector<Tensor> stored_;
};

/// The list in a variant; InvalidArgument if there is none.
absl::StatusOr<const TensorList*> ListIn(const Variant& variant);
/// The list in a scalar variant tensor.
absl::StatusOr<const TensorList*> ListIn(const Tensor& tensor);
/// Output `out` becomes the list of input `in`, to be changed: the very list if this kernel is its
/// last user, so that nothing is copied; else a copy that shares the elements.
absl::StatusOr<TensorList*> TakeList(KernelContext& ctx, int in, int out);
/// Output `out` becomes a list.
absl::Status PutList(KernelContext& ctx, int out, RefPtr<TensorList> list);

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_TENSOR_LIST_H_

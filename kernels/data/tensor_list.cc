#include "kernels/data/tensor_list.h"

#include <algorithm>
#include <new>

#include "devices/status_macros.h"
#include "graph/shape_inference.h"

namespace troupe {

absl::Status TensorList::Refuse(const Tensor& tensor, const char* action) const {
  if (tensor.type() != type_) {
    return InvalidArgument("Invalid data types; list elements are ", ElementTypeName(type_),
                           " but tried to ", action, " ", ElementTypeName(tensor.type()));
  }
  return InvalidArgument("Tried to ", action, " a tensor with incompatible shape. Item shape: ",
                         tensor.shape().ToString(),
                         ", element shape of the list: ", element_shape_.ToString());
}

absl::Status TensorList::RefuseType(ElementType type) const {
  return InvalidArgument("Invalid data types; op elements are ", ElementTypeName(type),
                         " but list elements are ", ElementTypeName(type_));
}

absl::Status TensorList::StoreUpTo(int64_t size) {
  if (size <= static_cast<int64_t>(stored_.size())) return absl::OkStatus();
  if (size > kMaxStored) {
    return absl::ResourceExhaustedError(
        StrCat("a list of ", size, " elements is too large: ", kMaxStored, " can be stored"));
  }
  try {
    if (size > static_cast<int64_t>(stored_.capacity())) {
      // Loops write one element after the other; those that go backwards begin with the last one.
      stored_.reserve(std::max<int64_t>(size, std::min<int64_t>(2 * stored_.size(), kMaxStored)));
    }
    stored_.resize(size);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(StrCat("no memory for a list of ", size, " elements"));
  }
  return absl::OkStatus();
}

absl::Status TensorList::Push(Tensor tensor) {
  TROUPE_RETURN_IF_ERROR(Nest(tensor));
  if (static_cast<int64_t>(stored_.size()) < size_) TROUPE_RETURN_IF_ERROR(StoreUpTo(size_));
  if (size_ >= kMaxStored) return StoreUpTo(size_ + 1);
  stored_.push_back(std::move(tensor));
  ++size_;
  return absl::OkStatus();
}

Tensor TensorList::Pop() {
  Tensor last;
  if (static_cast<int64_t>(stored_.size()) == size_) {
    last = std::move(stored_.back());
    stored_.pop_back();
  }
  --size_;
  return last;
}

absl::Status TensorList::Set(int64_t i, Tensor tensor) {
  TROUPE_RETURN_IF_ERROR(Nest(tensor));
  TROUPE_RETURN_IF_ERROR(StoreUpTo(i + 1));
  stored_[i] = std::move(tensor);
  return absl::OkStatus();
}

void TensorList::Resize(int64_t size) {
  if (size < static_cast<int64_t>(stored_.size())) stored_.resize(size);
  size_ = size;
}

absl::StatusOr<PartialShape> TensorList::MergedShape(const Tensor& shape_input) const {
  TROUPE_ASSIGN_OR_RETURN(const PartialShape given,
                          InferenceContext::TensorAsShape(shape_input, true));
  return given.MergeWith(element_shape_);
}

absl::StatusOr<Tensor> TensorList::Read(int64_t i, const Tensor& shape_input,
                                        const ElementMemory& memory) const {
  if (at(i).valid()) return memory.Fetch(at(i));
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, MergedShape(shape_input));
  if (!shape.fully_known()) {
    for (const Tensor& other : stored_) {
      if (!other.valid()) continue;
      TROUPE_ASSIGN_OR_RETURN(shape, shape.MergeWith(other.shape()));
    }
  }
  if (!shape.fully_known()) {
    return InvalidArgument("Trying to read an uninitialized element, ", i,
                           ", but element_shape is not fully defined: ", shape.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape known, shape.ToShape());
  return memory.Zeros(type_, known);
}

absl::StatusOr<RefPtr<VariantValue>> TensorList::ZerosLike(const ElementMemory& memory) const {
  auto zeros = MakeRef<TensorList>(type_, element_shape_, max_size_);
  zeros->size_ = size_;
  zeros->set_depth(depth());
  // Uninitialised elements read as zeros where their shape is known. Lists in lists keep theirs.
  if (element_shape_.fully_known() && type_ != ElementType::kVariant) return {std::move(zeros)};
  zeros->stored_.resize(stored_.size());
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!stored_[i].valid()) continue;
    TROUPE_ASSIGN_OR_RETURN(zeros->stored_[i], memory.ZerosLike(stored_[i]));
  }
  return {std::move(zeros)};
}

absl::Status TensorList::AddFrom(const VariantValue& value, const ElementMemory& memory) {
  const auto& other = static_cast<const TensorList&>(value);
  if (other.type_ != type_) {
    return InvalidArgument("Trying to add two lists of tensors of different dtypes: ",
                           ElementTypeName(type_), " and ", ElementTypeName(other.type_));
  }
  if (other.size_ != size_) {
    return InvalidArgument("Trying to add two lists of tensors with different lengths: ", size_,
                           " and ", other.size_);
  }
  if (!(element_shape_ == other.element_shape_)) {
    absl::StatusOr<PartialShape> merged = element_shape_.MergeWith(other.element_shape_);
    if (!merged.ok()) {
      return InvalidArgument(
          "Trying to add two lists of tensors with incompatible element shapes: ",
          element_shape_.ToString(), " and ", other.element_shape_.ToString());
    }
    element_shape_ = *std::move(merged);
  }
  TROUPE_RETURN_IF_ERROR(StoreUpTo(other.stored_.size()));
  for (size_t i = 0; i < other.stored_.size(); ++i) {
    const Tensor& addend = other.stored_[i];
    if (!addend.valid()) continue;
    if (stored_[i].valid()) {
      TROUPE_RETURN_IF_ERROR(memory.Add(&stored_[i], addend));
    } else {
      stored_[i] = addend;
    }
  }
  if (other.depth() > depth()) set_depth(other.depth());
  return absl::OkStatus();
}

absl::StatusOr<const TensorList*> ListIn(const Variant& variant) {
  const VariantValue* value = ValueOf(variant);
  if (value == nullptr || value->kind() != VariantValue::Kind::kList) {
    return InvalidArgument("Input handle is not a list. Saw: ", value != nullptr  ? value->name()
                                                                : variant.empty() ? "nothing"
                                                                                  : "?");
  }
  return static_cast<const TensorList*>(value);
}

absl::StatusOr<const TensorList*> ListIn(const Tensor& tensor) {
  if (tensor.rank() != 0) {
    return InvalidArgument("Input list must be a scalar saw: ", tensor.shape().ToString());
  }
  return ListIn(tensor.unchecked_scalar<Variant>());
}

absl::StatusOr<TensorList*> TakeList(KernelContext& ctx, int in, int out) {
  TROUPE_ASSIGN_OR_RETURN(const TensorList* list, ListIn(ctx.input(in)));
  if (ctx.CanForward(in) && list->unique()) {
    ctx.PassThrough(in, out);
    return const_cast<TensorList*>(list);
  }
  auto copy = MakeRef<TensorList>(*list);
  TensorList* taken = copy.get();
  TROUPE_RETURN_IF_ERROR(PutList(ctx, out, std::move(copy)));
  return taken;
}

absl::Status PutList(KernelContext& ctx, int out, RefPtr<TensorList> list) {
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, MakeVariantTensor(std::move(list), ctx.step().allocator));
  ctx.set_output(out, std::move(tensor));
  return absl::OkStatus();
}

}  // namespace troupe

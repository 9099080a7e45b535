/// What the elements of variant tensors hold: tensor lists, optionals.
#ifndef TROUPE_KERNELS_DATA_VARIANT_VALUE_H_
#define TROUPE_KERNELS_DATA_VARIANT_VALUE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/allocator.h"
#include "devices/ref_counted.h"
#include "devices/resource_handle.h"
#include "devices/tensor.h"

namespace troupe {

class ElementMemory;

/// A value behind a variant, held there as `RefPtr<VariantValue>`. Shared by the variants that are
/// copies of one another and not changed while it is; a sole owner (`unique()`) may change it in
/// place. Thread-compatible.
class VariantValue : public RefCounted {
 public:
  enum class Kind : uint8_t { kList, kOptional };
  /// Values hold tensors that may hold values again, up to this many levels: more would make the
  /// recursion that destroys them run out of stack.
  static constexpr int kMaxDepth = 500;

  Kind kind() const { return kind_; }
  /// At least the number of levels of values, this one included.
  int depth() const { return depth_; }
  /// Notes that `element` is part of this value. InvalidArgument if that is one level too many.
  absl::Status Nest(const Tensor& element);

  /// "TensorList", "Optional": for messages.
  virtual const char* name() const = 0;
  /// A value of its own that shares the tensors.
  virtual RefPtr<VariantValue> Copy() const = 0;
  /// The same with zeros for the tensors.
  virtual absl::StatusOr<RefPtr<VariantValue>> ZerosLike(const ElementMemory& memory) const = 0;
  /// Adds another value's tensors to those of this one, which nobody else may hold.
  /// InvalidArgument if they do not fit.
  virtual absl::Status AddFrom(const VariantValue& other, const ElementMemory& memory) = 0;
  /// What it holds, invalid tensors among it. Only a sole owner may replace any.
  virtual absl::Span<Tensor> tensors() = 0;

 protected:
  explicit VariantValue(Kind kind) : kind_(kind) {}
  VariantValue(const VariantValue& other)
      : RefCounted(), kind_(other.kind_), depth_(other.depth_) {}
  void set_depth(int depth) { depth_ = depth; }

 private:
  Kind kind_;
  int depth_ = 1;
};

/// What a variant holds; nullptr if it is empty or holds something else.
inline VariantValue* ValueOf(const Variant& variant) {
  const RefPtr<VariantValue>* value = variant.get<RefPtr<VariantValue>>();
  return value == nullptr ? nullptr : value->get();
}
/// A scalar variant tensor. ResourceExhausted.
absl::StatusOr<Tensor> MakeVariantTensor(RefPtr<VariantValue> value, Allocator* allocator);

}  // namespace troupe

#endif  // TROUPE_KERNELS_DATA_VARIANT_VALUE_H_

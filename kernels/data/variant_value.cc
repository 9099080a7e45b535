#include "kernels/data/variant_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/loops.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

absl::Status AddVariant(Variant* sum, const Variant& addend, Allocator* allocator) {
  if (addend.empty()) return absl::OkStatus();
  if (sum->empty()) {
    *sum = addend;
    return absl::OkStatus();
  }
  VariantValue *a = ValueOf(*sum), *b = ValueOf(addend);
  if (a == nullptr || b == nullptr || a->kind() != b->kind()) {
    return InvalidArgument("variants can only be added if they hold values of one kind, got ",
                           a == nullptr ? "?" : a->name(), " and ", b == nullptr ? "?" : b->name());
  }
  if (a->unique() && a != b) return a->AddFrom(*b, allocator);
  RefPtr<VariantValue> copy = a->Copy();
  TROUPE_RETURN_IF_ERROR(copy->AddFrom(*b, allocator));
  *sum = Variant(std::move(copy));
  return absl::OkStatus();
}

absl::Status AddVariants(Tensor* sum, const Tensor& addend, Allocator* allocator) {
  const int64_t n = sum->num_elements();
  if (!sum->unique()) {
    TROUPE_ASSIGN_OR_RETURN(Tensor own, sum->Clone(allocator));
    *sum = std::move(own);
  }
  for (int64_t i = 0; i < n; ++i) {
    TROUPE_RETURN_IF_ERROR(AddVariant(sum->mutable_data<Variant>() + i,
                                      addend.unchecked_data<Variant>()[i], allocator));
  }
  return absl::OkStatus();
}

/// AddN of variants.
absl::Status AddVariantsKernel(KernelContext& ctx) {
  // Into the first one if it may be changed; of two, into either: the order is the same.
  const int count = ctx.num_inputs();
  const int target = count == 2 && !ctx.CanForward(0) && ctx.CanForward(1) ? 1 : 0;
  Tensor sum = ctx.TakeInput(target);
  for (int i = 0; i < count; ++i) {
    if (i == target) continue;
    TROUPE_RETURN_IF_ERROR(AddTensor(&sum, ctx.input(i), ctx.step().allocator));
  }
  ctx.set_output(0, std::move(sum));
  return absl::OkStatus();
}

absl::Status ZeroVariantsKernel(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(Tensor zeros, ZerosLikeTensor(ctx.input(0), ctx.step().allocator));
  ctx.set_output(0, std::move(zeros));
  return absl::OkStatus();
}

KernelSpec ForVariants(const char* op) {
  return KernelSpec(op).Types("T", {ElementType::kVariant}).Cost(KernelCost::kCheap).Priority(1);
}
REGISTER_KERNEL(ForVariants("AddN"), MakeKernel<AddVariantsKernel>);
REGISTER_KERNEL(ForVariants("ZerosLike"), MakeKernel<ZeroVariantsKernel>);

}  // namespace

absl::Status VariantValue::Nest(const Tensor& element) {
  if (element.type() != ElementType::kVariant) return absl::OkStatus();
  int depth = depth_;
  for (const Variant& variant : element.unchecked_values<Variant>()) {
    if (const VariantValue* value = ValueOf(variant)) depth = std::max(depth, value->depth_ + 1);
  }
  if (depth > kMaxDepth) {
    return InvalidArgument("a ", name(), " may hold lists and optionals that hold others up to ",
                           kMaxDepth, " levels deep");
  }
  depth_ = depth;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> MakeVariantTensor(RefPtr<VariantValue> value, Allocator* allocator) {
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::Allocate(ElementType::kVariant, Shape(), allocator));
  *tensor.mutable_data<Variant>() = Variant(std::move(value));
  return tensor;
}

absl::Status AddTensor(Tensor* sum, const Tensor& addend, Allocator* allocator) {
  if (sum->type() != addend.type() || !(sum->shape() == addend.shape())) {
    return InvalidArgument("cannot add ", ElementTypeName(addend.type()), addend.shape().ToString(),
                           " to ", ElementTypeName(sum->type()), sum->shape().ToString(),
                           ": types and shapes must be the same");
  }
  if (sum->type() == ElementType::kVariant) return AddVariants(sum, addend, allocator);
  const simd::BinaryFn add = IsPlain(sum->type()) && sum->type() != ElementType::kBool
                                 ? FindBinary(simd::kAdd, sum->type()).aa
                                 : nullptr;
  if (add == nullptr) {
    return absl::UnimplementedError(
        StrCat("tensors of type ", ElementTypeName(sum->type()), " cannot be added"));
  }
  const int64_t n = sum->num_elements();
  if (sum->unique() && !sum->SharesBufferWith(addend)) {
    add(sum->raw_data(), addend.raw_data(), sum->mutable_raw_data(), n);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(sum->type(), sum->shape(), allocator));
  add(sum->raw_data(), addend.raw_data(), result.mutable_raw_data(), n);
  *sum = std::move(result);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Zeros(ElementType type, const Shape& shape, Allocator* allocator) {
  TROUPE_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(type, shape, allocator));
  if (IsPlain(type) && zeros.bytes() > 0) std::memset(zeros.mutable_raw_data(), 0, zeros.bytes());
  return zeros;
}

absl::StatusOr<Tensor> ZerosLikeTensor(const Tensor& tensor, Allocator* allocator) {
  TROUPE_ASSIGN_OR_RETURN(Tensor zeros, Zeros(tensor.type(), tensor.shape(), allocator));
  if (tensor.type() != ElementType::kVariant) return zeros;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Variant& from = tensor.unchecked_data<Variant>()[i];
    if (from.empty()) continue;
    const VariantValue* value = ValueOf(from);
    if (value == nullptr) {
      return absl::UnimplementedError("zeros like a variant that holds no list and no optional");
    }
    TROUPE_ASSIGN_OR_RETURN(RefPtr<VariantValue> zero, value->ZerosLike(allocator));
    zeros.mutable_data<Variant>()[i] = Variant(std::move(zero));
  }
  return zeros;
}

}  // namespace troupe

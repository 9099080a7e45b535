#include "kernels/data/variant_value.h"

#include <algorithm>
#include <utility>

#include "kernels/data/element_memory.h"

namespace troupe {
namespace {

/// AddN of variants.
absl::Status AddVariants(KernelContext& ctx, ElementMemory& memory) {
  // Into the first one if it may be changed; of two, into either: the order is the same.
  const int count = ctx.num_inputs();
  const int target = count == 2 && !ctx.CanForward(0) && ctx.CanForward(1) ? 1 : 0;
  Tensor sum = ctx.TakeInput(target);
  for (int i = 0; i < count; ++i) {
    if (i == target) continue;
    TROUPE_RETURN_IF_ERROR(memory.Add(&sum, ctx.input(i)));
  }
  ctx.set_output(0, std::move(sum));
  return absl::OkStatus();
}

absl::Status ZeroVariants(KernelContext& ctx, ElementMemory& memory) {
  TROUPE_ASSIGN_OR_RETURN(Tensor zeros, memory.ZerosLike(ctx.input(0)));
  ctx.set_output(0, std::move(zeros));
  return absl::OkStatus();
}

KernelSpec ForVariants(const char* op) {
  return Cheap(op).Device("DEFAULT").Types("T", {ElementType::kVariant});
}
REGISTER_KERNEL(ForVariants("AddN"), MakeElementKernel<AddVariants>);
REGISTER_KERNEL(ForVariants("ZerosLike"), MakeElementKernel<ZeroVariants>);

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

}  // namespace troupe

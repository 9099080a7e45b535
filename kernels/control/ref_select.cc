// RefSelect.
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

absl::Status RefSelect(KernelContext& ctx) {
  if (ctx.input(0).rank() != 0) {
    return InvalidArgument("Index must be a scalar, but it has shape ",
                           ctx.input(0).shape().ToString());
  }
  const int32_t index = ctx.input(0).unchecked_scalar<int32_t>(), count = ctx.num_inputs() - 1;
  if (index < 0 || index >= count) {
    return InvalidArgument("Index must be in the range [0, ", count, ") but got ", index);
  }
  ctx.set_output_ref(0, ctx.input_ref(1 + index));
  return absl::OkStatus();
}

REGISTER_KERNEL(
    KernelSpec("RefSelect").Types("T", AllTypes()).HostMemory("index").Cost(KernelCost::kCheap),
    MakeKernel<RefSelect>);

}  // namespace
}  // namespace troupe

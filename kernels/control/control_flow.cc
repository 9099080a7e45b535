// The primitive ops of control flow. The executor plays most of them itself, because they are about
// which nodes run; what is registered here says that every device and type has them.
#include "kernels/common/registration.h"

namespace troupe {
namespace {

class PlayedByExecutor : public Kernel {
 public:
  PlayedByExecutor(KernelConstruction& construction, absl::Status*) : op_(construction.op()) {}
  absl::Status Compute(KernelContext&) override {
    return absl::UnimplementedError(StrCat(op_, " has no meaning outside an executor"));
  }

 private:
  const std::string op_;
};

absl::Status RefIdentity(KernelContext& ctx) {
  ctx.set_output_ref(0, ctx.input_ref(0));
  return absl::OkStatus();
}

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

REGISTER_KERNELS(Cheap("Switch"), MakeKernel<PlayedByExecutor>, "RefSwitch", "Merge", "RefMerge",
                 "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration",
                 "LoopCond", "ControlTrigger");
REGISTER_KERNEL(Cheap("RefIdentity").Device("DEFAULT"), MakeKernel<RefIdentity>);
REGISTER_KERNEL(Cheap("RefSelect").Device("DEFAULT").Types("T", AllTypes()), MakeKernel<RefSelect>);

}  // namespace
}  // namespace troupe

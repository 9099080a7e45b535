// The primitive ops of control flow. The executor plays them itself, because they are about which
// nodes run; what is registered here says that every device and type has them.
#include "kernels/kernel_registry.h"

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

/// Passes a reference on.
absl::Status RefIdentityKernel(KernelContext& ctx) {
  ctx.set_output_ref(0, ctx.input_ref(0));
  return absl::OkStatus();
}

void RegisterPlayed(const char* op) {
  KernelRegistry::Global()->Register(KernelSpec(op).Cost(KernelCost::kCheap),
                                     MakeKernel<PlayedByExecutor>);
}

[[maybe_unused]] const bool registered = [] {
  for (const char* op :
       {"Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit",
        "NextIteration", "RefNextIteration", "LoopCond", "ControlTrigger"}) {
    RegisterPlayed(op);
  }
  return true;
}();

REGISTER_KERNEL(KernelSpec("RefIdentity").Cost(KernelCost::kCheap), MakeKernel<RefIdentityKernel>);

}  // namespace
}  // namespace troupe

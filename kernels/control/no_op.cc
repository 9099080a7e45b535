// NoOp, Assert.
#include "absl/strings/str_cat.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

absl::Status NoOp(KernelContext&) { return absl::OkStatus(); }

class Assert : public Kernel {
 public:
  Assert(KernelConstruction& construction, absl::Status* status) {
    *status = construction.GetAttr("summarize", &summarize_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& condition = ctx.input(0);
    if (condition.rank() != 0) {
      return InvalidArgument("the condition must be a scalar, got shape ",
                             condition.shape().ToString());
    }
    if (condition.unchecked_scalar<bool>()) return absl::OkStatus();
    std::string message = "assertion failed:";
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      absl::StrAppend(&message, " ",
                      ctx.input(i).ToString(summarize_ < 0 ? INT32_MAX : summarize_));
    }
    return absl::InvalidArgumentError(message);
  }

 private:
  int32_t summarize_ = 3;
};

REGISTER_KERNEL(KernelSpec("NoOp").Cost(KernelCost::kCheap), MakeKernel<NoOp>);
REGISTER_KERNEL(KernelSpec("Assert").Cost(KernelCost::kCheap), MakeKernel<Assert>);

}  // namespace
}  // namespace troupe

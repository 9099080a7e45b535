// NoOp, Assert.
#include "absl/strings/str_cat.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

absl::Status NoOp(KernelContext&) { return absl::OkStatus(); }

absl::Status Assert(KernelContext& ctx, int32_t summarize) {
  const Tensor& condition = ctx.input(0);
  if (condition.rank() != 0) {
    return InvalidArgument("the condition must be a scalar, got shape ",
                           condition.shape().ToString());
  }
  if (condition.unchecked_scalar<bool>()) return absl::OkStatus();
  std::string message = "assertion failed:";
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    absl::StrAppend(&message, " ", ctx.input(i).ToString(summarize < 0 ? INT32_MAX : summarize));
  }
  return absl::InvalidArgumentError(message);
}

REGISTER_KERNEL(Cheap("NoOp"), MakeKernel<NoOp>);
REGISTER_KERNEL(Cheap("Assert").Device("DEFAULT").HostMemory("*"),
                (MakeAttrKernel<Assert, "summarize">));

}  // namespace
}  // namespace troupe

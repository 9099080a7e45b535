// _Arg and _Retval, which calls play; ToBool.
#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/control/truth.h"
#include "kernels/type_switch.h"

namespace troupe {

absl::StatusOr<bool> TruthOf(const Tensor& value) {
  if (value.rank() != 0) return value.num_elements() > 0;
  bool truth = false;
  if (value.type() == ElementType::kString) return !value.unchecked_scalar<std::string>().empty();
  if (value.type() == ElementType::kHalf)
    return static_cast<float>(value.unchecked_scalar<half>()) != 0;
  if (value.type() == ElementType::kBfloat16) {
    return static_cast<float>(value.unchecked_scalar<bfloat16>()) != 0;
  }
  absl::Status status = SwitchType<bool, int32_t, int64_t, float, double, int8_t, int16_t, uint8_t,
                                   uint16_t, uint32_t, uint64_t>(value.type(), [&]<typename T>() {
    truth = value.unchecked_scalar<T>() != T{0};
    return absl::OkStatus();
  });
  if (status.ok()) return truth;
  return InvalidArgument("a scalar of type ", ElementTypeName(value.type()),
                         " is neither true nor false: expected bool, a number or a string");
}

namespace {

/// Only functions have arguments and results.
absl::Status Argument(KernelContext&, int64_t index) {
  return absl::FailedPreconditionError(
      StrCat("argument ", index, " has no value: the node is not run by a call of a function"));
}

/// A result is fetched where it comes from.
absl::Status Result(KernelContext&) { return absl::OkStatus(); }

absl::Status ToBool(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const bool truth, TruthOf(ctx.input(0)));
  ctx.set_output(0, Tensor::Scalar(truth));
  return absl::OkStatus();
}

REGISTER_KERNEL(Cheap("_Arg"), (MakeAttrKernel<Argument, "index">));
REGISTER_KERNEL(Cheap("_Retval"), MakeKernel<Result>);
REGISTER_KERNEL(Cheap("ToBool"), MakeKernel<ToBool>);

}  // namespace
}  // namespace troupe

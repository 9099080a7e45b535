// Conv3D and its gradients on the CPU.
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/volume_conv.h"

namespace troupe {
namespace {

class CpuConv : public Kernel {
 public:
  explicit CpuConv(ConvOp op) : op_(op), engine_(op) {}

 protected:
  static absl::Status Prepare() { return absl::OkStatus(); }
  absl::Status Run(KernelContext& ctx, const ConvShape& shape, const Tensor& a, const Tensor& b,
                   const Shape& result) {
    return engine_.Run(ctx, shape, a, b, result,
                       op_ != ConvOp::kBackwardFilter && ctx.InputIsConstant(1));
  }

 private:
  const ConvOp op_;
  ConvEngine engine_;
};

using Forward = Conv3DKernel<CpuConv, /*kIsCpu=*/true>;
using BackpropInput = Conv3DBackpropInputKernel<CpuConv, /*kIsCpu=*/true>;
using BackpropFilter = Conv3DBackpropFilterKernel<CpuConv, /*kIsCpu=*/true>;

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Cost(KernelCost::kExpensive);
}
const std::vector<ElementType>& OldTypes() {
  static const auto* types =
      new std::vector<ElementType>{ElementType::kHalf, ElementType::kFloat, ElementType::kDouble};
  return *types;
}

REGISTER_KERNEL(Spec("Conv3D", FloatTypes()), MakeKernel<Forward>);
REGISTER_KERNEL(Spec("Conv3DBackpropInput", OldTypes()), MakeKernel<BackpropInput>);
REGISTER_KERNEL(Spec("Conv3DBackpropInputV2", FloatTypes()), MakeKernel<BackpropInput>);
REGISTER_KERNEL(Spec("Conv3DBackpropFilter", OldTypes()), MakeKernel<BackpropFilter>);
REGISTER_KERNEL(Spec("Conv3DBackpropFilterV2", FloatTypes()), MakeKernel<BackpropFilter>);

}  // namespace
}  // namespace troupe

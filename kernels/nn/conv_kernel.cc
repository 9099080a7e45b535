// Conv: a convolution over images or volumes, whichever the rank of its input tells.
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_windows.h"

namespace troupe {
namespace {

class GeneralConvKernel final : public Kernel {
 public:
  GeneralConvKernel(KernelConstruction& construction, absl::Status* status)
      : engine_(ConvOp::kForward) {
    *status = conv_.Read(construction, /*is_cpu=*/true);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const auto resolved, conv_.Resolve(input.shape(), filter.shape()));
    return engine_.Run(ctx, resolved.first, input, filter, resolved.second, ctx.InputIsConstant(1));
  }

 private:
  GeneralConv conv_;
  ConvEngine engine_;
};

std::vector<ElementType> Types() {
  std::vector<ElementType> types = FloatTypes();
  types.push_back(ElementType::kInt32);
  return types;
}

REGISTER_KERNEL(KernelSpec("Conv").Types("T", Types()).Cost(KernelCost::kExpensive),
                MakeKernel<GeneralConvKernel>);

}  // namespace
}  // namespace troupe

// Special functions of mathematics of GPUs: Digamma, Igamma, Betainc and their kin.
#include <algorithm>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/one_type_kernel.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/special.h"
#include "kernels/math/same_shape.h"

namespace troupe::cuda {
namespace {

using enum ElementType;

absl::Status Enqueued(cudaError_t error) { return CudaStatus(error, "a special function"); }

template <SpecialOp kOp>
class UnaryKernel final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    const void* x = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0));
    return Enqueued(
        LaunchSpecial(kOp, type_, x, y->mutable_raw_data(), y->num_elements(), StreamOf(ctx)));
  }
};

template <SpecialBinaryOp kOp>
class BinaryKernel final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const BinaryCall call, BroadcastCall(ctx, ctx.input(0).type()));
    return Enqueued(LaunchSpecialBinary(kOp, type_, call, StreamOf(ctx)));
  }
};

class BetaincKernel final : public OneTypeKernel {
 public:
  using OneTypeKernel::OneTypeKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const BetaincInputs inputs, CheckBetainc(ctx));
    const Tensor& like = ctx.input(inputs.shaped);
    TROUPE_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, like.type(), like.shape()));
    BetaincCall call{.out = z->mutable_raw_data(), .n = z->num_elements()};
    for (int i = 0; i < 3; ++i) call.operands[i] = ctx.input(i).raw_data();
    std::copy_n(inputs.steps.begin(), 3, call.steps);
    return Enqueued(LaunchBetainc(type_, call, StreamOf(ctx)));
  }
};

}  // namespace

void RegisterSpecial(Extension& extension) {
  const auto add = [&extension](const char* op, KernelFactory factory, bool half = false) {
    std::vector<ElementType> types = {kFloat, kDouble};
    if (half) types.push_back(kHalf);
    extension.Kernel(KernelSpec(op).Device("GPU").Types("T", types), factory);
  };
  add("Betainc", MakeKernel<BetaincKernel>);
  add("Dawsn", MakeKernel<UnaryKernel<SpecialOp::kDawsn>>);
  add("Digamma", MakeKernel<UnaryKernel<SpecialOp::kDigamma>>, /*half=*/true);
  add("Erfinv", MakeKernel<UnaryKernel<SpecialOp::kErfinv>>);
  add("Expint", MakeKernel<UnaryKernel<SpecialOp::kExpint>>);
  add("FresnelCos", MakeKernel<UnaryKernel<SpecialOp::kFresnelCos>>);
  add("FresnelSin", MakeKernel<UnaryKernel<SpecialOp::kFresnelSin>>);
  add("Igamma", MakeKernel<BinaryKernel<SpecialBinaryOp::kIgamma>>);
  add("IgammaGradA", MakeKernel<BinaryKernel<SpecialBinaryOp::kIgammaGradA>>);
  add("Igammac", MakeKernel<BinaryKernel<SpecialBinaryOp::kIgammac>>);
  add("Lgamma", MakeKernel<UnaryKernel<SpecialOp::kLgamma>>, /*half=*/true);
  add("Ndtri", MakeKernel<UnaryKernel<SpecialOp::kNdtri>>);
  add("Polygamma", MakeKernel<BinaryKernel<SpecialBinaryOp::kPolygamma>>);
  add("RandomGammaGrad", MakeKernel<BinaryKernel<SpecialBinaryOp::kRandomGammaGrad>>);
  add("Spence", MakeKernel<UnaryKernel<SpecialOp::kSpence>>);
  add("Zeta", MakeKernel<BinaryKernel<SpecialBinaryOp::kZeta>>);
}

}  // namespace troupe::cuda

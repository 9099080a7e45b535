// RandomGammaGrad.
#include <unsupported/Eigen/SpecialFunctions>

#include "kernels/common/broadcast.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status RandomGammaGrad(KernelContext& ctx) {
  const Tensor &alpha = ctx.input(0), &sample = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(alpha.shape(), sample.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, alpha.type(), shape));
  const BroadcastWalk walk(shape, {&alpha.shape(), &sample.shape()});
  return SwitchType<float, double>(alpha.type(), [&]<typename T>() {
    constexpr double kElementNs = 500;
    const T *alphas = alpha.unchecked_data<T>(), *samples = sample.unchecked_data<T>();
    T* grads = out->mutable_data<T>();
    const double run_ns = kElementNs * static_cast<double>(walk.run_length());
    ctx.ParallelFor(
        walk.num_runs(), KernelContext::GrainFor(run_ns), [&](int64_t begin, int64_t end) {
          walk.ForEach(begin, end, [&](int64_t at, const BroadcastWalk::Offsets& from) {
            for (int64_t i = 0; i < walk.run_length(); ++i) {
              grads[at + i] = Eigen::numext::gamma_sample_der_alpha(
                  alphas[from[0] + i * walk.run_step(0)], samples[from[1] + i * walk.run_step(1)]);
            }
          });
        });
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(
    KernelSpec("RandomGammaGrad").Types("T", {ElementType::kFloat, ElementType::kDouble}),
    MakeKernel<RandomGammaGrad>);

}  // namespace
}  // namespace troupe

// ApproximateEqual and Betainc, whose inputs are not broadcast like those of other ops.
#include <array>
#include <cmath>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/math/incomplete_beta.h"
#include "kernels/math/same_shape.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status ApproximateEqual(KernelContext& ctx, float tolerance) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckSameShape(x.shape(), y.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, ElementType::kBool, x.shape()));
  return SwitchType<float, double>(x.type(), [&]<typename T>() -> absl::Status {
    const T* a = x.unchecked_data<T>();
    const T* b = y.unchecked_data<T>();
    bool* out = z->mutable_data<bool>();
    const T most = static_cast<T>(tolerance);
    ctx.ParallelFor(z->num_elements(), KernelContext::GrainFor(1.0),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) out[i] = std::abs(a[i] - b[i]) <= most;
                    });
    return absl::OkStatus();
  });
}
REGISTER_KERNEL(
    KernelSpec("ApproximateEqual").Types("T", {ElementType::kFloat, ElementType::kDouble}),
    (MakeAttrKernel<ApproximateEqual, "tolerance">));

absl::Status Betainc(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const BetaincInputs inputs, CheckBetainc(ctx));
  const Tensor& like = ctx.input(inputs.shaped);
  TROUPE_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, like.type(), like.shape()));
  const std::array<int64_t, 3>& steps = inputs.steps;
  return SwitchType<float, double>(like.type(), [&]<typename T>() -> absl::Status {
    const T* a = ctx.input(0).unchecked_data<T>();
    const T* b = ctx.input(1).unchecked_data<T>();
    const T* x = ctx.input(2).unchecked_data<T>();
    T* out = z->mutable_data<T>();
    ctx.ParallelFor(
        z->num_elements(), KernelContext::GrainFor(300), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            out[i] =
                static_cast<T>(IncompleteBeta(a[i * steps[0]], b[i * steps[1]], x[i * steps[2]]));
          }
        });
    return absl::OkStatus();
  });
}
REGISTER_KERNEL(KernelSpec("Betainc").Types("T", {ElementType::kFloat, ElementType::kDouble}),
                MakeKernel<Betainc>);

}  // namespace
}  // namespace troupe

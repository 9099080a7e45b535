// ApproximateEqual and Betainc, whose inputs are not broadcast like those of other ops.
#include <array>
#include <cmath>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/math/incomplete_beta.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status ApproximateEqual(KernelContext& ctx, float tolerance) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  if (!(x.shape() == y.shape())) {
    return InvalidArgument("x and y must be of the same shape, got ", x.shape().ToString(), " and ",
                           y.shape().ToString());
  }
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
  int shaped = 0;  // The input that has the output's shape.
  std::array<int64_t, 3> steps;
  for (int i = 0; i < 3; ++i) {
    const Shape& shape = ctx.input(i).shape();
    steps[i] = shape.rank() == 0 ? 0 : 1;
    if (shape.rank() == 0) continue;
    if (ctx.input(shaped).rank() == 0) shaped = i;
    if (!(shape == ctx.input(shaped).shape())) {
      return InvalidArgument("a, b and x must be scalars or of the same shape, got ",
                             ctx.input(0).shape().ToString(), ", ", ctx.input(1).shape().ToString(),
                             " and ", ctx.input(2).shape().ToString());
    }
  }
  const Tensor& like = ctx.input(shaped);
  TROUPE_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, like.type(), like.shape()));
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

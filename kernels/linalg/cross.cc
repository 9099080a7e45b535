// Cross: products of vectors of three elements.
#include <type_traits>

#include "devices/half.h"
#include "kernels/common/registration.h"
#include "kernels/linalg/cross_shape.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

absl::Status Cross(KernelContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  TROUPE_RETURN_IF_ERROR(CheckCross(a.shape(), b.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), a.shape()));
  return SwitchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                    uint16_t, uint32_t, uint64_t>(a.type(), [&]<typename T>() -> absl::Status {
    // Integers wrap; narrow floats are rounded once.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                    std::conditional_t<std::is_same_v<T, double>, double, float>>;
    const T *x = a.unchecked_data<T>(), *y = b.unchecked_data<T>();
    T* z = out->mutable_data<T>();
    ctx.ParallelFor(out->num_elements() / 3, KernelContext::GrainFor(4),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
                        const Wide u[] = {Wide(x[i]), Wide(x[i + 1]), Wide(x[i + 2])};
                        const Wide v[] = {Wide(y[i]), Wide(y[i + 1]), Wide(y[i + 2])};
                        z[i] = static_cast<T>(u[1] * v[2] - u[2] * v[1]);
                        z[i + 1] = static_cast<T>(u[2] * v[0] - u[0] * v[2]);
                        z[i + 2] = static_cast<T>(u[0] * v[1] - u[1] * v[0]);
                      }
                    });
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("Cross").Types("T", RealNumberTypes()), MakeKernel<Cross>);

}  // namespace
}  // namespace troupe

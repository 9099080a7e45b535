// Range and LinSpace.
#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include "kernels/common/integer_input.h"
#include "kernels/kernel_registry.h"
#include "kernels/reduce/range_size.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

class RangeKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const int64_t n, RangeSize(ctx.input(0), ctx.input(1), ctx.input(2)));
    return SwitchType<float, double, half, bfloat16, int32_t, int64_t>(
        ctx.input(0).type(), [&]<typename T>() -> absl::Status { return Run<T>(ctx, n); });
  }

 private:
  template <typename T>
  absl::Status Run(KernelContext& ctx, int64_t n) {
    const T start = ctx.input(0).unchecked_scalar<T>(), delta = ctx.input(2).unchecked_scalar<T>();
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, kElementType<T>, Shape({n})));
    T* out = output->mutable_data<T>();
    if constexpr (std::is_integral_v<T>) {
      auto value = static_cast<std::make_unsigned_t<T>>(start);  // Wraps around after the last.
      for (int64_t i = 0; i < n; ++i) {
        out[i] = static_cast<T>(value);
        value += static_cast<std::make_unsigned_t<T>>(delta);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (std::is_floating_point_v<T>) {
          out[i] = start + static_cast<T>(i) * delta;
        } else {
          const T product =
              T(static_cast<float>(T(static_cast<float>(i))) * static_cast<float>(delta));
          out[i] = T(static_cast<float>(start) + static_cast<float>(product));
        }
      }
    }
    return absl::OkStatus();
  }
};

absl::Status LinSpaceKernel(KernelContext& ctx) {
  for (int i = 0; i < 3; ++i) {  // Unlike Range, it takes no vectors of one element.
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument("start, stop and num must be scalars, got shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(int64_t n, ReadIntegerScalar(ctx.input(2), "num"));
  if (n <= 0) return InvalidArgument("num must be > 0, got ", n);
  return SwitchType<float, double, half, bfloat16>(
      ctx.input(0).type(), [&]<typename T>() -> absl::Status {
        const T start = ctx.input(0).unchecked_scalar<T>(),
                stop = ctx.input(1).unchecked_scalar<T>();
        TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                                ctx.AllocateOutput(0, kElementType<T>, Shape({n})));
        T* out = output->mutable_data<T>();
        out[0] = start;
        if (n == 1) return absl::OkStatus();
        using V = std::conditional_t<sizeof(T) == 8, double, float>;
        const V first = start, step = (V(stop) - first) / static_cast<V>(n - 1);
        // Vectors of 64-bit integers do not become floats.
        constexpr int64_t kBlock = 1 << 20;
        for (int64_t begin = 1; begin < n - 1; begin += kBlock) {
          const auto count = static_cast<int32_t>(std::min(kBlock, n - 1 - begin));
          if (begin + count <= std::numeric_limits<int32_t>::max()) {
            const auto from = static_cast<int32_t>(begin);
            for (int32_t i = 0; i < count; ++i) {
              out[begin + i] = T(first + step * static_cast<V>(from + i));
            }
          } else {
            for (int64_t i = begin; i < begin + count; ++i) {
              out[i] = T(first + step * static_cast<V>(i));
            }
          }
        }
        out[n - 1] = stop;
        return absl::OkStatus();
      });
}

using enum ElementType;
REGISTER_KERNEL(KernelSpec("Range").Types("Tidx",
                                          {kHalf, kBfloat16, kFloat, kDouble, kInt32, kInt64}),
                MakeKernel<RangeKernel>);
REGISTER_KERNEL(
    KernelSpec("LinSpace").Types("T", {kFloat, kDouble}).Types("Tidx", {kInt32, kInt64}),
    MakeKernel<LinSpaceKernel>);

}  // namespace
}  // namespace troupe

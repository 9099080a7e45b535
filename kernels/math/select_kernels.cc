// Select and SelectV2: elements of one of two tensors, as a condition says.
#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>

#include "kernels/common/broadcast.h"
#include "kernels/common/short_copy.h"
#include "kernels/kernel_registry.h"
#include "kernels/simd/select.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// Both elements are read before one is chosen: conditions of dropout and the like are beyond any
// branch predictor. The steps are 0 (one value for all) or 1.
template <typename T>
void SelectLoop(const bool* condition, int64_t condition_step, const T* x, int64_t x_step,
                const T* y, int64_t y_step, T* out, int64_t n) {
  if (condition_step == 0 && n > 0) {
    const T* const from = *condition ? x : y;
    if ((*condition ? x_step : y_step) == 0) {
      std::fill_n(out, n, *from);
    } else if (from != out) {
      CopyRun(out, from, n);
    }
    return;
  }
  if constexpr (std::is_integral_v<T>) {
    return SelectElements<T>()(condition, x, x_step, y, y_step, out, n);
  }
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      const T u = x[i * x_step], v = y[i * y_step];
      out[i] = condition[i * condition_step] ? u : v;
    } else {
      out[i] = condition[i * condition_step] ? x[i * x_step] : y[i * y_step];
    }
  }
}

// The output for elements chosen one by one. Unplain elements are not written in place.
absl::StatusOr<Tensor*> ForwardBranch(KernelContext& ctx, ElementType type, const Shape& shape) {
  if (!IsPlain(type)) return ctx.AllocateOutput(0, type, shape);
  return ctx.ForwardEitherOrAllocate(1, 2, 0, type, shape);
}

template <typename T>
absl::Status SelectSame(KernelContext& ctx) {
  const bool* condition = ctx.input(0).unchecked_data<bool>();
  const T* x = static_cast<const T*>(ctx.input(1).raw_data());
  const T* y = static_cast<const T*>(ctx.input(2).raw_data());
  const Shape& shape = ctx.input(1).shape();
  const int64_t n = shape.num_elements();
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ForwardBranch(ctx, ctx.input(1).type(), shape));
  T* out = static_cast<T*>(output->mutable_raw_data());
  ctx.ParallelFor(n, KernelContext::GrainFor(0.5), [&](int64_t begin, int64_t end) {
    SelectLoop(condition + begin, 1, x + begin, 1, y + begin, 1, out + begin, end - begin);
  });
  return absl::OkStatus();
}

// The condition is one value for each row.
template <typename T>
absl::Status SelectRows(KernelContext& ctx) {
  const bool* condition = ctx.input(0).unchecked_data<bool>();
  const T* x = static_cast<const T*>(ctx.input(1).raw_data());
  const T* y = static_cast<const T*>(ctx.input(2).raw_data());
  const Shape& shape = ctx.input(1).shape();
  const int64_t rows = shape.dim(0);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ForwardBranch(ctx, ctx.input(1).type(), shape));
  T* out = static_cast<T*>(output->mutable_raw_data());
  if (rows == 0) return absl::OkStatus();
  const int64_t length = output->num_elements() / rows;
  const int64_t grain = KernelContext::GrainFor(0.2 * static_cast<double>(length) + 1);
  ctx.ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = (condition[r] ? x : y) + r * length;
      if (from != out + r * length) CopyRun(out + r * length, from, length);
    }
  });
  return absl::OkStatus();
}

absl::Status SelectKernel(KernelContext& ctx) {
  const Shape& condition = ctx.input(0).shape();
  const Shape& shape = ctx.input(1).shape();
  if (!(shape == ctx.input(2).shape())) {
    return InvalidArgument("the branches must have the same shape, got ", shape.ToString(), " and ",
                           ctx.input(2).shape().ToString());
  }
  if (condition.rank() == 0) {
    ctx.PassThrough(ctx.input(0).unchecked_scalar<bool>() ? 1 : 2, 0);
    return absl::OkStatus();
  }
  const bool same = condition == shape;
  if (!same && (condition.rank() != 1 || shape.rank() == 0 || condition.dim(0) != shape.dim(0))) {
    return InvalidArgument(
        "the condition must be a scalar, a vector with a value for each row of the branches, or "
        "of "
        "their shape; got condition ",
        condition.ToString(), " and branches ", shape.ToString());
  }
  return SwitchBySize(ctx.input(1).type(), [&]<typename T>() -> absl::Status {
    return same ? SelectSame<T>(ctx) : SelectRows<T>(ctx);
  });
}

template <typename T>
absl::Status SelectBroadcast(KernelContext& ctx, const Shape& shape) {
  const bool* condition = ctx.input(0).unchecked_data<bool>();
  const T* x = static_cast<const T*>(ctx.input(1).raw_data());
  const T* y = static_cast<const T*>(ctx.input(2).raw_data());
  const BroadcastWalk walk(shape,
                           {&ctx.input(0).shape(), &ctx.input(1).shape(), &ctx.input(2).shape()});
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ForwardBranch(ctx, ctx.input(1).type(), shape));
  T* out = static_cast<T*>(output->mutable_raw_data());
  const int64_t n = walk.run_length();
  const int64_t sc = walk.run_step(0), sx = walk.run_step(1), sy = walk.run_step(2);
  auto run = [&](int64_t at, const BroadcastWalk::Offsets& offsets, int64_t begin, int64_t end) {
    SelectLoop(condition + offsets[0] + begin * sc, sc, x + offsets[1] + begin * sx, sx,
               y + offsets[2] + begin * sy, sy, out + at + begin, end - begin);
  };
  if (walk.num_runs() == 1) {
    ctx.ParallelFor(n, KernelContext::GrainFor(0.7),
                    [&](int64_t begin, int64_t end) { run(0, {}, begin, end); });
    return absl::OkStatus();
  }
  const int64_t grain = KernelContext::GrainFor(0.7 * static_cast<double>(n) + 3);
  ctx.ParallelFor(walk.num_runs(), grain, [&](int64_t begin, int64_t end) {
    walk.ForEach(begin, end, [&](int64_t at, const BroadcastWalk::Offsets& offsets) {
      run(at, offsets, 0, n);
    });
  });
  return absl::OkStatus();
}

absl::Status SelectV2Kernel(KernelContext& ctx) {
  const Shape& condition = ctx.input(0).shape();
  const Shape& x = ctx.input(1).shape();
  const Shape& y = ctx.input(2).shape();
  if (x == y && condition.rank() == 0) {
    ctx.PassThrough(ctx.input(0).unchecked_scalar<bool>() ? 1 : 2, 0);
    return absl::OkStatus();
  }
  if (x == y && x == condition) {
    return SwitchBySize(ctx.input(1).type(),
                        [&]<typename T>() -> absl::Status { return SelectSame<T>(ctx); });
  }
  TROUPE_ASSIGN_OR_RETURN(Shape branches, BroadcastShapes(x, y));
  TROUPE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(condition, branches));
  return SwitchBySize(ctx.input(1).type(),
                      [&]<typename T>() -> absl::Status { return SelectBroadcast<T>(ctx, shape); });
}

REGISTER_KERNEL(KernelSpec("Select").Types("T", AllTypes()), MakeKernel<SelectKernel>);
REGISTER_KERNEL(KernelSpec("SelectV2").Types("T", AllTypes()), MakeKernel<SelectV2Kernel>);

}  // namespace
}  // namespace troupe

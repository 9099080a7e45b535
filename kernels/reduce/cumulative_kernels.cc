// Cumsum and Cumprod.
#include <algorithm>
#include <memory>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

// Every step is rounded to T; integers wrap around.
template <typename T, bool kProduct>
T Join(T a, T b) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    const float x = a, y = b;
    return T(kProduct ? x * y : x + y);
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kProduct ? x * y : x + y);
  } else {
    return kProduct ? a * b : a + b;
  }
}

template <typename T, bool kProduct>
T Identity() {
  return T(kProduct ? 1.0f : 0.0f);
}

// One line of n rows, each of `inner` elements. `in` and `out` are different memory.
template <typename T, bool kProduct>
void Scan(const T* in, T* out, int64_t n, int64_t inner, bool exclusive, bool reverse) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t row = reverse ? n - 1 - k : k, before = reverse ? row + 1 : row - 1;
    T* y = out + row * inner;
    if (k == 0) {
      if (exclusive) {
        std::fill(y, y + inner, Identity<T, kProduct>());
      } else {
        std::copy(in + row * inner, in + (row + 1) * inner, y);
      }
      continue;
    }
    const T* x = in + (exclusive ? before : row) * inner;
    const T* previous = out + before * inner;
    for (int64_t i = 0; i < inner; ++i) y[i] = Join<T, kProduct>(previous[i], x[i]);
  }
}

template <bool kProduct>
absl::Status Cumulate(KernelContext& ctx, bool exclusive, bool reverse) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(const int64_t dim, ReadIntegerScalar(ctx.input(1), "axis"));
  TROUPE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(dim, input.rank(), "axis"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), input.shape()));
  if (input.num_elements() == 0) return absl::OkStatus();
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < input.rank(); ++d) {
    if (d != axis) (d < axis ? outer : inner) *= input.dim(d);
  }
  const int64_t n = input.dim(axis);
  return SwitchNumber(input.type(), [&]<typename T>() -> absl::Status {
    const T* in = input.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    const int64_t grain = KernelContext::GrainFor(static_cast<double>(n * inner) + 5);
    ctx.ParallelFor(outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        Scan<T, kProduct>(in + o * n * inner, out + o * n * inner, n, inner, exclusive, reverse);
      }
    });
    return absl::OkStatus();
  });
}

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types("T", NumberTypes()).Types("Tidx", IndexTypes());
}

REGISTER_KERNEL(Spec("Cumsum"), (MakeAttrKernel<Cumulate<false>, "exclusive", "reverse">));
REGISTER_KERNEL(Spec("Cumprod"), (MakeAttrKernel<Cumulate<true>, "exclusive", "reverse">));

}  // namespace
}  // namespace troupe

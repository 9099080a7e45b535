// Cumsum, Cumprod and CumulativeLogsumexp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

enum class ScanOp { kSum, kProduct, kLogSumExp };

// log(exp(sum) + exp(x)). Like TensorFlow's, x counts for nothing if it is NaN.
template <typename T>
T LogSumExp(T sum, T x) {
  if (std::isnan(x)) return sum;
  const T low = std::min(sum, x), high = std::max(sum, x);
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// Every step is rounded to T; integers wrap around.
template <typename T, ScanOp kOp>
T Join(T a, T b) {
  constexpr bool kProduct = kOp == ScanOp::kProduct;
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return T(Join<float, kOp>(a, b));
  } else if constexpr (kOp == ScanOp::kLogSumExp) {
    return LogSumExp(a, b);
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kProduct ? x * y : x + y);
  } else {
    return kProduct ? a * b : a + b;
  }
}

template <typename T, ScanOp kOp>
T Identity() {
  return T(kOp == ScanOp::kSum       ? 0.0f
           : kOp == ScanOp::kProduct ? 1.0f
                                     : -std::numeric_limits<float>::infinity());
}

// One line of n rows, each of `inner` elements. `in` and `out` are different memory.
template <typename T, ScanOp kOp>
void Scan(const T* in, T* out, int64_t n, int64_t inner, bool exclusive, bool reverse) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t row = reverse ? n - 1 - k : k, before = reverse ? row + 1 : row - 1;
    T* y = out + row * inner;
    if (k == 0) {
      if (exclusive) {
        std::fill(y, y + inner, Identity<T, kOp>());
      } else {
        std::copy(in + row * inner, in + (row + 1) * inner, y);
        if constexpr (kOp == ScanOp::kLogSumExp) {  // NaN counts for nothing, here as well.
          for (int64_t i = 0; i < inner; ++i) y[i] = Join<T, kOp>(Identity<T, kOp>(), y[i]);
        }
      }
      continue;
    }
    const T* x = in + (exclusive ? before : row) * inner;
    const T* previous = out + before * inner;
    for (int64_t i = 0; i < inner; ++i) y[i] = Join<T, kOp>(previous[i], x[i]);
  }
}

template <ScanOp kOp>
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
  constexpr double kNsPerElement = kOp == ScanOp::kLogSumExp ? 20 : 1;
  const auto scan = [&]<typename T>() -> absl::Status {
    const T* in = input.unchecked_data<T>();
    T* out = output->mutable_data<T>();
    const int64_t grain =
        KernelContext::GrainFor(kNsPerElement * static_cast<double>(n * inner) + 5);
    ctx.ParallelFor(outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        Scan<T, kOp>(in + o * n * inner, out + o * n * inner, n, inner, exclusive, reverse);
      }
    });
    return absl::OkStatus();
  };
  if constexpr (kOp == ScanOp::kLogSumExp) {
    return SwitchType<float, double, half, bfloat16>(input.type(), scan);
  } else {
    return SwitchNumber(input.type(), scan);
  }
}

KernelSpec Spec(const char* op, const std::vector<ElementType>& types) {
  return KernelSpec(op).Types("T", types).Types("Tidx", IndexTypes());
}

REGISTER_KERNEL(Spec("Cumsum", NumberTypes()),
                (MakeAttrKernel<Cumulate<ScanOp::kSum>, "exclusive", "reverse">));
REGISTER_KERNEL(Spec("Cumprod", NumberTypes()),
                (MakeAttrKernel<Cumulate<ScanOp::kProduct>, "exclusive", "reverse">));
REGISTER_KERNEL(Spec("CumulativeLogsumexp", FloatTypes()),
                (MakeAttrKernel<Cumulate<ScanOp::kLogSumExp>, "exclusive", "reverse">));

}  // namespace
}  // namespace troupe

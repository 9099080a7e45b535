// Bincount, DenseBincount, HistogramFixedWidth.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "kernels/common/registration.h"
#include "kernels/reduce/histogram_shape.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

template <typename T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // Wraps around.
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

/// Counts the numbers of each of `rows` rows of the input; those of different rows apart.
template <typename Index, typename T>
void Count(const Index* numbers, int64_t rows, int64_t length, const T* weights, bool binary,
           int64_t size, T* bins) {
  std::fill_n(bins, rows * size, T(0));
  for (int64_t r = 0; r < rows; ++r, bins += size, numbers += length) {
    const auto each = [&](auto f) {
      for (int64_t i = 0; i < length; ++i) {
        if (numbers[i] < size) f(bins[numbers[i]], i);
      }
    };
    if (binary) {
      each([](T& bin, int64_t) { bin = T(1); });
    } else if (weights == nullptr) {
      each([](T& bin, int64_t) { bin = Sum(bin, T(1)); });
    } else {
      each([row = weights + r * length](T& bin, int64_t i) { bin = Sum(bin, row[i]); });
    }
  }
}

/// The first of n numbers that is negative, n if none is.
template <typename Index>
int64_t FirstNegative(const Index* numbers, int64_t n) {
  Index all = 0;
  for (int64_t i = 0; i < n; ++i) all = static_cast<Index>(all | numbers[i]);
  if (all >= 0) return n;
  return std::find_if(numbers, numbers + n, [](Index x) { return x < 0; }) - numbers;
}

absl::Status CountRows(KernelContext& ctx, const BinsShape& bins, bool binary) {
  const Tensor &input = ctx.input(0), &weights = ctx.input(2);
  const bool weighted = weights.num_elements() > 0;
  TROUPE_RETURN_IF_ERROR(
      (SwitchType<int32_t, int64_t>(input.type(), [&]<typename Index>() -> absl::Status {
        const auto* numbers = input.unchecked_data<Index>();
        const int64_t bad = FirstNegative(numbers, input.num_elements());
        if (bad == input.num_elements()) return absl::OkStatus();
        return NegativeNumber(numbers[bad]);
      })));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, weights.type(), bins.output));
  if (output->num_elements() == 0) return absl::OkStatus();
  return SwitchType<int32_t, int64_t>(input.type(), [&]<typename Index>() {
    return SwitchType<int32_t, int64_t, float, double>(weights.type(), [&]<typename T>() {
      Count(input.unchecked_data<Index>(), bins.rows, input.num_elements() / bins.rows,
            weighted ? weights.unchecked_data<T>() : nullptr, binary, bins.size,
            output->mutable_data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status Bincount(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const BinsShape bins, BincountShape(ctx));
  return CountRows(ctx, bins, false);
}

absl::Status DenseBincount(KernelContext& ctx, bool binary) {
  TROUPE_ASSIGN_OR_RETURN(const BinsShape bins, DenseBincountShape(ctx));
  return CountRows(ctx, bins, binary);
}

/// The intervals of n numbers, from 0 for those below the first to `last` for those above.
template <typename T>
void FindIntervals(const T* values, int64_t n, T low, double width, double last, int32_t* at) {
  const double base = static_cast<double>(low);
  for (int64_t i = 0; i < n; ++i) {
    const double interval = (static_cast<double>(std::max(values[i], low)) - base) / width;
    at[i] = static_cast<int32_t>(std::min(interval, last));
  }
}

/// NaN is InvalidArgument.
template <typename T, typename Int>
absl::Status CountIntervals(absl::Span<const T> values, T low, T high, int64_t bins, Int* counts) {
  TROUPE_ASSIGN_OR_RETURN(const double width, IntervalWidth(low, high, bins));
  std::fill_n(counts, bins, Int{0});
  int32_t at[512];  // Apart from counting, which the compiler does not vectorise.
  for (; !values.empty(); values.remove_prefix(std::min(values.size(), std::size(at)))) {
    const absl::Span<const T> block = values.first(std::min(values.size(), std::size(at)));
    if constexpr (std::is_floating_point_v<T>) {
      int32_t nans = 0;
      for (const T value : block) nans |= std::isnan(value) ? 1 : 0;
      if (nans != 0) return HistogramOfNan();
    }
    const auto n = static_cast<int64_t>(block.size());
    FindIntervals(block.data(), n, low, width, static_cast<double>(bins - 1), at);
    for (int64_t i = 0; i < n; ++i) ++counts[at[i]];
  }
  return absl::OkStatus();
}

absl::Status HistogramFixedWidth(KernelContext& ctx, ElementType count_type) {
  const Tensor &values = ctx.input(0), &range = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const int64_t bins, HistogramBins(range, ctx.input(2)));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, count_type, Shape({bins})));
  return SwitchType<int32_t, int64_t, float, double>(values.type(), [&]<typename T>() {
    const T* ends = range.unchecked_data<T>();
    return SwitchType<int32_t, int64_t>(count_type, [&]<typename Int>() {
      return CountIntervals<T, Int>(values.unchecked_values<T>(), ends[0], ends[1], bins,
                                    out->mutable_data<Int>());
    });
  });
}

REGISTER_KERNEL(KernelSpec("Bincount"), MakeKernel<Bincount>);
REGISTER_KERNEL(KernelSpec("DenseBincount"), (MakeAttrKernel<DenseBincount, "binary_output">));
REGISTER_KERNEL(KernelSpec("HistogramFixedWidth"), (MakeAttrKernel<HistogramFixedWidth, "dtype">));

}  // namespace
}  // namespace troupe

// Bincount, DenseBincount, HistogramFixedWidth.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
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

absl::Status CountRows(KernelContext& ctx, int64_t rows, bool by_row, bool binary) {
  const Tensor &input = ctx.input(0), &weights = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(const int64_t size, ReadIntegerScalar(ctx.input(1), "size"));
  if (size < 0) return InvalidArgument("size must not be negative, got ", size);
  const bool weighted = weights.num_elements() > 0;
  // In the order of the input's elements: Bincount's shapes may differ, as in TensorFlow.
  if (weighted && weights.num_elements() != input.num_elements()) {
    return InvalidArgument("weights must be empty or have as many elements as the input, ",
                           input.shape().ToString(), ", got ", weights.shape().ToString());
  }
  TROUPE_RETURN_IF_ERROR(
      (SwitchType<int32_t, int64_t>(input.type(), [&]<typename Index>() -> absl::Status {
        const auto* numbers = input.unchecked_data<Index>();
        const int64_t bad = FirstNegative(numbers, input.num_elements());
        if (bad == input.num_elements()) return absl::OkStatus();
        return InvalidArgument("the numbers to be counted must not be negative, got ",
                               numbers[bad]);
      })));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                          by_row ? Shape::Create({rows, size}) : Shape::Create({size}));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, weights.type(), shape));
  if (output->num_elements() == 0) return absl::OkStatus();
  return SwitchType<int32_t, int64_t>(input.type(), [&]<typename Index>() {
    return SwitchType<int32_t, int64_t, float, double>(weights.type(), [&]<typename T>() {
      Count(input.unchecked_data<Index>(), rows, input.num_elements() / rows,
            weighted ? weights.unchecked_data<T>() : nullptr, binary, size,
            output->mutable_data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status Bincount(KernelContext& ctx) { return CountRows(ctx, 1, false, false); }

absl::Status DenseBincount(KernelContext& ctx, bool binary) {
  const Tensor& input = ctx.input(0);
  if (input.rank() > 2) {
    return InvalidArgument("the input must be a vector or a matrix, got shape ",
                           input.shape().ToString());
  }
  const Tensor& weights = ctx.input(2);
  if (weights.num_elements() > 0 && weights.shape() != input.shape()) {
    return InvalidArgument("weights must be empty or have the shape of the input, ",
                           input.shape().ToString(), ", got ", weights.shape().ToString());
  }
  return CountRows(ctx, input.rank() == 2 ? input.dim(0) : 1, input.rank() == 2, binary);
}

/// NaN is InvalidArgument.
template <typename T, typename Int>
absl::Status CountIntervals(absl::Span<const T> values, T low, T high, int64_t bins, Int* counts) {
  const double base = static_cast<double>(low);
  const double width = (static_cast<double>(high) - base) / static_cast<double>(bins);
  if (!(low < high) || !std::isfinite(width)) {
    return InvalidArgument("value_range must rise and be finite, got ", low, " and ", high);
  }
  std::fill_n(counts, bins, Int{0});
  for (const T value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) return InvalidArgument("values must not be NaN");
    }
    const double at = (static_cast<double>(std::max(value, low)) - base) / width;
    ++counts[static_cast<int64_t>(std::min(at, static_cast<double>(bins - 1)))];
  }
  return absl::OkStatus();
}

absl::Status HistogramFixedWidth(KernelContext& ctx, ElementType count_type) {
  const Tensor &values = ctx.input(0), &range = ctx.input(1);
  if (range.rank() != 1 || range.dim(0) != 2) {
    return InvalidArgument("value_range must be a vector of two numbers, got shape ",
                           range.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t bins, ReadIntegerScalar(ctx.input(2), "nbins"));
  if (bins <= 0) return InvalidArgument("nbins must be positive, got ", bins);
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

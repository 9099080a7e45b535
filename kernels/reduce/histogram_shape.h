/// Shapes and errors of what counts numbers.
#ifndef TROUPE_KERNELS_REDUCE_HISTOGRAM_SHAPE_H_
#define TROUPE_KERNELS_REDUCE_HISTOGRAM_SHAPE_H_

#include <cmath>
#include <cstdint>

#include "absl/status/statusor.h"
#include "devices/status_macros.h"
#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"

namespace troupe {

/// Bins for each of `rows` rows of numbers.
struct BinsShape {
  int64_t rows, size;
  Shape output;
};

/// Of inputs that are numbers, a size and weights: InvalidArgument unless they fit.
inline absl::StatusOr<BinsShape> BinsFor(const KernelContext& ctx, int64_t rows, bool by_row) {
  const Tensor &input = ctx.input(0), &weights = ctx.input(2);
  BinsShape bins{rows};
  TROUPE_ASSIGN_OR_RETURN(bins.size, ReadIntegerScalar(ctx.input(1), "size"));
  if (bins.size < 0) return InvalidArgument("size must not be negative, got ", bins.size);
  // In the order of the input's elements: Bincount's shapes may differ, as in TensorFlow.
  if (weights.num_elements() > 0 && weights.num_elements() != input.num_elements()) {
    return InvalidArgument("weights must be empty or have as many elements as the input, ",
                           input.shape().ToString(), ", got ", weights.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(bins.output,
                          by_row ? Shape::Create({rows, bins.size}) : Shape::Create({bins.size}));
  return bins;
}

inline absl::StatusOr<BinsShape> BincountShape(const KernelContext& ctx) {
  return BinsFor(ctx, 1, false);
}
inline absl::StatusOr<BinsShape> DenseBincountShape(const KernelContext& ctx) {
  const Tensor &input = ctx.input(0), &weights = ctx.input(2);
  if (input.rank() > 2) {
    return InvalidArgument("the input must be a vector or a matrix, got shape ",
                           input.shape().ToString());
  }
  if (weights.num_elements() > 0 && weights.shape() != input.shape()) {
    return InvalidArgument("weights must be empty or have the shape of the input, ",
                           input.shape().ToString(), ", got ", weights.shape().ToString());
  }
  return BinsFor(ctx, input.rank() == 2 ? input.dim(0) : 1, input.rank() == 2);
}

inline absl::Status NegativeNumber(int64_t number) {
  return InvalidArgument("the numbers to be counted must not be negative, got ", number);
}

/// HistogramFixedWidth's nbins. InvalidArgument if it or the shape of `range` is wrong.
inline absl::StatusOr<int64_t> HistogramBins(const Tensor& range, const Tensor& nbins) {
  if (range.rank() != 1 || range.dim(0) != 2) {
    return InvalidArgument("value_range must be a vector of two numbers, got shape ",
                           range.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t bins, ReadIntegerScalar(nbins, "nbins"));
  if (bins <= 0) return InvalidArgument("nbins must be positive, got ", bins);
  return bins;
}

template <typename T>
absl::StatusOr<double> IntervalWidth(T low, T high, int64_t bins) {
  const double width =
      (static_cast<double>(high) - static_cast<double>(low)) / static_cast<double>(bins);
  if (low < high && std::isfinite(width)) return width;
  return InvalidArgument("value_range must rise and be finite, got ", low, " and ", high);
}

inline absl::Status HistogramOfNan() { return InvalidArgument("values must not be NaN"); }

}  // namespace troupe

#endif  // TROUPE_KERNELS_REDUCE_HISTOGRAM_SHAPE_H_

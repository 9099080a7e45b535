// QuantizeAndDequantize, V2, V3 and V4, and the gradient of V4.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/container/inlined_vector.h"
#include "kernels/common/registration.h"
#include "kernels/quantization/slices.h"
#include "kernels/simd/quantize.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// A grid of numbers that has 0 in it: its step, and where it begins and ends.
template <typename T>
struct Grid {
  T min, max, scale, step;

  /// The finest grid of integers of `bits` bits that covers [min, max].
  Grid(T least, T most, int64_t bits, bool is_signed, bool narrow) : min(least), max(most) {
    const int64_t half = is_signed ? int64_t{1} << (bits - 1) : 0;
    const int64_t lowest = is_signed ? (narrow ? 1 - half : -half) : 0;
    const int64_t highest = is_signed ? half - 1 : (int64_t{1} << bits) - 1;
    constexpr T kMost = std::numeric_limits<T>::max();
    const T low = static_cast<T>(lowest), high = static_cast<T>(highest);
    const T scale_of_min = low * min > 0 ? low / min : kMost;
    const T scale_of_max = high * max > 0 ? high / max : kMost;
    if (scale_of_min < scale_of_max) {
      scale = scale_of_min;
      step = min / low;
      max = high * step;
    } else {
      scale = scale_of_max;
      step = max / high;
      min = low * step;
    }
  }
};

/// InvalidArgument unless input `i` is a scalar or, with an axis, a vector with an element for each
/// slice.
absl::Status CheckRangeShape(const KernelContext& ctx, int i, const Slices& slices, int64_t axis) {
  TROUPE_RETURN_IF_ERROR(CheckRangeSize(ctx, i, slices));
  const int rank = axis == -1 ? 0 : 1;
  if (ctx.input(i).rank() == rank) return absl::OkStatus();
  return InvalidArgument("a range must have rank ", rank, "; input ", i, " has the shape ",
                         ctx.input(i).shape().ToString());
}

class ToAndFro : public Kernel {
 public:
  explicit ToAndFro(const KernelConstruction& c)
      : signed_(c.Attr<bool>("signed_input")),
        range_given_(c.Attr<bool>("range_given")),
        narrow_(c.attrs().GetOr<bool>("narrow_range", false)),
        half_up_(c.attrs().GetOr<std::string>("round_mode", "HALF_TO_EVEN") == "HALF_UP"),
        axis_(c.attrs().GetOr<int64_t>("axis", -1)) {}

 protected:
  absl::Status CheckBits(int64_t bits) const {
    const int64_t most = signed_ ? 61 : 62;
    if (bits >= 1 && bits <= most) return absl::OkStatus();
    return InvalidArgument("num_bits must be in [1, ", most, "], got ", bits);
  }

  bool range_given() const { return range_given_; }

  /// With the range, if it is given, in inputs 1 and 2.
  absl::Status Run(KernelContext& ctx, int64_t bits) const {
    TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(ctx.input(0).shape(), axis_));
    for (int i = 1; range_given_ && i <= 2; ++i) {
      TROUPE_RETURN_IF_ERROR(CheckRangeShape(ctx, i, slices, axis_));
    }
    return Run(ctx, bits, slices, ctx.input(1), ctx.input(2));
  }

  /// With the range, if it is given, in `min` and `max`.
  absl::Status Run(KernelContext& ctx, int64_t bits, const Slices& slices, const Tensor& min,
                   const Tensor& max) const {
    return SwitchType<float, double>(ctx.input(0).type(), [&]<typename T>() -> absl::Status {
      // Not in place: an input that is not clipped gives its own range.
      const Tensor& input = ctx.input(0);
      TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, input.type(), input.shape()));
      const T* in = input.unchecked_data<T>();
      const auto count = static_cast<size_t>(slices.count);
      absl::InlinedVector<T, 1> least(count, std::numeric_limits<T>::max());
      absl::InlinedVector<T, 1> most(count, std::numeric_limits<T>::lowest());
      if (range_given_) {
        std::copy_n(min.unchecked_data<T>(), count, least.begin());
        std::copy_n(max.unchecked_data<T>(), count, most.begin());
        if (axis_ == -1 && !(least[0] <= most[0])) {
          return InvalidArgument("the range from ", least[0], " to ", most[0], " is empty");
        }
      } else {
        slices.ForEach(in, [&](int64_t i, int64_t n, const T* run) {
          Quantization().OnGrid<T>().extremes(run, n, &least[static_cast<size_t>(i)],
                                              &most[static_cast<size_t>(i)]);
        });
      }
      absl::InlinedVector<Snap<T>, 1> snaps;
      for (size_t i = 0; i < count; ++i) snaps.push_back(SnapTo<T>(least[i], most[i], bits));
      const auto snap = [&](int64_t i, int64_t n, T* y, const T* x) {
        const Snap<T>& to = snaps[static_cast<size_t>(i)];
        Quantization().OnGrid<T>().snap(x, n, to.how, to.step, y);
      };
      slices.Transform(ctx, 0.2, output->mutable_data<T>(), snap, in);
      return absl::OkStatus();
    });
  }

 private:
  template <typename T>
  struct Snap {
    ToGrid<T> how;
    T step;
  };

  /// How to go to the finest grid of integers of `bits` bits that covers [least, most], and back.
  template <typename T>
  Snap<T> SnapTo(T least, T most, int64_t bits) const {
    const Grid<T> grid(least, most, bits, signed_, narrow_);
    Snap<T> snap{
        {.scale = grid.scale, .rounding = half_up_ ? Rounding::kHalfUp : Rounding::kHalfToEven},
        grid.step};
    if (range_given_) snap.how.min = grid.min, snap.how.max = grid.max;
    return snap;
  }

  const bool signed_, range_given_, narrow_, half_up_;
  const int64_t axis_;
};

/// The range is in attributes.
class QuantizeAndDequantizeV1 final : public ToAndFro {
 public:
  QuantizeAndDequantizeV1(const KernelConstruction& c, absl::Status* status)
      : ToAndFro(c),
        bits_(c.Attr<int64_t>("num_bits")),
        min_(c.Attr<float>("input_min")),
        max_(c.Attr<float>("input_max")) {
    *status = CheckBits(bits_);
    if (status->ok() && range_given() && !(min_ <= max_)) {
      *status = InvalidArgument("the range from ", min_, " to ", max_, " is empty");
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(ctx.input(0).shape(), -1));
    if (ctx.input(0).type() == ElementType::kDouble) {
      return Run(ctx, bits_, slices, Tensor::Scalar<double>(min_), Tensor::Scalar<double>(max_));
    }
    return Run(ctx, bits_, slices, Tensor::Scalar(min_), Tensor::Scalar(max_));
  }

 private:
  const int64_t bits_;
  const float min_, max_;
};

/// V2 and V4.
class QuantizeAndDequantize final : public ToAndFro {
 public:
  QuantizeAndDequantize(const KernelConstruction& c, absl::Status* status)
      : ToAndFro(c), bits_(c.Attr<int64_t>("num_bits")) {
    *status = CheckBits(bits_);
  }
  absl::Status Compute(KernelContext& ctx) override { return Run(ctx, bits_); }

 private:
  const int64_t bits_;
};

class QuantizeAndDequantizeV3 final : public ToAndFro {
 public:
  QuantizeAndDequantizeV3(const KernelConstruction& c, absl::Status*) : ToAndFro(c) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& bits = ctx.input(3);
    if (bits.rank() != 0) {
      return InvalidArgument("num_bits must be a scalar, got the shape ", bits.shape().ToString());
    }
    TROUPE_RETURN_IF_ERROR(CheckBits(bits.unchecked_scalar<int32_t>()));
    return Run(ctx, bits.unchecked_scalar<int32_t>());
  }
};

absl::Status QuantizeAndDequantizeV4Grad(KernelContext& ctx, int64_t axis) {
  const Tensor& gradient = ctx.input(0);
  const Tensor& input = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const Slices slices, Slices::Along(input.shape(), axis));
  if (gradient.shape() != input.shape()) {
    return InvalidArgument("the gradient and the input must have the same shape, got ",
                           gradient.shape().ToString(), " and ", input.shape().ToString());
  }
  for (int i = 2; i <= 3; ++i) {
    TROUPE_RETURN_IF_ERROR(CheckRangeShape(ctx, i, slices, axis));
  }
  const ElementType type = input.type();
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, input.shape()));
  for (int i = 1; i <= 2; ++i) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * zeros, ctx.AllocateOutput(i, type, ctx.input(2).shape()));
    std::memset(zeros->mutable_raw_data(), 0, zeros->bytes());
  }
  return SwitchType<float, double>(type, [&]<typename T>() {
    const T *min = ctx.input(2).unchecked_data<T>(), *max = ctx.input(3).unchecked_data<T>();
    const auto pass = [&](int64_t i, int64_t n, T* dx, const T* dy, const T* x) {
      Quantization().OnGrid<T>().pass(dy, x, n, min[i], max[i], dx);
    };
    slices.Transform(ctx, 0.2, output->mutable_data<T>(), pass, gradient.unchecked_data<T>(),
                     input.unchecked_data<T>());
    return absl::OkStatus();
  });
}

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types("T", {ElementType::kFloat, ElementType::kDouble});
}

REGISTER_KERNEL(Spec("QuantizeAndDequantize"), MakeKernel<QuantizeAndDequantizeV1>);
REGISTER_KERNELS(Spec("QuantizeAndDequantizeV2"), MakeKernel<QuantizeAndDequantize>,
                 "QuantizeAndDequantizeV4");
REGISTER_KERNEL(Spec("QuantizeAndDequantizeV3"), MakeKernel<QuantizeAndDequantizeV3>);
REGISTER_KERNEL(Spec("QuantizeAndDequantizeV4Grad"),
                (MakeAttrKernel<QuantizeAndDequantizeV4Grad, "axis">));

}  // namespace
}  // namespace troupe

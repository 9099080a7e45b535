// FakeQuantWithMinMaxArgs, Vars, VarsPerChannel, and their gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/simd/quantize.h"

namespace troupe {
namespace {

/// The integers of a kernel's attributes.
struct Integers {
  float least = 0, most = 255;

  absl::Status Read(const KernelConstruction& c) {
    const int64_t bits = c.Attr<int64_t>("num_bits");
    if (bits < 2 || bits > 16) {
      return InvalidArgument("num_bits must be between 2 and 16, got ", bits);
    }
    least = c.Attr<bool>("narrow_range") ? 1.0f : 0.0f;
    most = static_cast<float>((1 << bits) - 1);
    return absl::OkStatus();
  }
};

/// A range, shifted so that an integer stands for 0, and its step. One of no width passes
/// gradients and has zeros as its values.
struct ShiftedRange {
  float min = 0, max = 0, step = 0;
  bool none = true;

  ShiftedRange(const Integers& integers, float least, float most)
      : none(least == 0.0f && most == 0.0f) {
    if (none) return;
    step = (most - least) / (integers.most - integers.least);
    const float zero = integers.least - least / step;
    // A range that is NaN, or upside down, has no such integer.
    const float shifted = zero > integers.most     ? integers.most
                          : zero >= integers.least ? std::round(zero)
                                                   : integers.least;
    min = (integers.least - shifted) * step;
    max = (integers.most - shifted) * step;
  }
};

/// The integer that stands for 0. As in TensorFlow, numbers just between two integers are rounded
/// by a product with the reciprocal of the step if the range is in attributes, and by a quotient if
/// it is in inputs.
float Zero(const ShiftedRange& range) {
  return std::floor(-range.min * (1.0f / range.step) + 0.5f);
}

absl::Status CheckGradient(const KernelContext& ctx) {
  if (ctx.input(0).shape() == ctx.input(1).shape()) return absl::OkStatus();
  return InvalidArgument("gradients and inputs must have the same shape, got ",
                         ctx.input(0).shape().ToString(), " and ", ctx.input(1).shape().ToString());
}

absl::Status CheckScalars(const KernelContext& ctx, int first) {
  for (int i = first; i < first + 2; ++i) {
    if (ctx.input(i).num_elements() != 1) {
      return InvalidArgument("min and max must be scalars; input ", i, " has the shape ",
                             ctx.input(i).shape().ToString());
    }
  }
  return absl::OkStatus();
}

/// The range is in the attributes.
class ArgsKernel : public Kernel {
 public:
  ArgsKernel(const KernelConstruction& c, absl::Status* status)
      : min_(c.Attr<float>("min")), max_(c.Attr<float>("max")) {
    *status = integers_.Read(c);
    if (!(min_ < max_)) {
      *status = InvalidArgument("min must be smaller than max, they are ", min_, " and ", max_);
    }
  }

 protected:
  ShiftedRange Range() const { return {integers_, min_, max_}; }

 private:
  const float min_, max_;
  Integers integers_;
};

class FakeQuantArgs final : public ArgsKernel {
 public:
  using ArgsKernel::ArgsKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    const ShiftedRange range = Range();
    const ToGrid<float> how = {.min = range.min,
                               .max = range.max,
                               .shift = range.min,
                               .scale = 1.0f / range.step,
                               .zero = Zero(range),
                               .rounding = Rounding::kHalfUp};
    const float* x = ctx.input(0).unchecked_data<float>();
    float* y = output->mutable_data<float>();
    ctx.ParallelFor(
        output->num_elements(), KernelContext::GrainFor(0.2), [&](int64_t begin, int64_t end) {
          Quantization().OnGrid<float>().snap(x + begin, end - begin, how, range.step, y + begin);
        });
    return absl::OkStatus();
  }
};

class FakeQuantArgsGradient final : public ArgsKernel {
 public:
  using ArgsKernel::ArgsKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(CheckGradient(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    const float* dy = ctx.input(0).unchecked_data<float>();
    const float* x = ctx.input(1).unchecked_data<float>();
    float* dx = output->mutable_data<float>();
    const ShiftedRange range = Range();
    ctx.ParallelFor(output->num_elements(), KernelContext::GrainFor(0.2),
                    [&](int64_t begin, int64_t end) {
                      Quantization().OnGrid<float>().pass(dy + begin, x + begin, end - begin,
                                                          range.min, range.max, dx + begin);
                    });
    return absl::OkStatus();
  }
};

/// The grids of channels, again and again until they are as many as wide registers want.
class ChannelGrids {
 public:
  explicit ChannelGrids(const std::vector<ShiftedRange>& ranges) {
    constexpr size_t kColumns = 64;
    const size_t repeats =
        ranges.empty() || ranges.size() >= kColumns ? 1 : kColumns / ranges.size();
    for (size_t i = 0; i < repeats * ranges.size(); ++i) {
      const ShiftedRange& range = ranges[i % ranges.size()];
      min_.push_back(range.min);
      max_.push_back(range.max);
      step_.push_back(range.step);
      zero_.push_back(range.none ? 0.0f : Zero(range));
      none_.push_back(range.none ? ~0u : 0);
    }
  }

  GridColumns columns() const {
    return {static_cast<int64_t>(min_.size()),
            min_.data(),
            max_.data(),
            step_.data(),
            zero_.data(),
            none_.data()};
  }

 private:
  std::vector<float> min_, max_, step_, zero_;
  std::vector<uint32_t> none_;
};

/// The range is in inputs: scalars, or vectors of a range for each channel, the last dimension of
/// input 0.
template <bool kPerChannel>
class VarsKernel : public Kernel {
 public:
  VarsKernel(const KernelConstruction& c, absl::Status* status) { *status = integers_.Read(c); }

 protected:
  /// The ranges in inputs `first` and `first + 1`: one, or one for each channel.
  absl::StatusOr<std::vector<ShiftedRange>> Ranges(const KernelContext& ctx, int first) const {
    const Shape& shape = ctx.input(0).shape();
    if (!kPerChannel) {
      TROUPE_RETURN_IF_ERROR(CheckScalars(ctx, first));
    } else if (shape.rank() == 0) {
      return InvalidArgument("a scalar has no channels");
    }
    const int64_t count = kPerChannel ? shape.dim(shape.rank() - 1) : 1;
    for (int i = first; kPerChannel && i < first + 2; ++i) {
      const Shape& range = ctx.input(i).shape();
      if (range.rank() != 1 || range.dim(0) != count) {
        return InvalidArgument("min and max must be vectors of ", count, " elements, one for each ",
                               "channel; input ", i, " has the shape ", range.ToString());
      }
    }
    std::vector<ShiftedRange> ranges;
    for (int64_t i = 0; i < count; ++i) {
      ranges.emplace_back(integers_, ctx.input(first).unchecked_data<float>()[i],
                          ctx.input(first + 1).unchecked_data<float>()[i]);
    }
    return ranges;
  }

 private:
  Integers integers_;
};

template <bool kPerChannel>
class FakeQuantVars final : public VarsKernel<kPerChannel> {
 public:
  using VarsKernel<kPerChannel>::VarsKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<ShiftedRange> ranges, this->Ranges(ctx, 1));
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    const int64_t n = output->num_elements();
    if (n == 0) return absl::OkStatus();
    const ChannelGrids grids(ranges);
    const int64_t columns = grids.columns().count;
    const float* x = ctx.input(0).unchecked_data<float>();
    float* y = output->mutable_data<float>();
    ctx.ParallelFor((n + columns - 1) / columns,
                    KernelContext::GrainFor(0.5 * static_cast<double>(columns)),
                    [&](int64_t begin, int64_t end) {
                      const int64_t at = begin * columns;
                      Quantization().snap_columns(x + at, std::min(n, end * columns) - at,
                                                  grids.columns(), y + at);
                    });
    return absl::OkStatus();
  }
};

/// Channel c of `sums` is that of every column that stands for it.
void SumOfColumns(const std::vector<double>& columns, Tensor* sums) {
  const auto channels = static_cast<size_t>(sums->num_elements());
  for (size_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (size_t i = c; i < columns.size(); i += channels) sum += columns[i];
    sums->mutable_data<float>()[c] = static_cast<float>(sum);
  }
}

template <bool kPerChannel>
class FakeQuantVarsGradient final : public VarsKernel<kPerChannel> {
 public:
  using VarsKernel<kPerChannel>::VarsKernel;
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(CheckGradient(ctx));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<ShiftedRange> ranges, this->Ranges(ctx, 2));
    const Shape& range_shape = ctx.input(2).shape();
    const ElementType type = ElementType::kFloat;
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, ctx.input(1).shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * of_min, ctx.AllocateOutput(1, type, range_shape));
    TROUPE_ASSIGN_OR_RETURN(Tensor * of_max, ctx.AllocateOutput(2, type, range_shape));
    const float* dy = ctx.input(0).unchecked_data<float>();
    const float* x = ctx.input(1).unchecked_data<float>();
    float* dx = output->mutable_data<float>();
    const ChannelGrids grids(ranges);
    std::vector<double> below(grids.columns().count), above(grids.columns().count);
    Quantization().pass_columns(dy, x, output->num_elements(), grids.columns(), dx, below.data(),
                                above.data());
    SumOfColumns(below, of_min);
    SumOfColumns(above, of_max);
    return absl::OkStatus();
  }
};

REGISTER_KERNEL(KernelSpec("FakeQuantWithMinMaxArgs"), MakeKernel<FakeQuantArgs>);
REGISTER_KERNEL(KernelSpec("FakeQuantWithMinMaxArgsGradient"), MakeKernel<FakeQuantArgsGradient>);
REGISTER_KERNEL(KernelSpec("FakeQuantWithMinMaxVars"), MakeKernel<FakeQuantVars<false>>);
REGISTER_KERNEL(KernelSpec("FakeQuantWithMinMaxVarsGradient"),
                MakeKernel<FakeQuantVarsGradient<false>>);
REGISTER_KERNEL(KernelSpec("FakeQuantWithMinMaxVarsPerChannel"), MakeKernel<FakeQuantVars<true>>);
REGISTER_KERNEL(KernelSpec("FakeQuantWithMinMaxVarsPerChannelGradient"),
                MakeKernel<FakeQuantVarsGradient<true>>);

}  // namespace
}  // namespace troupe

// FakeQuantWithMinMaxArgs, Vars, VarsPerChannel, and their gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/kernel.h"

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

  bool Holds(float x) const { return none || (x >= min && x <= max); }
};

/// Rounds to what the integers stand for. As in TensorFlow, numbers just between two of them are
/// rounded by a product if the range is in attributes, and by a quotient if it is in inputs.
template <bool kByProduct>
class FakeQuantizer {
 public:
  explicit FakeQuantizer(const ShiftedRange& range)
      : range_(range),
        reciprocal_(range.none ? 0.0f : 1.0f / range.step),
        zero_(std::floor(-range.min * reciprocal_ + 0.5f)) {}

  float operator()(float x) const {
    if (range_.none) return 0.0f;
    const float shifted = std::max(std::min(x, range_.max), range_.min) - range_.min;
    const float steps = kByProduct ? shifted * reciprocal_ : shifted / range_.step;
    return std::floor(steps - zero_ + 0.5f) * range_.step;
  }

 private:
  const ShiftedRange range_;
  const float reciprocal_, zero_;
};

template <typename F>
void ForElements(KernelContext& ctx, int64_t n, F f) {
  ctx.ParallelFor(n, KernelContext::GrainFor(2.0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

template <bool kByProduct>
absl::Status Quantize(KernelContext& ctx, const ShiftedRange& range) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
  const float* x = ctx.input(0).unchecked_data<float>();
  float* y = output->mutable_data<float>();
  const FakeQuantizer<kByProduct> quantize(range);
  ForElements(ctx, output->num_elements(), [=](int64_t i) { y[i] = quantize(x[i]); });
  return absl::OkStatus();
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
  absl::Status Compute(KernelContext& ctx) override { return Quantize<true>(ctx, Range()); }
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
    ForElements(ctx, output->num_elements(), [=, range = Range()](int64_t i) {
      dx[i] = dy[i] * static_cast<float>(range.Holds(x[i]));
    });
    return absl::OkStatus();
  }
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
    if (ranges.size() == 1) return Quantize<false>(ctx, ranges[0]);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    const float* x = ctx.input(0).unchecked_data<float>();
    float* y = output->mutable_data<float>();
    const std::vector<FakeQuantizer<false>> quantize(ranges.begin(), ranges.end());
    const auto channels = static_cast<int64_t>(quantize.size());
    ForElements(ctx, output->num_elements(),
                [&](int64_t i) { y[i] = quantize[i % channels](x[i]); });
    return absl::OkStatus();
  }
};

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
    const auto channels = static_cast<int64_t>(ranges.size());
    std::vector<double> below(ranges.size()), above(ranges.size());
    for (int64_t i = 0; i < output->num_elements(); ++i) {
      const ShiftedRange& range = ranges[i % channels];
      dx[i] = dy[i] * static_cast<float>(range.Holds(x[i]));
      if (range.none) continue;
      if (x[i] < range.min) below[i % channels] += dy[i];
      if (x[i] > range.max) above[i % channels] += dy[i];
    }
    std::transform(below.begin(), below.end(), of_min->mutable_data<float>(),
                   [](double sum) { return static_cast<float>(sum); });
    std::transform(above.begin(), above.end(), of_max->mutable_data<float>(),
                   [](double sum) { return static_cast<float>(sum); });
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

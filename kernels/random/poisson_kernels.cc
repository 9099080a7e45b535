// RandomPoisson, RandomPoissonV2, StatelessRandomPoisson.
#include <cmath>
#include <limits>
#include <type_traits>

#include "devices/half.h"
#include "kernels/common/registration.h"
#include "kernels/random/draws.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/sample_loops.h"
#include "kernels/random/stateless.h"

namespace troupe {
namespace {

/// Thread-safe, as std::lgamma is not.
double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

class PoissonDistribution {
 public:
  /// Numbers above `highest`, which the rate is not, are drawn again.
  PoissonDistribution(double rate, double highest)
      : highest_(highest), rate_(rate), log_rate_(std::log(rate)) {
    exp_of_minus_rate_ = std::exp(-rate);
    b_ = 0.931 + 2.53 * std::sqrt(rate);
    a_ = -0.059 + 0.02483 * b_;
    inverse_alpha_ = 1.1239 + 1.1328 / (b_ - 3.4);
  }

  double Draw(Philox position) const {
    return rate_ < 10 ? ByProducts(position) : ByRejection(position);
  }

 private:
  using Uniform = FromTheBack<UniformGroup<double>>;

  /// Knuth, "Seminumerical Algorithms": how many uniform numbers have a product above exp(-rate).
  double ByProducts(Philox position) const {
    Uniform uniform;
    double product = 1;
    for (double count = 0;; count += 1) {
      product = product * uniform(position);
      if (product <= exp_of_minus_rate_) return count;
    }
  }

  /// Hörmann, "The transformed rejection method for generating Poisson random variables", 1993;
  /// names are the paper's. More than three of four pairs are accepted.
  double ByRejection(Philox position) const {
    Uniform uniform;
    while (true) {
      const double u = uniform(position) - 0.5;
      const double v = uniform(position);
      const double shifted = 0.5 - std::abs(u);
      const double k = std::floor((2 * a_ / shifted + b_) * u + rate_ + 0.43);
      if (k > highest_) continue;
      if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b_ - 2)) return k;
      if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
      const double s = std::log(v * inverse_alpha_ / (a_ / (shifted * shifted) + b_));
      if (s <= -rate_ + k * log_rate_ - LogGamma(k + 1)) return k;
    }
  }

  double highest_, rate_, log_rate_, exp_of_minus_rate_, a_, b_, inverse_alpha_;
};

template <typename T>
constexpr double Highest() {
  if constexpr (std::is_same_v<T, half>) return 65504;
  return static_cast<double>(std::numeric_limits<T>::max());
}

template <typename Rate, typename T>
absl::Status DrawPoissonAs(KernelContext& ctx, const Tensor& rate, const Philox& start,
                           Tensor* out) {
  constexpr double kSampleNs = 100, kHighest = Highest<T>();
  for (const Rate each : rate.unchecked_values<Rate>()) {
    const double x = static_cast<double>(each);
    if (!(x >= 0 && x <= kHighest)) {
      return InvalidArgument("the rate must be in the range [0, ", kHighest,
                             "] of the numbers that ", ElementTypeName(out->type()), " has, got ",
                             x);
    }
  }
  const Rate* rates = rate.unchecked_data<Rate>();
  DrawSamples<T>(
      ctx, rate.num_elements(), kSampleNs, out,
      [&](int64_t set) { return PoissonDistribution(static_cast<double>(rates[set]), kHighest); },
      [&](int64_t i, const PoissonDistribution& poisson) {
        Philox position = start;
        position.Skip(kBlocksPerOutput * static_cast<uint64_t>(i));
        return AsElement<T>(poisson.Draw(position));
      });
  return absl::OkStatus();
}

absl::Status DrawPoisson(KernelContext& ctx, const Tensor& rate, const Philox& start, Tensor* out) {
  return SwitchType<float, double, half, int32_t, int64_t>(rate.type(), [&]<typename Rate>() {
    return SwitchType<float, double, half, int32_t, int64_t>(
        out->type(), [&]<typename T>() { return DrawPoissonAs<Rate, T>(ctx, rate, start, out); });
  });
}

class RandomPoisson final : public RandomKernel {
 public:
  RandomPoisson(KernelConstruction& construction, absl::Status*) : RandomKernel(construction) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& rate = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateSamples(ctx, type_, rate.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const uint64_t blocks = static_cast<uint64_t>(out->num_elements()) * kBlocksPerOutput;
    return DrawPoisson(ctx, rate, stream_.Reserve(blocks), out);
  }
};

absl::Status StatelessPoisson(KernelContext& ctx, ElementType type) {
  const Tensor& rate = ctx.input(SeedInputs::kRest);
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<SeedInputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Philox start, SeedInputs::Position(ctx));
  TROUPE_RETURN_IF_ERROR(CheckEndsWith(out->shape(), rate.shape()));
  return DrawPoisson(ctx, rate, start, out);
}

REGISTER_KERNEL(KernelSpec("RandomPoisson"), MakeKernel<RandomPoisson>);
REGISTER_KERNEL(KernelSpec("RandomPoissonV2"), MakeKernel<RandomPoisson>);
REGISTER_KERNEL(KernelSpec("StatelessRandomPoisson"), (MakeAttrKernel<StatelessPoisson, "dtype">));

}  // namespace
}  // namespace troupe

// RandomGamma, StatelessRandomGammaV2 and -V3.
#include <cmath>

#include "devices/half.h"
#include "kernels/common/registration.h"
#include "kernels/random/draws.h"
#include "kernels/random/random_kernels.h"
#include "kernels/random/sample_loops.h"
#include "kernels/random/stateless.h"

namespace troupe {
namespace {

/// Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26 (2000). At
/// worst one normal number of twenty is rejected.
class GammaDistribution {
 public:
  explicit GammaDistribution(double alpha) : alpha_(alpha) {
    // The method is for alpha >= 1; below that a number of alpha + 1 is scaled down.
    d_ = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3);
    c_ = 1.0 / 3 / std::sqrt(d_);
  }

  double Draw(Philox position) const {
    FromTheBack<UniformGroup<double>> uniform;
    if (alpha_ == 1) return -std::log1p(-uniform(position));
    FromTheBack<NormalGroup<double>> normal;
    while (true) {
      const double x = normal(position);
      double v = 1 + c_ * x;
      if (v <= 0) continue;
      v = v * v * v;
      const double u = uniform(position);
      // The first condition is sufficient, and spares the logarithms.
      if (u < 1 - 0.0331 * (x * x) * (x * x) ||
          std::log(u) < 0.5 * x * x + d_ * (1 - v + std::log(v))) {
        const double drawn = d_ * v;
        return alpha_ < 1 ? drawn * std::pow(uniform(position), 1 / alpha_) : drawn;
      }
    }
  }

 private:
  double alpha_, d_, c_;
};

absl::Status DrawGamma(KernelContext& ctx, const Tensor& alpha, const Philox& start, Tensor* out) {
  return SwitchType<float, double, half, bfloat16>(alpha.type(), [&]<typename T>() {
    constexpr double kSampleNs = 100;
    const T* alphas = alpha.unchecked_data<T>();
    DrawSamples<T>(
        ctx, alpha.num_elements(), kSampleNs, out,
        [&](int64_t set) { return GammaDistribution(static_cast<double>(alphas[set])); },
        [&](int64_t i, const GammaDistribution& gamma) {
          Philox position = start;
          position.Skip(kBlocksPerOutput * static_cast<uint64_t>(i));
          return static_cast<T>(gamma.Draw(position));
        });
    return absl::OkStatus();
  });
}

class RandomGamma final : public RandomKernel {
 public:
  RandomGamma(KernelConstruction& construction, absl::Status*) : RandomKernel(construction) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& alpha = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateSamples(ctx, type_, alpha.shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    const uint64_t blocks = static_cast<uint64_t>(out->num_elements()) * kBlocksPerOutput;
    return DrawGamma(ctx, alpha, stream_.Reserve(blocks), out);
  }
};

template <typename Inputs>
absl::Status StatelessGamma(KernelContext& ctx, ElementType type) {
  const Tensor& alpha = ctx.input(Inputs::kRest);
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateStateless<Inputs>(ctx, type));
  if (out->num_elements() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Philox start, Inputs::Position(ctx));
  TROUPE_RETURN_IF_ERROR(CheckEndsWith(out->shape(), alpha.shape()));
  return DrawGamma(ctx, alpha, start, out);
}

REGISTER_KERNEL(KernelSpec("RandomGamma").Types("T", FloatTypes()), MakeKernel<RandomGamma>);
REGISTER_KERNEL(KernelSpec("StatelessRandomGammaV2").Types("dtype", FloatTypes()),
                (MakeAttrKernel<StatelessGamma<SeedInputs>, "dtype">));
REGISTER_KERNEL(KernelSpec("StatelessRandomGammaV3").Types("dtype", FloatTypes()),
                (MakeAttrKernel<StatelessGamma<KeyInputs>, "dtype">));

}  // namespace
}  // namespace troupe

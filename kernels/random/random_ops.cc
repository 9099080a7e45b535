// RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt.
#include "kernels/kernel_registry.h"
#include "kernels/random/fill.h"
#include "kernels/random/random_kernels.h"

namespace troupe {
namespace {

template <Distribution kDistribution>
class FillKernel final : public RandomFillKernel {
 public:
  FillKernel(KernelConstruction& construction, absl::Status*) : RandomFillKernel(construction) {}

 private:
  absl::Status Fill(KernelContext& ctx, const Philox& position, Tensor* out) override {
    return troupe::Fill(ctx, kDistribution, position, out);
  }
};

class UniformIntKernel final : public RandomUniformIntKernel {
 public:
  UniformIntKernel(KernelConstruction& construction, absl::Status*)
      : RandomUniformIntKernel(construction) {}

 private:
  absl::Status Fill(KernelContext& ctx, const Philox& position, int64_t low, uint64_t range,
                    Tensor* out) override {
    return FillIntegers(ctx, position, static_cast<uint64_t>(low), range, out);
  }
};

KernelSpec RandomSpec(const char* op) { return KernelSpec(op).Types("dtype", FloatTypes()); }

REGISTER_KERNEL(RandomSpec("RandomUniform"), MakeKernel<FillKernel<Distribution::kUniform>>);
REGISTER_KERNEL(RandomSpec("RandomStandardNormal"), MakeKernel<FillKernel<Distribution::kNormal>>);
REGISTER_KERNEL(RandomSpec("TruncatedNormal"),
                MakeKernel<FillKernel<Distribution::kTruncatedNormal>>);
REGISTER_KERNEL(KernelSpec("RandomUniformInt").Types("Tout", IndexTypes()),
                MakeKernel<UniformIntKernel>);

}  // namespace
}  // namespace troupe

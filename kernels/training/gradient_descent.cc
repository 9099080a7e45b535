// ApplyGradientDescent, ApplyMomentum.
#include "kernels/simd/updates.h"
#include "kernels/training/apply.h"

namespace troupe {
namespace {

template <typename T>
inline constexpr bool kVectorized = std::is_same_v<T, float> || std::is_same_v<T, double>;

class GradientDescent : public ApplyKernel {
 public:
  GradientDescent(KernelConstruction& construction, absl::Status*)
      : ApplyKernel(construction, {"var", "alpha", "delta"}, 1, 2) {}

 protected:
  absl::Status Update(KernelContext& ctx, absl::Span<Tensor* const> variables) override {
    return SwitchUpdateType(type(), [&]<typename T>() {
      T* var = variables[0]->mutable_data<T>();
      const T* delta = grad(ctx).template data<T>();
      const T alpha = ctx.input(1).scalar<T>();
      ctx.ParallelFor(grad(ctx).num_elements(), KernelContext::GrainFor(kVectorized<T> ? 0.5 : 4),
                      [&](int64_t begin, int64_t end) {
                        if constexpr (kVectorized<T>) {
                          Updates<T>().descend(var + begin, delta + begin, alpha, end - begin);
                        } else {
                          for (int64_t i = begin; i < end; ++i) {
                            var[i] = Minus(var[i], Multiply(delta[i], alpha));
                          }
                        }
                      });
      return absl::OkStatus();
    });
  }
};

class Momentum : public ApplyKernel {
 public:
  Momentum(KernelConstruction& construction, absl::Status*)
      : ApplyKernel(construction, {"var", "accum", "lr", "grad", "momentum"}, 2, 3),
        nesterov_(construction.Attr<bool>("use_nesterov")) {}

 protected:
  absl::Status Update(KernelContext& ctx, absl::Span<Tensor* const> variables) override {
    return SwitchUpdateType(type(), [&]<typename T>() {
      T *var = variables[0]->mutable_data<T>(), *accum = variables[1]->mutable_data<T>();
      const T* g = grad(ctx).template data<T>();
      const T rate = ctx.input(2).scalar<T>(), momentum = ctx.input(4).scalar<T>();
      ctx.ParallelFor(grad(ctx).num_elements(), KernelContext::GrainFor(kVectorized<T> ? 0.7 : 8),
                      [&](int64_t begin, int64_t end) {
                        if (kVectorized<T> && var != accum) {
                          if constexpr (kVectorized<T>) {
                            Updates<T>().momentum(var + begin, accum + begin, g + begin, rate,
                                                  momentum, nesterov_, end - begin);
                          }
                          return;
                        }
                        for (int64_t i = begin; i < end; ++i) {
                          accum[i] = Plus(Multiply(accum[i], momentum), g[i]);
                          var[i] = Minus(
                              var[i], nesterov_ ? Plus(Multiply(g[i], rate),
                                                       Multiply(Multiply(accum[i], momentum), rate))
                                                : Multiply(accum[i], rate));
                        }
                      });
      return absl::OkStatus();
    });
  }

 private:
  bool nesterov_;
};

KernelSpec Spec(const char* op) { return KernelSpec(op).Types("T", FloatAndComplexTypes()); }

REGISTER_KERNEL(Spec("ApplyGradientDescent"), MakeKernel<GradientDescent>);
REGISTER_KERNEL(Spec("ResourceApplyGradientDescent").HostMemory("var"),
                MakeKernel<GradientDescent>);
REGISTER_KERNEL(Spec("ApplyMomentum"), MakeKernel<Momentum>);
REGISTER_KERNEL(Spec("ResourceApplyMomentum").HostMemory("var").HostMemory("accum"),
                MakeKernel<Momentum>);

}  // namespace
}  // namespace troupe

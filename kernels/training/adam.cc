// ApplyAdam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, the form with
// epsilon hat; with Nesterov: Dozat, "Incorporating Nesterov Momentum into Adam", 2016).
#include "kernels/simd/updates.h"
#include "kernels/training/apply.h"

namespace troupe {
namespace {

class Adam : public ApplyKernel {
 public:
  Adam(KernelConstruction& construction, absl::Status*)
      : ApplyKernel(construction,
                    {"var", "m", "v", "beta1_power", "beta2_power", "lr", "beta1", "beta2",
                     "epsilon", "grad"},
                    3, 9),
        nesterov_(construction.Attr<bool>("use_nesterov")) {}

 protected:
  absl::Status Update(KernelContext& ctx, absl::Span<Tensor* const> variables) override {
    return SwitchUpdateType(type(), [&]<typename T>() {
      T* var = variables[0]->mutable_data<T>();
      T* m = variables[1]->mutable_data<T>();
      T* v = variables[2]->mutable_data<T>();
      const T* g = grad(ctx).template data<T>();
      const T one(1.0f);
      const T alpha =
          Divide(Multiply(ctx.input(5).scalar<T>(), Root(Minus(one, ctx.input(4).scalar<T>()))),
                 Minus(one, ctx.input(3).scalar<T>()));
      const AdamFactors<T> factors{alpha, ctx.input(6).scalar<T>(), ctx.input(7).scalar<T>(),
                                   ctx.input(8).scalar<T>()};
      const bool distinct = var != m && var != v && m != v;
      constexpr bool kVectorized = std::is_same_v<T, float> || std::is_same_v<T, double>;
      ctx.ParallelFor(grad(ctx).num_elements(), KernelContext::GrainFor(kVectorized ? 1.5 : 15),
                      [&](int64_t begin, int64_t end) {
                        if constexpr (kVectorized) {
                          if (distinct) {
                            Updates<T>().adam(var + begin, m + begin, v + begin, g + begin, factors,
                                              nesterov_, end - begin);
                            return;
                          }
                        }
                        Plain(var, m, v, g, factors, begin, end);
                      });
      return absl::OkStatus();
    });
  }

 private:
  template <typename T>
  void Plain(T* var, T* m, T* v, const T* g, const AdamFactors<T>& factors, int64_t begin,
             int64_t end) const {
    const T rest1 = Minus(T(1.0f), factors.beta1), rest2 = Minus(T(1.0f), factors.beta2);
    for (int64_t i = begin; i < end; ++i) {
      m[i] = Plus(m[i], Multiply(Minus(g[i], m[i]), rest1));
      v[i] = Plus(v[i], Multiply(Minus(Multiply(g[i], g[i]), v[i]), rest2));
      const T step = nesterov_ ? Plus(Multiply(g[i], rest1), Multiply(factors.beta1, m[i])) : m[i];
      var[i] =
          Minus(var[i], Divide(Multiply(step, factors.alpha), Plus(Root(v[i]), factors.epsilon)));
    }
  }

  bool nesterov_;
};

KernelSpec Spec(const char* op) { return KernelSpec(op).Types("T", FloatAndComplexTypes()); }

REGISTER_KERNEL(Spec("ApplyAdam"), MakeKernel<Adam>);
REGISTER_KERNEL(Spec("ResourceApplyAdam").HostMemory("var").HostMemory("m").HostMemory("v"),
                MakeKernel<Adam>);

}  // namespace
}  // namespace troupe

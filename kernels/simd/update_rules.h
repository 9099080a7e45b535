/// Loops over the formulas by which optimisers change variables (`update_formulas.h`). In an
/// unnamed namespace, because files for different instruction sets include it.
#ifndef TROUPE_KERNELS_SIMD_UPDATE_RULES_H_
#define TROUPE_KERNELS_SIMD_UPDATE_RULES_H_

#include "kernels/simd/update_formulas.h"
#include "kernels/simd/updates.h"

// Arrays are different or the same, never shifted against each other. An element is read whole
// before it is written, so that a variable given twice is no obstacle either.
#if defined(__clang__)
#define TROUPE_EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define TROUPE_EACH_ALONE _Pragma("GCC ivdep")
#endif

namespace troupe {
namespace {

template <>
inline float Sqrt(float x) {
  return __builtin_sqrtf(x);
}
template <>
inline double Sqrt(double x) {
  return __builtin_sqrt(x);
}
template <>
inline float Power(float x, float exponent) {
  return __builtin_powf(x, exponent);
}
template <>
inline double Power(double x, double exponent) {
  return __builtin_pow(x, exponent);
}
template <>
inline float Exp(float x) {
  return __builtin_expf(x);
}
template <>
inline double Exp(double x) {
  return __builtin_exp(x);
}

// Elements of type T are computed with as N.
template <typename Rule, typename N>
struct UpdateLoop {
  template <typename T>
  static void Run(T* const* variables, const T* grad, const T* scalars, int64_t n) {
    N s[kMaxUpdateScalars];
    for (int i = 0; i < kMaxUpdateScalars; ++i) s[i] = N(scalars[i]);
    const Rule rule(s);
    T* const a = variables[0];
    if constexpr (Rule::kVariables == 1) {
      TROUPE_EACH_ALONE
      for (int64_t i = 0; i < n; ++i) {
        N x(a[i]);
        rule(x, N(grad[i]));
        a[i] = T(x);
      }
    } else if constexpr (Rule::kVariables == 2) {
      T* const b = variables[1];
      TROUPE_EACH_ALONE
      for (int64_t i = 0; i < n; ++i) {
        N x(a[i]), y(b[i]);
        rule(x, y, N(grad[i]));
        a[i] = T(x);
        b[i] = T(y);
      }
    } else if constexpr (Rule::kVariables == 3) {
      T *const b = variables[1], *const c = variables[2];
      TROUPE_EACH_ALONE
      for (int64_t i = 0; i < n; ++i) {
        N x(a[i]), y(b[i]), z(c[i]);
        rule(x, y, z, N(grad[i]));
        a[i] = T(x);
        b[i] = T(y);
        c[i] = T(z);
      }
    } else {
      T *const b = variables[1], *const c = variables[2], *const d = variables[3];
      TROUPE_EACH_ALONE
      for (int64_t i = 0; i < n; ++i) {
        N x(a[i]), y(b[i]), z(c[i]), w(d[i]);
        rule(x, y, z, w, N(grad[i]));
        a[i] = T(x);
        b[i] = T(y);
        c[i] = T(z);
        d[i] = T(w);
      }
    }
  }
};

template <typename N, typename T, bool kSparse, bool kMultiplyByRate, bool kShrinkage>
void FtrlLoop(T* const* variables, const T* grad, const T* scalars, int64_t n) {
  if (N(scalars[kShrinkage ? 4 : 3]) == N(-0.5f)) {
    UpdateLoop<FtrlRule<N, kSparse, kMultiplyByRate, kShrinkage, true>, N>::Run(variables, grad,
                                                                                scalars, n);
  } else {
    UpdateLoop<FtrlRule<N, kSparse, kMultiplyByRate, kShrinkage, false>, N>::Run(variables, grad,
                                                                                 scalars, n);
  }
}

// A rule with its flag.
template <template <typename, bool> class Rule, typename N, typename T>
void SetRule(UpdateTable<T>* table, UpdateRule rule) {
  for (auto& functions : table->rules[rule]) {
    functions[0] = UpdateLoop<Rule<N, false>, N>::template Run<StoredAs<T>>;
    functions[1] = UpdateLoop<Rule<N, true>, N>::template Run<StoredAs<T>>;
  }
}

// A rule that is another one for sparse updates.
template <template <typename, bool> class Rule, typename N, typename T>
void SetSparseRule(UpdateTable<T>* table, UpdateRule rule) {
  for (int flag = 0; flag < 2; ++flag) {
    table->rules[rule][0][flag] = UpdateLoop<Rule<N, false>, N>::template Run<StoredAs<T>>;
    table->rules[rule][1][flag] = UpdateLoop<Rule<N, true>, N>::template Run<StoredAs<T>>;
  }
}

template <bool kShrinkage, typename N, typename T>
void SetFtrl(UpdateTable<T>* table, UpdateRule rule) {
  table->rules[rule][0][0] = FtrlLoop<N, StoredAs<T>, false, false, kShrinkage>;
  table->rules[rule][0][1] = FtrlLoop<N, StoredAs<T>, false, true, kShrinkage>;
  table->rules[rule][1][0] = FtrlLoop<N, StoredAs<T>, true, false, kShrinkage>;
  table->rules[rule][1][1] = FtrlLoop<N, StoredAs<T>, true, true, kShrinkage>;
}

// The rules that need no order among numbers.
template <typename N, typename T>
void SetFieldRules(UpdateTable<T>* table) {
  SetRule<GradientDescentRule, N>(table, kGradientDescent);
  SetRule<MomentumRule, N>(table, kMomentum);
  SetRule<KerasMomentumRule, N>(table, kKerasMomentum);
  SetRule<AdamRule, N>(table, kAdam);
  SetRule<AdadeltaRule, N>(table, kAdadelta);
  SetRule<AdagradRule, N>(table, kAdagrad);
  SetRule<AdagradV2Rule, N>(table, kAdagradV2);
  SetSparseRule<RMSPropRule, N>(table, kRMSProp);
  SetSparseRule<CenteredRMSPropRule, N>(table, kCenteredRMSProp);
}

// The rules for real numbers.
template <typename N, typename T>
void SetRealRules(UpdateTable<T>* table) {
  SetRule<AmsgradRule, N>(table, kAdamWithAmsgrad);
  SetRule<AdaMaxRule, N>(table, kAdaMax);
  SetSparseRule<AdagradDARule, N>(table, kAdagradDA);
  SetRule<ProximalGradientDescentRule, N>(table, kProximalGradientDescent);
  SetRule<ProximalAdagradRule, N>(table, kProximalAdagrad);
  SetRule<AddSignRule, N>(table, kAddSign);
  SetRule<PowerSignRule, N>(table, kPowerSign);
  SetFtrl<false, N>(table, kFtrl);
  SetFtrl<true, N>(table, kFtrlV2);
}

}  // namespace
}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_UPDATE_RULES_H_

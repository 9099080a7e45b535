/// The formulas by which optimisers change variables, an element at a time, and loops over them.
///
/// Rules are templates over the number type, whose operations round as the element type's do in
/// TensorFlow, so that one formula serves all types. In an unnamed namespace, because files for
/// different instruction sets include it.
#ifndef TROUPE_KERNELS_SIMD_UPDATE_RULES_H_
#define TROUPE_KERNELS_SIMD_UPDATE_RULES_H_

#include <stdint.h>

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

template <typename N>
N Sqrt(N x);
template <typename N>
N Power(N x, N exponent);
template <typename N>
N Exp(N x);

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

// NaN gives NaN in all of these.
template <typename N>
N Magnitude(N x) {
  return x < N(0) ? -x : x;
}
template <typename N>
N Sign(N x) {
  return x > N(0) ? N(1) : x < N(0) ? N(-1) : x;
}
template <typename N>
N Larger(N x, N bound) {
  return x < bound ? bound : x;
}
// Moves x towards 0 by `distance`, and not beyond.
template <typename N>
N Shrink(N x, N distance) {
  return Sign(x) * Larger(Magnitude(x) - distance, N(0));
}

// Each rule is made from the op's scalars, in the order of its inputs, and changes an element of
// the variable and of its slots. The flag is the op's attribute, where it has one.

template <typename N, bool>
struct GradientDescentRule {
  static constexpr int kVariables = 1;
  N alpha;
  explicit GradientDescentRule(const N* s) : alpha(s[0]) {}
  void operator()(N& var, N g) const { var = var - g * alpha; }
};

template <typename N, bool kNesterov>
struct MomentumRule {
  static constexpr int kVariables = 2;
  N rate, momentum;
  explicit MomentumRule(const N* s) : rate(s[0]), momentum(s[1]) {}
  void operator()(N& var, N& accum, N g) const {
    accum = accum * momentum + g;
    var = var - (kNesterov ? g * rate + accum * momentum * rate : accum * rate);
  }
};

template <typename N, bool kNesterov>
struct KerasMomentumRule {
  static constexpr int kVariables = 2;
  N rate, momentum;
  explicit KerasMomentumRule(const N* s) : rate(s[0]), momentum(s[1]) {}
  void operator()(N& var, N& accum, N g) const {
    accum = accum * momentum - g * rate;
    var = var + (kNesterov ? accum * momentum - g * rate : accum);
  }
};

// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, the form with epsilon hat;
// with Nesterov: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
template <typename N, bool kNesterov>
struct AdamRule {
  static constexpr int kVariables = 3;
  N alpha, beta1, rest1, rest2, epsilon;
  explicit AdamRule(const N* s)
      : alpha(s[2] * Sqrt(N(1) - s[1]) / (N(1) - s[0])),
        beta1(s[3]),
        rest1(N(1) - s[3]),
        rest2(N(1) - s[4]),
        epsilon(s[5]) {}
  void operator()(N& var, N& m, N& v, N g) const {
    m = m + (g - m) * rest1;
    v = v + (g * g - v) * rest2;
    const N step = kNesterov ? g * rest1 + beta1 * m : m;
    var = var - step * alpha / (Sqrt(v) + epsilon);
  }
};

// Reddi, Kale and Kumar, "On the Convergence of Adam and Beyond", 2018.
template <typename N, bool>
struct AmsgradRule {
  static constexpr int kVariables = 4;
  N alpha, rest1, rest2, epsilon;
  explicit AmsgradRule(const N* s)
      : alpha(s[2] * Sqrt(N(1) - s[1]) / (N(1) - s[0])),
        rest1(N(1) - s[3]),
        rest2(N(1) - s[4]),
        epsilon(s[5]) {}
  void operator()(N& var, N& m, N& v, N& vhat, N g) const {
    m = m + (g - m) * rest1;
    v = v + (g * g - v) * rest2;
    vhat = Larger(vhat, v);
    var = var - m * alpha / (Sqrt(vhat) + epsilon);
  }
};

// Adam's paper, section 7.1.
template <typename N, bool>
struct AdaMaxRule {
  static constexpr int kVariables = 3;
  N alpha, rest1, beta2, epsilon;
  explicit AdaMaxRule(const N* s)
      : alpha(s[1] / (N(1) - s[0])), rest1(N(1) - s[2]), beta2(s[3]), epsilon(s[4]) {}
  void operator()(N& var, N& m, N& v, N g) const {
    m = m + (g - m) * rest1;
    v = Larger(beta2 * v, Magnitude(g));
    var = var - alpha * (m / (v + epsilon));
  }
};

// Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.
template <typename N, bool>
struct AdadeltaRule {
  static constexpr int kVariables = 3;
  N rate, rho, rest, epsilon;
  explicit AdadeltaRule(const N* s) : rate(s[0]), rho(s[1]), rest(N(1) - s[1]), epsilon(s[2]) {}
  void operator()(N& var, N& accum, N& accum_update, N g) const {
    accum = accum * rho + g * g * rest;
    const N update = Sqrt(accum_update + epsilon) * (N(1) / Sqrt(accum + epsilon)) * g;
    var = var - update * rate;
    accum_update = accum_update * rho + update * update * rest;
  }
};

// Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.
template <typename N, bool kUpdateSlots>
struct AdagradRule {
  static constexpr int kVariables = 2;
  N rate;
  explicit AdagradRule(const N* s) : rate(s[0]) {}
  void operator()(N& var, N& accum, N g) const {
    if (kUpdateSlots) accum = accum + g * g;
    var = var - g * rate * (N(1) / Sqrt(accum));
  }
};

template <typename N, bool kUpdateSlots>
struct AdagradV2Rule {
  static constexpr int kVariables = 2;
  N rate, epsilon;
  explicit AdagradV2Rule(const N* s) : rate(s[0]), epsilon(s[1]) {}
  void operator()(N& var, N& accum, N g) const {
    if (kUpdateSlots) accum = accum + g * g;
    var = var - g * rate / (Sqrt(accum) + epsilon);
  }
};

// The same paper's dual averaging: the variable follows from the sums of all gradients. Sparse
// updates divide by the step, which shows at step 0.
template <typename N, bool kByStep>
struct AdagradDARule {
  static constexpr int kVariables = 3;
  N rate, l1, l2, step;
  explicit AdagradDARule(const N* s) : rate(s[0]), l1(s[1]), l2(s[2]), step(s[3]) {}
  void operator()(N& var, N& sum, N& squares, N g) const {
    sum = sum + g;
    squares = squares + g * g;
    if (kByStep) {
      const N mean = sum / step;
      const N shrunk = l1 > N(0) ? Shrink(mean, l1) : mean;
      var = -shrunk / (l2 + Sqrt(squares) / (step * rate));
    } else {
      const N shrunk = l1 > N(0) ? Shrink(sum, l1 * step) : sum;
      var = -rate * shrunk / (l2 * step * rate + Sqrt(squares));
    }
  }
};

// Duchi and Singer, "Efficient Online and Batch Learning using Forward Backward Splitting", 2009.
template <typename N>
N Proximal(N x, N rate, N l1, N l2) {
  return (l1 > N(0) ? Shrink(x, rate * l1) : x) / (N(1) + l2 * rate);
}

template <typename N, bool>
struct ProximalGradientDescentRule {
  static constexpr int kVariables = 1;
  N alpha, l1, l2;
  explicit ProximalGradientDescentRule(const N* s) : alpha(s[0]), l1(s[1]), l2(s[2]) {}
  void operator()(N& var, N g) const { var = Proximal(var - g * alpha, alpha, l1, l2); }
};

template <typename N, bool>
struct ProximalAdagradRule {
  static constexpr int kVariables = 2;
  N rate, l1, l2;
  explicit ProximalAdagradRule(const N* s) : rate(s[0]), l1(s[1]), l2(s[2]) {}
  void operator()(N& var, N& accum, N g) const {
    accum = accum + g * g;
    const N own_rate = rate * (N(1) / Sqrt(accum));
    var = Proximal(var - g * own_rate, own_rate, l1, l2);
  }
};

// The mean of old and new values, as dense and as sparse updates compute it: they differ where the
// old one is infinite.
template <typename N, bool kSparse>
N Mean(N old_value, N new_value, N weight, N rest) {
  return kSparse ? old_value * weight + new_value * rest
                 : old_value + (new_value - old_value) * rest;
}

// Hinton, "Neural Networks for Machine Learning", lecture 6.
template <typename N, bool kSparse>
struct RMSPropRule {
  static constexpr int kVariables = 3;
  N rate, rho, rest, momentum, epsilon;
  explicit RMSPropRule(const N* s)
      : rate(s[0]), rho(s[1]), rest(N(1) - s[1]), momentum(s[2]), epsilon(s[3]) {}
  void operator()(N& var, N& ms, N& mom, N g) const {
    ms = Mean<N, kSparse>(ms, g * g, rho, rest);
    mom = mom * momentum + g * rate / Sqrt(ms + epsilon);
    var = var - mom;
  }
};

// Graves, "Generating Sequences With Recurrent Neural Networks", 2013.
template <typename N, bool kSparse>
struct CenteredRMSPropRule {
  static constexpr int kVariables = 4;
  N rate, rho, rest, momentum, epsilon;
  explicit CenteredRMSPropRule(const N* s)
      : rate(s[0]), rho(s[1]), rest(N(1) - s[1]), momentum(s[2]), epsilon(s[3]) {}
  void operator()(N& var, N& mg, N& ms, N& mom, N g) const {
    ms = Mean<N, kSparse>(ms, g * g, rho, rest);
    mg = Mean<N, kSparse>(mg, g, rho, rest);
    mom = mom * momentum + g * rate / Sqrt(ms - mg * mg + epsilon);
    var = var - mom;
  }
};

// Bello et al., "Neural Optimizer Search with Reinforcement Learning", 2017.
template <typename N, bool>
struct AddSignRule {
  static constexpr int kVariables = 2;
  N rate, alpha, sign_decay, beta, rest;
  explicit AddSignRule(const N* s)
      : rate(s[0]), alpha(s[1]), sign_decay(s[2]), beta(s[3]), rest(N(1) - s[3]) {}
  void operator()(N& var, N& m, N g) const {
    m = m * beta + g * rest;
    var = var - rate * (alpha + sign_decay * (Sign(g) * Sign(m))) * g;
  }
};

template <typename N, bool>
struct PowerSignRule {
  static constexpr int kVariables = 2;
  N rate, agree, disagree, beta, rest;
  explicit PowerSignRule(const N* s)
      : rate(s[0]),
        agree(Exp(s[1] * s[2])),
        disagree(Exp(-(s[1] * s[2]))),
        beta(s[3]),
        rest(N(1) - s[3]) {}
  void operator()(N& var, N& m, N g) const {
    m = m * beta + g * rest;
    const N sign = Sign(g) * Sign(m);
    // The exponential has only these three values.
    const N scale = sign > N(0) ? agree : disagree;
    var = var - rate * (sign * sign > N(0) ? scale : sign + N(1)) * g;
  }
};

// McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013; V2 adds the shrinkage of
// l2 that acts on the gradient. kRoot: lr_power is -1/2, as it nearly always is. Dense updates make
// NaN in `linear` a 0, sparse ones hand it on.
template <typename N, bool kSparse, bool kMultiplyByRate, bool kShrinkage, bool kRoot>
struct FtrlRule {
  static constexpr int kVariables = 3;
  N rate, l1, l2, shrinkage, exponent;
  explicit FtrlRule(const N* s)
      : rate(s[0]),
        l1(kMultiplyByRate ? s[1] * s[0] : s[1]),
        l2(kMultiplyByRate ? N(2) * s[2] * s[0] : N(2) * s[2]),
        shrinkage(kShrinkage ? N(2) * s[3] : N(0)),
        exponent(-s[kShrinkage ? 4 : 3]) {}
  N Root(N x) const { return kRoot ? Sqrt(x) : Power(x, exponent); }
  void operator()(N& var, N& accum, N& linear, N g) const {
    const N shrunk = kShrinkage ? g + shrinkage * var : g;
    const N before = Root(accum);
    accum = accum + g * g;
    const N after = Root(accum);
    linear = linear + (kMultiplyByRate ? shrunk * rate - (after - before) * var
                                       : shrunk - (after - before) / rate * var);
    const N quadratic = (kMultiplyByRate ? after : after / rate) + l2;
    if (kSparse) {
      const N clipped = linear > l1 ? l1 : linear < -l1 ? -l1 : linear;
      var = (clipped - linear) / quadratic;
    } else {
      var = Magnitude(linear) > l1 ? (l1 * Sign(linear) - linear) / quadratic : N(0);
    }
  }
};

// Elements of type T are computed with as N.
template <typename Rule, typename N, typename T>
void UpdateLoop(T* const* variables, const T* grad, const T* scalars, int64_t n) {
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

template <typename N, typename T, bool kSparse, bool kMultiplyByRate, bool kShrinkage>
void FtrlLoop(T* const* variables, const T* grad, const T* scalars, int64_t n) {
  if (N(scalars[kShrinkage ? 4 : 3]) == N(-0.5f)) {
    UpdateLoop<FtrlRule<N, kSparse, kMultiplyByRate, kShrinkage, true>, N>(variables, grad, scalars,
                                                                           n);
  } else {
    UpdateLoop<FtrlRule<N, kSparse, kMultiplyByRate, kShrinkage, false>, N>(variables, grad,
                                                                            scalars, n);
  }
}

// A rule with its flag.
template <template <typename, bool> class Rule, typename N, typename T>
void SetRule(UpdateTable<T>* table, UpdateRule rule) {
  for (auto& functions : table->rules[rule]) {
    functions[0] = UpdateLoop<Rule<N, false>, N, T>;
    functions[1] = UpdateLoop<Rule<N, true>, N, T>;
  }
}

// A rule that is another one for sparse updates.
template <template <typename, bool> class Rule, typename N, typename T>
void SetSparseRule(UpdateTable<T>* table, UpdateRule rule) {
  for (int flag = 0; flag < 2; ++flag) {
    table->rules[rule][0][flag] = UpdateLoop<Rule<N, false>, N, T>;
    table->rules[rule][1][flag] = UpdateLoop<Rule<N, true>, N, T>;
  }
}

template <bool kShrinkage, typename N, typename T>
void SetFtrl(UpdateTable<T>* table, UpdateRule rule) {
  table->rules[rule][0][0] = FtrlLoop<N, T, false, false, kShrinkage>;
  table->rules[rule][0][1] = FtrlLoop<N, T, false, true, kShrinkage>;
  table->rules[rule][1][0] = FtrlLoop<N, T, true, false, kShrinkage>;
  table->rules[rule][1][1] = FtrlLoop<N, T, true, true, kShrinkage>;
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

/// The formulas by which optimisers change variables, an element at a time, for processors and
/// cards. Plain types only, for all compilers.
///
/// Rules are templates over the number type, whose operations round as the element type's do, so
/// that one formula serves all types, also vectors of numbers. `Sqrt`, `Power` and `Exp` are
/// whoever includes this file's. In an unnamed namespace, because files for different instruction
/// sets include it.
#ifndef TROUPE_KERNELS_SIMD_UPDATE_FORMULAS_H_
#define TROUPE_KERNELS_SIMD_UPDATE_FORMULAS_H_

#include "kernels/common/formula.h"

namespace troupe {
namespace {

template <typename N>
TROUPE_FORMULA N Sqrt(N x);
template <typename N>
TROUPE_FORMULA N Power(N x, N exponent);
template <typename N>
TROUPE_FORMULA N Exp(N x);

// Vectors of numbers bring their own.
template <typename N>
TROUPE_FORMULA N Select(bool condition, N x, N y) {
  return condition ? x : y;
}

// NaN gives NaN in all of these.
template <typename N>
TROUPE_FORMULA N Magnitude(N x) {
  return Select(x < N(0), -x, x);
}
template <typename N>
TROUPE_FORMULA N Sign(N x) {
  return Select(x > N(0), N(1), Select(x < N(0), N(-1), x));
}
template <typename N>
TROUPE_FORMULA N Larger(N x, N bound) {
  return Select(x < bound, bound, x);
}
// Moves x towards 0 by `distance`, and not beyond.
template <typename N>
TROUPE_FORMULA N Shrink(N x, N distance) {
  return Sign(x) * Larger(Magnitude(x) - distance, N(0));
}

// Each rule is made from the op's scalars, in the order of its inputs, and changes an element of
// the variable and of its slots. The flag is the op's attribute, where it has one.

template <typename N, bool>
struct GradientDescentRule {
  static constexpr int kVariables = 1;
  N alpha;
  TROUPE_FORMULA explicit GradientDescentRule(const N* s) : alpha(s[0]) {}
  TROUPE_FORMULA void operator()(N& var, N g) const { var = var - g * alpha; }
};

template <typename N, bool kNesterov>
struct MomentumRule {
  static constexpr int kVariables = 2;
  N rate, momentum;
  TROUPE_FORMULA explicit MomentumRule(const N* s) : rate(s[0]), momentum(s[1]) {}
  TROUPE_FORMULA void operator()(N& var, N& accum, N g) const {
    accum = accum * momentum + g;
    var = var - (kNesterov ? g * rate + accum * momentum * rate : accum * rate);
  }
};

template <typename N, bool kNesterov>
struct KerasMomentumRule {
  static constexpr int kVariables = 2;
  N rate, momentum;
  TROUPE_FORMULA explicit KerasMomentumRule(const N* s) : rate(s[0]), momentum(s[1]) {}
  TROUPE_FORMULA void operator()(N& var, N& accum, N g) const {
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
  TROUPE_FORMULA explicit AdamRule(const N* s)
      : alpha(s[2] * Sqrt(N(1) - s[1]) / (N(1) - s[0])),
        beta1(s[3]),
        rest1(N(1) - s[3]),
        rest2(N(1) - s[4]),
        epsilon(s[5]) {}
  TROUPE_FORMULA void operator()(N& var, N& m, N& v, N g) const {
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
  TROUPE_FORMULA explicit AmsgradRule(const N* s)
      : alpha(s[2] * Sqrt(N(1) - s[1]) / (N(1) - s[0])),
        rest1(N(1) - s[3]),
        rest2(N(1) - s[4]),
        epsilon(s[5]) {}
  TROUPE_FORMULA void operator()(N& var, N& m, N& v, N& vhat, N g) const {
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
  TROUPE_FORMULA explicit AdaMaxRule(const N* s)
      : alpha(s[1] / (N(1) - s[0])), rest1(N(1) - s[2]), beta2(s[3]), epsilon(s[4]) {}
  TROUPE_FORMULA void operator()(N& var, N& m, N& v, N g) const {
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
  TROUPE_FORMULA explicit AdadeltaRule(const N* s)
      : rate(s[0]), rho(s[1]), rest(N(1) - s[1]), epsilon(s[2]) {}
  TROUPE_FORMULA void operator()(N& var, N& accum, N& accum_update, N g) const {
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
  TROUPE_FORMULA explicit AdagradRule(const N* s) : rate(s[0]) {}
  TROUPE_FORMULA void operator()(N& var, N& accum, N g) const {
    if (kUpdateSlots) accum = accum + g * g;
    var = var - g * rate * (N(1) / Sqrt(accum));
  }
};

template <typename N, bool kUpdateSlots>
struct AdagradV2Rule {
  static constexpr int kVariables = 2;
  N rate, epsilon;
  TROUPE_FORMULA explicit AdagradV2Rule(const N* s) : rate(s[0]), epsilon(s[1]) {}
  TROUPE_FORMULA void operator()(N& var, N& accum, N g) const {
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
  TROUPE_FORMULA explicit AdagradDARule(const N* s) : rate(s[0]), l1(s[1]), l2(s[2]), step(s[3]) {}
  TROUPE_FORMULA void operator()(N& var, N& sum, N& squares, N g) const {
    sum = sum + g;
    squares = squares + g * g;
    if (kByStep) {
      const N mean = sum / step;
      const N shrunk = Select(l1 > N(0), Shrink(mean, l1), mean);
      var = -shrunk / (l2 + Sqrt(squares) / (step * rate));
    } else {
      const N shrunk = Select(l1 > N(0), Shrink(sum, l1 * step), sum);
      var = -rate * shrunk / (l2 * step * rate + Sqrt(squares));
    }
  }
};

// Duchi and Singer, "Efficient Online and Batch Learning using Forward Backward Splitting", 2009.
template <typename N>
TROUPE_FORMULA N Proximal(N x, N rate, N l1, N l2) {
  return Select(l1 > N(0), Shrink(x, rate * l1), x) / (N(1) + l2 * rate);
}

template <typename N, bool>
struct ProximalGradientDescentRule {
  static constexpr int kVariables = 1;
  N alpha, l1, l2;
  TROUPE_FORMULA explicit ProximalGradientDescentRule(const N* s)
      : alpha(s[0]), l1(s[1]), l2(s[2]) {}
  TROUPE_FORMULA void operator()(N& var, N g) const {
    var = Proximal(var - g * alpha, alpha, l1, l2);
  }
};

template <typename N, bool>
struct ProximalAdagradRule {
  static constexpr int kVariables = 2;
  N rate, l1, l2;
  TROUPE_FORMULA explicit ProximalAdagradRule(const N* s) : rate(s[0]), l1(s[1]), l2(s[2]) {}
  TROUPE_FORMULA void operator()(N& var, N& accum, N g) const {
    accum = accum + g * g;
    const N own_rate = rate * (N(1) / Sqrt(accum));
    var = Proximal(var - g * own_rate, own_rate, l1, l2);
  }
};

// The mean of old and new values, as dense and as sparse updates compute it: they differ where the
// old one is infinite.
template <typename N, bool kSparse>
TROUPE_FORMULA N Mean(N old_value, N new_value, N weight, N rest) {
  return kSparse ? old_value * weight + new_value * rest
                 : old_value + (new_value - old_value) * rest;
}

// Hinton, "Neural Networks for Machine Learning", lecture 6.
template <typename N, bool kSparse>
struct RMSPropRule {
  static constexpr int kVariables = 3;
  N rate, rho, rest, momentum, epsilon;
  TROUPE_FORMULA explicit RMSPropRule(const N* s)
      : rate(s[0]), rho(s[1]), rest(N(1) - s[1]), momentum(s[2]), epsilon(s[3]) {}
  TROUPE_FORMULA void operator()(N& var, N& ms, N& mom, N g) const {
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
  TROUPE_FORMULA explicit CenteredRMSPropRule(const N* s)
      : rate(s[0]), rho(s[1]), rest(N(1) - s[1]), momentum(s[2]), epsilon(s[3]) {}
  TROUPE_FORMULA void operator()(N& var, N& mg, N& ms, N& mom, N g) const {
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
  TROUPE_FORMULA explicit AddSignRule(const N* s)
      : rate(s[0]), alpha(s[1]), sign_decay(s[2]), beta(s[3]), rest(N(1) - s[3]) {}
  TROUPE_FORMULA void operator()(N& var, N& m, N g) const {
    m = m * beta + g * rest;
    var = var - rate * (alpha + sign_decay * (Sign(g) * Sign(m))) * g;
  }
};

template <typename N, bool>
struct PowerSignRule {
  static constexpr int kVariables = 2;
  N rate, agree, disagree, beta, rest;
  TROUPE_FORMULA explicit PowerSignRule(const N* s)
      : rate(s[0]),
        agree(Exp(s[1] * s[2])),
        disagree(Exp(-(s[1] * s[2]))),
        beta(s[3]),
        rest(N(1) - s[3]) {}
  TROUPE_FORMULA void operator()(N& var, N& m, N g) const {
    m = m * beta + g * rest;
    const N sign = Sign(g) * Sign(m);
    // The exponential has only these three values.
    const N scale = Select(sign > N(0), agree, disagree);
    var = var - rate * Select(sign * sign > N(0), scale, sign + N(1)) * g;
  }
};

// McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013; V2 adds the shrinkage of
// l2 that acts on the gradient. kRoot: lr_power is -1/2, as it nearly always is. Dense updates make
// NaN in `linear` a 0, sparse ones hand it on.
template <typename N, bool kSparse, bool kMultiplyByRate, bool kShrinkage, bool kRoot>
struct FtrlRule {
  static constexpr int kVariables = 3;
  N rate, l1, l2, shrinkage, exponent;
  TROUPE_FORMULA explicit FtrlRule(const N* s)
      : rate(s[0]),
        l1(kMultiplyByRate ? s[1] * s[0] : s[1]),
        l2(kMultiplyByRate ? N(2) * s[2] * s[0] : N(2) * s[2]),
        shrinkage(kShrinkage ? N(2) * s[3] : N(0)),
        exponent(-s[kShrinkage ? 4 : 3]) {}
  TROUPE_FORMULA N Root(N x) const { return kRoot ? Sqrt(x) : Power(x, exponent); }
  TROUPE_FORMULA void operator()(N& var, N& accum, N& linear, N g) const {
    const N shrunk = kShrinkage ? g + shrinkage * var : g;
    const N before = Root(accum);
    accum = accum + g * g;
    const N after = Root(accum);
    linear = linear + (kMultiplyByRate ? shrunk * rate - (after - before) * var
                                       : shrunk - (after - before) / rate * var);
    const N quadratic = (kMultiplyByRate ? after : after / rate) + l2;
    if (kSparse) {
      const N clipped = Select(linear > l1, l1, Select(linear < -l1, -l1, linear));
      var = (clipped - linear) / quadratic;
    } else {
      var = Select(Magnitude(linear) > l1, (l1 * Sign(linear) - linear) / quadratic, N(0));
    }
  }
};

}  // namespace
}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_UPDATE_FORMULAS_H_

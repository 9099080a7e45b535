#include "kernels/simd/updates.h"

// Else a square root is a call wherever it might set errno, and its loop is not vectorised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

namespace troupe::TROUPE_ISA {
namespace {

inline float Root(float x) { return __builtin_sqrtf(x); }
inline double Root(double x) { return __builtin_sqrt(x); }

template <typename T>
void Add(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

template <typename T>
void Subtract(const T* a, const T* b, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
}

template <typename T>
void Descend(T* __restrict var, const T* __restrict grad, T rate, int64_t n) {
  for (int64_t i = 0; i < n; ++i) var[i] -= grad[i] * rate;
}

template <typename T>
void Momentum(T* __restrict var, T* __restrict accum, const T* __restrict grad, T rate, T momentum,
              bool nesterov, int64_t n) {
  if (nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] = accum[i] * momentum + grad[i];
      var[i] -= grad[i] * rate + accum[i] * momentum * rate;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      accum[i] = accum[i] * momentum + grad[i];
      var[i] -= accum[i] * rate;
    }
  }
}

template <typename T>
void Adam(T* __restrict var, T* __restrict m, T* __restrict v, const T* __restrict grad,
          const AdamFactors<T>& factors, bool nesterov, int64_t n) {
  const T alpha = factors.alpha, beta1 = factors.beta1, epsilon = factors.epsilon;
  const T rest1 = T(1) - factors.beta1, rest2 = T(1) - factors.beta2;
  if (nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      const T g = grad[i];
      m[i] += (g - m[i]) * rest1;
      v[i] += (g * g - v[i]) * rest2;
      var[i] -= (g * rest1 + beta1 * m[i]) * alpha / (Root(v[i]) + epsilon);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const T g = grad[i];
      m[i] += (g - m[i]) * rest1;
      v[i] += (g * g - v[i]) * rest2;
      var[i] -= m[i] * alpha / (Root(v[i]) + epsilon);
    }
  }
}

template <typename T>
void Fill(UpdateFunctions<T>* functions) {
  functions->add = Add<T>;
  functions->subtract = Subtract<T>;
  functions->descend = Descend<T>;
  functions->momentum = Momentum<T>;
  functions->adam = Adam<T>;
}

}  // namespace

void FillUpdates(UpdateFunctions<float>* functions) { Fill(functions); }
void FillUpdates(UpdateFunctions<double>* functions) { Fill(functions); }

}  // namespace troupe::TROUPE_ISA

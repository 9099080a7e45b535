/// Updates of variables in bulk, compiled once per instruction set. Every element is computed
/// alone, with the same roundings whatever the instruction set.
#ifndef TROUPE_KERNELS_SIMD_UPDATES_H_
#define TROUPE_KERNELS_SIMD_UPDATES_H_

#include <cstdint>

namespace troupe {

/// What Adam takes besides arrays. `alpha` is lr * sqrt(1 - beta2_power) / (1 - beta1_power).
template <typename T>
struct AdamFactors {
  T alpha, beta1, beta2, epsilon;
};

/// The functions of one instruction set; arrays have `n` elements. Thread-safe.
template <typename T>
struct UpdateFunctions {
  /// out = a + b, out = a - b; `out` may be `a`.
  void (*add)(const T* a, const T* b, T* out, int64_t n);
  void (*subtract)(const T* a, const T* b, T* out, int64_t n);
  /// var -= grad * rate
  void (*descend)(T* var, const T* grad, T rate, int64_t n);
  /// accum = accum * momentum + grad; var -= accum * rate, or with Nesterov's look ahead
  /// var -= grad * rate + accum * momentum * rate.
  void (*momentum)(T* var, T* accum, const T* grad, T rate, T momentum, bool nesterov, int64_t n);
  /// m += (grad - m) * (1 - beta1); v += (grad * grad - v) * (1 - beta2);
  /// var -= m * alpha / (sqrt(v) + epsilon); Nesterov: (grad * (1 - beta1) + beta1 * m) for m
  /// there.
  void (*adam)(T* var, T* m, T* v, const T* grad, const AdamFactors<T>& factors, bool nesterov,
               int64_t n);
};

/// The best functions that this processor can run.
template <typename T>
const UpdateFunctions<T>& Updates();
template <>
const UpdateFunctions<float>& Updates<float>();
template <>
const UpdateFunctions<double>& Updates<double>();

#define TROUPE_DECLARE_UPDATES(ISA)                     \
  namespace ISA {                                       \
  void FillUpdates(UpdateFunctions<float>* functions);  \
  void FillUpdates(UpdateFunctions<double>* functions); \
  }
TROUPE_DECLARE_UPDATES(v2)
TROUPE_DECLARE_UPDATES(v3)
TROUPE_DECLARE_UPDATES(v4)
#undef TROUPE_DECLARE_UPDATES

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_UPDATES_H_

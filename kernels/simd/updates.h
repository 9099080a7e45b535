/// Updates of variables in bulk. Every element is computed alone, with the same roundings whatever
/// the instruction set: those of real numbers are compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_UPDATES_H_
#define TROUPE_KERNELS_SIMD_UPDATES_H_

#include <complex>
#include <cstdint>
#include <type_traits>

#include "devices/half.h"
#include "kernels/simd/update_rule.h"

namespace troupe {

/// As what elements are read and written: half and bfloat16 as their bits.
template <typename T>
using StoredAs =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, uint16_t, T>;

/// Applies a rule to `n` elements. `variables` are the variable and its slots, in the order of the
/// op's inputs; two of them may be the same. `scalars` has kMaxUpdateScalars elements: the op's
/// scalars, in the order of its inputs, then anything.
template <typename T>
using UpdateFn = void (*)(StoredAs<T>* const* variables, const StoredAs<T>* grad,
                          const StoredAs<T>* scalars, int64_t n);

/// The functions of a rule, by whether the op is sparse, then by its flag (`use_nesterov`,
/// `update_slots`, `multiply_linear_by_lr`; where it has none, both are the same). nullptr: the
/// rule is not for this type.
template <typename T>
struct UpdateTable {
  UpdateFn<T> rules[kNumUpdateRules][2][2] = {};
};

/// The functions of one instruction set; arrays have `n` elements. Thread-safe.
template <typename T>
struct UpdateFunctions : UpdateTable<T> {
  /// out = a + b, out = a - b; `out` may be `a`.
  void (*add)(const T* a, const T* b, T* out, int64_t n);
  void (*subtract)(const T* a, const T* b, T* out, int64_t n);
};

template <>
struct UpdateFunctions<half> : UpdateTable<half> {};
template <>
struct UpdateFunctions<bfloat16> : UpdateTable<bfloat16> {};

/// The best functions that this processor can run.
template <typename T>
const UpdateFunctions<T>& Updates();
template <>
const UpdateFunctions<float>& Updates<float>();
template <>
const UpdateFunctions<double>& Updates<double>();
template <>
const UpdateFunctions<half>& Updates<half>();
template <>
const UpdateFunctions<bfloat16>& Updates<bfloat16>();

/// The rules for complex numbers.
template <typename T>
const UpdateTable<T>& PlainUpdates();
template <>
const UpdateTable<std::complex<float>>& PlainUpdates<std::complex<float>>();
template <>
const UpdateTable<std::complex<double>>& PlainUpdates<std::complex<double>>();

#define TROUPE_DECLARE_UPDATES(ISA)                       \
  namespace ISA {                                         \
  void FillUpdates(UpdateFunctions<float>* functions);    \
  void FillUpdates(UpdateFunctions<double>* functions);   \
  void FillUpdates(UpdateFunctions<half>* functions);     \
  void FillUpdates(UpdateFunctions<bfloat16>* functions); \
  }
TROUPE_DECLARE_UPDATES(v2)
TROUPE_DECLARE_UPDATES(v3)
TROUPE_DECLARE_UPDATES(v4)
#undef TROUPE_DECLARE_UPDATES

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_UPDATES_H_

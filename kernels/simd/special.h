/// Special functions, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_SPECIAL_H_
#define TROUPE_KERNELS_SIMD_SPECIAL_H_

#include <cstdint>

namespace troupe {

/// Loops over `n` numbers; `out` may be an input.
struct SpecialFunctions {
  /// NaN outside of [-1, 1].
  void (*inverse_erf)(const float* x, float* out, int64_t n);
  /// NaN outside of [0, 1].
  void (*normal_quantile)(const float* p, float* out, int64_t n);
  /// Hurwitz' zeta function where `ZetaIsPlain`; else something.
  void (*zeta)(const double* x, const double* q, double* out, int64_t n);
};

/// Where `SpecialFunctions::zeta` is right to 12 digits.
inline bool ZetaIsPlain(double x, double q) { return x > 1 && x <= 64 && q >= 1e-3 && q <= 1e9; }

/// The best functions that this processor can run.
const SpecialFunctions& Special();

namespace v2 {
SpecialFunctions SpecialTable();
}
namespace v3 {
SpecialFunctions SpecialTable();
}
namespace v4 {
SpecialFunctions SpecialTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_SPECIAL_H_

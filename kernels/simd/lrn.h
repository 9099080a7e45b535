/// Local response normalization of float pixels, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_LRN_H_
#define TROUPE_KERNELS_SIMD_LRN_H_

#include <cstdint>

namespace troupe {

/// norm[c] = bias + alpha * the sum of squares of the channels from c - radius to c + radius;
/// y[c] = x[c] * norm[c]^-beta.
struct LrnForm {
  int64_t depth = 0, radius = 0;  ///< 0 <= radius < depth.
  float bias = 1, alpha = 1, beta = 0.5;

  /// Floats of scratch memory for `pixels` pixels.
  int64_t scratch(int64_t pixels) const { return depth + 2 * radius + 3 * (pixels * depth + 64); }
};

/// The functions of one instruction set, for [pixels, depth]. Thread-safe.
struct LrnFunctions {
  void (*forward)(const LrnForm& form, const float* x, int64_t pixels, float* scratch, float* y);
  void (*gradient)(const LrnForm& form, const float* dy, const float* x, const float* y,
                   int64_t pixels, float* scratch, float* dx);
};

/// The best functions that this processor can run.
const LrnFunctions& Lrn();

namespace v2 {
LrnFunctions LrnTable();
}
namespace v3 {
LrnFunctions LrnTable();
}
namespace v4 {
LrnFunctions LrnTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_LRN_H_

/// Sums and scaling of batch normalization, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_BATCH_NORM_H_
#define TROUPE_KERNELS_SIMD_BATCH_NORM_H_

#include <cstdint>

#include "kernels/simd/table.h"

namespace troupe {

/// What the gradient of x is made of, one value for each column: factor (dy - shift - (x - mean)
/// slope).
struct BatchNormSlope {
  const float *mean, *factor, *shift, *slope;
};

/// The functions of one element type. All take dense matrices [rows, columns] of that type, and
/// vectors of float with one element for each column; sums are added to in the order of the rows.
/// Thread-safe.
struct BatchNormFunctions {
  /// sums[c] += x[r, c].
  void (*sum)(const void* x, int64_t rows, int64_t columns, float* sums);
  /// sums[c] += (x[r, c] - mean[c])^2.
  void (*sum_squares)(const void* x, const float* mean, int64_t rows, int64_t columns, float* sums);
  /// sums[c] += dy[r, c]; products[c] += dy[r, c] * (x[r, c] - mean[c]).
  void (*sum_products)(const void* dy, const void* x, const float* mean, int64_t rows,
                       int64_t columns, float* sums, float* products);
  /// y = (x - mean) * factor + offset.
  void (*normalize)(const void* x, const float* mean, const float* factor, const float* offset,
                    int64_t rows, int64_t columns, void* y);
  /// y = x * factor.
  void (*scale)(const void* x, const float* factor, int64_t rows, int64_t columns, void* y);
  /// dx, from dy and x.
  void (*gradient)(const void* dy, const void* x, const BatchNormSlope& slope, int64_t rows,
                   int64_t columns, void* dx);
};

/// The best functions that this processor can run, for kF32, kF16 and kBF16.
const BatchNormFunctions& BatchNorm(simd::Type type);

namespace v2 {
BatchNormFunctions BatchNormTable(simd::Type type);
}
namespace v3 {
BatchNormFunctions BatchNormTable(simd::Type type);
}
namespace v4 {
BatchNormFunctions BatchNormTable(simd::Type type);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_BATCH_NORM_H_

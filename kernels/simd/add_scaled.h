/// Sums of scaled rows, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_ADD_SCALED_H_
#define TROUPE_KERNELS_SIMD_ADD_SCALED_H_

#include <cstdint>

#include "kernels/simd/table.h"

namespace troupe {

/// sums[i] += factor * x[i] for i < n. x is of one type (kF32, kF16 or kBF16), sums are float. The
/// two do not overlap. Thread-safe.
using AddScaledFn = void (*)(const void* x, float factor, int64_t n, float* sums);

/// The best function that this processor can run.
AddScaledFn AddScaled(simd::Type type);

namespace v2 {
AddScaledFn AddScaledFor(simd::Type type);
}
namespace v3 {
AddScaledFn AddScaledFor(simd::Type type);
}
namespace v4 {
AddScaledFn AddScaledFor(simd::Type type);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_ADD_SCALED_H_

/// Pooling of images of floating types, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_POOL_H_
#define TROUPE_KERNELS_SIMD_POOL_H_

#include <cstdint>

#include "kernels/simd/table.h"

namespace troupe {

/// One dimension of a pooling window.
struct PoolAxis {
  int64_t input = 0, output = 0, window = 1, stride = 1, pad = 0;
};

/// A pooling of images [rows, columns, depth].
struct PoolForm {
  PoolAxis rows, columns;
  int64_t depth = 0;
  /// The element type's lowest finite value, which the maximum of nothing is.
  const void* lowest = nullptr;
};

/// The functions of one element type and instruction set; `begin` and `end` count rows of the
/// output over all images, or images. Half and bfloat16 are summed as floats, and have no
/// gradients here. Thread-safe.
struct PoolFunctions {
  void (*max_rows)(const PoolForm& form, const void* input, void* output, int64_t begin,
                   int64_t end) = nullptr;
  void (*average_rows)(const PoolForm& form, const void* input, void* output, int64_t begin,
                       int64_t end) = nullptr;
  void (*max_gradient_images)(const PoolForm& form, const void* input, const void* gradient,
                              void* output, int64_t begin, int64_t end) = nullptr;
  void (*average_gradient_image)(const PoolForm& form, const void* gradient,
                                 void* output) = nullptr;
};

/// The best functions that this processor can run, of a floating type.
const PoolFunctions& Pool(simd::Type type);

namespace v2 {
PoolFunctions PoolTable(simd::Type type);
}
namespace v3 {
PoolFunctions PoolTable(simd::Type type);
}
namespace v4 {
PoolFunctions PoolTable(simd::Type type);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_POOL_H_

/// Pooling of float images, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_POOL_H_
#define TROUPE_KERNELS_SIMD_POOL_H_

#include <cstdint>

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

/// The functions of one instruction set; `begin` and `end` count rows of the output over all
/// images, or images. Thread-safe.
struct PoolFunctions {
  void (*max_rows)(const PoolForm& form, const float* input, float* output, int64_t begin,
                   int64_t end);
  void (*max_gradient_images)(const PoolForm& form, const float* input, const float* gradient,
                              float* output, int64_t begin, int64_t end);
  void (*average_rows)(const PoolForm& form, const float* input, float* output, int64_t begin,
                       int64_t end);
  void (*average_gradient_image)(const PoolForm& form, const float* gradient, float* output);
};

/// The best functions that this processor can run.
const PoolFunctions& Pool();

namespace v2 {
PoolFunctions PoolTable();
}
namespace v3 {
PoolFunctions PoolTable();
}
namespace v4 {
PoolFunctions PoolTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_POOL_H_

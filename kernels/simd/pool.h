/// Pooling of images of floats, half and bfloat16, compiled once per instruction set.
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

/// `begin` and `end` count rows of the output over all images.
template <typename T>
using PoolRowsFunction = void (*)(const PoolForm& form, const T* input, T* output, int64_t begin,
                                  int64_t end);

/// The functions of one instruction set; other `begin` and `end` count images. Thread-safe.
struct PoolFunctions {
  PoolRowsFunction<float> max_rows;
  PoolRowsFunction<uint16_t> max_rows_half, max_rows_bfloat16;  ///< of their bits
  void (*max_gradient_images)(const PoolForm& form, const float* input, const float* gradient,
                              float* output, int64_t begin, int64_t end);
  PoolRowsFunction<float> average_rows;
  PoolRowsFunction<uint16_t> average_rows_half, average_rows_bfloat16;
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

/// Pooling of volumes, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_VOLUME_POOL_H_
#define TROUPE_KERNELS_SIMD_VOLUME_POOL_H_

#include <cstdint>

#include "kernels/simd/table.h"

namespace troupe {

/// Pixels of a volume, `channels` elements each: a box of planes, rows and columns. Steps are in
/// elements; pixels of a row lie side by side.
struct PixelBox {
  const void* first;
  int64_t planes, rows, columns;
  int64_t plane_step, row_step;
  int64_t channels;
};

/// The functions of one element type. Thread-safe.
struct VolumePoolFunctions {
  /// out[c] = the largest value of channel c, -infinity if the box is empty. A NaN lasts until the
  /// next number.
  void (*max)(const PixelBox& box, void* out);
  /// out[c] = the sum of channel c, a float added in the order of the pixels, times `factor`.
  void (*scaled_sum)(const PixelBox& box, float factor, void* out);
};

/// The best functions that this processor can run, for kF32, kF16 and kBF16.
const VolumePoolFunctions& VolumePool(simd::Type type);

namespace v2 {
VolumePoolFunctions VolumePoolTable(simd::Type type);
}
namespace v3 {
VolumePoolFunctions VolumePoolTable(simd::Type type);
}
namespace v4 {
VolumePoolFunctions VolumePoolTable(simd::Type type);
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_VOLUME_POOL_H_

/// Pooling of volumes, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_VOLUME_POOL_H_
#define TROUPE_KERNELS_SIMD_VOLUME_POOL_H_

#include <cstdint>

#include "kernels/simd/table.h"

namespace troupe {

/// Boxes of planes, rows and columns of a volume's pixels, `channels` elements each: `boxes` of one
/// size, each `box_step` after the one before. Steps are in elements; pixels of a row lie side by
/// side.
struct PixelBoxes {
  const void* first;
  int64_t planes, rows, columns;
  int64_t plane_step, row_step;
  int64_t channels;
  int64_t boxes, box_step;
};

/// The functions of one element type. Results of boxes, `channels` elements each, lie side by side.
/// Thread-safe.
struct VolumePoolFunctions {
  /// The largest value of each channel, -infinity if boxes are empty. A NaN lasts until the next
  /// number.
  void (*max)(const PixelBoxes& boxes, void* out);
  /// The sum of each channel, a float added in the order of the pixels, times `factor`.
  void (*scaled_sum)(const PixelBoxes& boxes, float factor, void* out);
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

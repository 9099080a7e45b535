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
  int64_t out_step;  ///< Between the results of boxes.
};

/// Runs of `columns` pixels of a row, `channels` elements each: `runs` of one length, each
/// `run_step` elements after the one before.
struct PixelRuns {
  int64_t columns, channels;
  int64_t runs, run_step;
};

/// The functions of one element type. The result of a box is `channels` elements. Thread-safe.
struct VolumePoolFunctions {
  /// The largest value of each channel, -infinity if boxes are empty. A NaN lasts until the next
  /// number.
  void (*max)(const PixelBoxes& boxes, void* out);
  /// The sum of each channel, a float, times `factor`. Added in the order of the pixels; of boxes
  /// that overlap by half along their rows, first over planes and rows, then over columns.
  void (*scaled_sum)(const PixelBoxes& boxes, float factor, void* out);
  /// All pixels of run i of `out` become pixel i of `in`, times `factor`.
  void (*spread)(const void* in, float factor, const PixelRuns& runs, void* out);
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

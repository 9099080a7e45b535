/// Rows of images that are resized, compiled once per instruction set; the same bits with each.
#ifndef TROUPE_KERNELS_SIMD_RESIZE_H_
#define TROUPE_KERNELS_SIMD_RESIZE_H_

#include <cstdint>

namespace troupe {

/// Where the pixels of a new row come from: pixel x from those at indices[k], times weights[k], for
/// begins[x] <= k < begins[x + 1].
struct RowTaps {
  const int32_t* begins;
  const int32_t* indices;
  const float* weights;
  int64_t size;      ///< Pixels in the new row.
  int64_t channels;  ///< Numbers in a pixel.
  /// So many of the first pixels, of three or four channels, can be read and written as four
  /// numbers without leaving the rows.
  int64_t whole;
};

/// The functions of one instruction set. Thread-safe.
struct ResizeFunctions {
  /// out = left + (right - left) * fraction; each pixel has two taps, the second weight being the
  /// fraction.
  void (*lerp_bytes)(const RowTaps& taps, const uint8_t* in, float* out);
  void (*lerp_floats)(const RowTaps& taps, const float* in, float* out);
  /// out = the weighted sum, in the order of the taps.
  void (*sum_bytes)(const RowTaps& taps, const uint8_t* in, float* out);
  void (*sum_floats)(const RowTaps& taps, const float* in, float* out);
  /// out[i] = top[i] + (bottom[i] - top[i]) * fraction.
  void (*lerp_rows)(const float* top, const float* bottom, float fraction, int64_t n, float* out);
  /// out[i] = in[i] * weight, added to what is there unless it is the `first`.
  void (*add_row)(const float* in, float weight, bool first, int64_t n, float* out);
};

/// The best functions that this processor can run.
const ResizeFunctions& Resize();

namespace v2 {
ResizeFunctions ResizeTable();
}
namespace v3 {
ResizeFunctions ResizeTable();
}
namespace v4 {
ResizeFunctions ResizeTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_RESIZE_H_

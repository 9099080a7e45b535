/// Convolutions of each channel with a window of its own, compiled once per instruction set.
#ifndef TROUPE_KERNELS_SIMD_DEPTHWISE_H_
#define TROUPE_KERNELS_SIMD_DEPTHWISE_H_

#include <cstdint>

namespace troupe {

/// Pixels of one or two rows of the result whose windows all lie inside the input, `channels`
/// elements each: out[l * out_line_step + i * out_step + c] = sum over r < rows, t < taps of
/// in[l * in_line_step + i * in_step + r * in_row_step + t * in_tap_step + c] *
/// filter[r * filter_row_step + t * filter_tap_step + c]. Steps are in elements. Zeros without rows
/// or taps.
struct DepthwiseRun {
  const float* in = nullptr;
  int64_t in_line_step = 0, in_step = 0, in_row_step = 0, in_tap_step = 0;
  const float* filter = nullptr;
  int64_t filter_row_step = 0, filter_tap_step = 0;
  int64_t rows = 0, taps = 0;
  int64_t lines = 1;  ///< Rows of the result, 1 or 2.
  int64_t pixels = 0, channels = 0;
  float* out = nullptr;
  int64_t out_line_step = 0, out_step = 0;
  bool is_far = false;  ///< The input does not lie in a near cache: rows are fetched ahead.
};

/// The functions of one instruction set. Thread-safe.
struct DepthwiseFunctions {
  int64_t lanes;  ///< Of a vector: with fewer channels elements are computed one by one.
  /// An element is added up in the order of r and t, or in the opposite order of those whose steps
  /// of `in` are negative. So its bits do not depend on how many elements are computed at once.
  void (*run)(const DepthwiseRun& run);
};

/// The best functions that this processor can run.
const DepthwiseFunctions& Depthwise();

namespace v2 {
DepthwiseFunctions DepthwiseTable();
}
namespace v3 {
DepthwiseFunctions DepthwiseTable();
}
namespace v4 {
DepthwiseFunctions DepthwiseTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_DEPTHWISE_H_

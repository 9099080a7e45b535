/// Colors of pixels, compiled once per instruction set; the same bits with each.
#ifndef TROUPE_KERNELS_SIMD_COLORS_H_
#define TROUPE_KERNELS_SIMD_COLORS_H_

#include <cstdint>

namespace troupe {

/// Channels that `ColorFunctions` adds and moves: at most so many.
inline constexpr int64_t kMaxColorChannels = 256;

/// The functions of one instruction set, on `n` pixels, of three channels if not said otherwise;
/// `out` may be `in`. Thread-safe.
struct ColorFunctions {
  void (*rgb_to_hsv)(const float* in, int64_t n, float* out);
  void (*hsv_to_rgb)(const float* in, int64_t n, float* out);
  /// `by` in full turns.
  void (*turn_hue)(const float* in, float by, int64_t n, float* out);
  void (*scale_saturation)(const float* in, float by, int64_t n, float* out);
  /// sums[c] += the values of channel c, of `channels`, in float within some thousand pixels.
  void (*add_channels)(const float* in, int64_t n, int64_t channels, double* sums);
  /// out = (in - means[c]) * factor + means[c].
  void (*move_from_means)(const float* in, int64_t n, int64_t channels, const float* means,
                          float factor, float* out);
};

/// The best functions that this processor can run.
const ColorFunctions& Colors();

namespace v2 {
ColorFunctions ColorTable();
}
namespace v3 {
ColorFunctions ColorTable();
}
namespace v4 {
ColorFunctions ColorTable();
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_COLORS_H_

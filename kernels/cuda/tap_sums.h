/// How sums over all pixels, for each tap of a window and each channel, are cut into blocks.
#ifndef TROUPE_KERNELS_CUDA_TAP_SUMS_H_
#define TROUPE_KERNELS_CUDA_TAP_SUMS_H_

#include <algorithm>
#include <cstdint>

namespace troupe::cuda {

/// Taps that a thread adds to at once: all of a window of 3 x 3.
inline constexpr int kTapsAtOnce = 9;

/// Pixels are cut into `pieces`, whose sums are added in their order. Depends on sizes alone, so
/// that results are the same bits on every card.
struct TapSums {
  int64_t pixels, taps, channels;
  bool side_by_side;  ///< Channels are, so that threads take neighbours; else each has a block.
  int64_t pieces = 1;

  TapSums(int64_t pixel_count, int64_t tap_count, int64_t channel_count, bool channels_first)
      : pixels(pixel_count),
        taps(tap_count),
        channels(channel_count),
        side_by_side(!channels_first) {
    // Enough blocks to fill any card, and some pixels for each of their threads.
    constexpr int64_t kBlocks = 1024, kMost = 512;
    const int64_t least = side_by_side ? 128 : 2048;
    const int64_t others = Groups() * (side_by_side ? (channels + 127) / 128 : channels);
    pieces = std::clamp<int64_t>(std::min(kBlocks / std::max<int64_t>(others, 1), pixels / least),
                                 1, kMost);
  }
  int64_t Groups() const { return (taps + kTapsAtOnce - 1) / kTapsAtOnce; }
  /// How many sums there are between the two launches.
  int64_t scratch() const { return pieces * taps * channels; }
  /// Threads beside each other that take the channels, `pack` each.
  int Width(int pack) const {
    int width = 1;
    while (side_by_side && width < 32 && width * pack < channels) width *= 2;
    return width;
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_TAP_SUMS_H_

#include "kernels/simd/colors.h"

#include "kernels/simd/color_loops.h"

namespace troupe::TROUPE_ISA {
namespace {

void RgbToHsv(const float* in, int64_t n, float* out) {
  ForColors(in, n, out, [](Color<float> c) { return ToHsv(c); });
}

void HsvToRgb(const float* in, int64_t n, float* out) {
  ForColors(in, n, out, [](Color<float> c) { return ToRgb(c); });
}

void TurnHue(const float* in, float by, int64_t n, float* out) {
  ForColors(in, n, out, [by](Color<float> c) { return TurnedHue(c, by); });
}

void ScaleSaturation(const float* in, float by, int64_t n, float* out) {
  ForColors(in, n, out, [by](Color<float> c) { return ScaledSaturation(c, by); });
}

// Channels side by side make a pattern that is repeated, and long enough for wide registers.
constexpr int64_t kRepeats = 16;
constexpr int64_t kSmall = 4;  // Channels, at most, that are repeated.

void AddChannels(const float* in, int64_t n, int64_t channels, double* sums) {
  constexpr int64_t kChunk = 4096;
  const int64_t repeats = channels <= kSmall ? kRepeats : 1;
  const int64_t period = channels * repeats;
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    float sum[kMaxColorChannels];
    for (int64_t j = 0; j < period; ++j) sum[j] = 0;
    const float* from = in + i * channels;
    int64_t p = 0;
    for (; p + repeats <= count; p += repeats, from += period) {
      for (int64_t j = 0; j < period; ++j) sum[j] += from[j];
    }
    for (int64_t j = 0; j < (count - p) * channels; ++j) sum[j] += from[j];
    for (int64_t j = 0; j < period; ++j) sums[j % channels] += static_cast<double>(sum[j]);
  }
}

void MoveFromMeans(const float* in, int64_t n, int64_t channels, const float* means, float factor,
                   float* out) {
  const int64_t repeats = channels <= kSmall ? kRepeats : 1;
  const int64_t period = channels * repeats;
  float mean[kMaxColorChannels];
  for (int64_t j = 0; j < period; ++j) mean[j] = means[j % channels];
  int64_t p = 0;
  for (; p + repeats <= n; p += repeats, in += period, out += period) {
    for (int64_t j = 0; j < period; ++j) out[j] = (in[j] - mean[j]) * factor + mean[j];
  }
  for (int64_t j = 0; j < (n - p) * channels; ++j) out[j] = (in[j] - mean[j]) * factor + mean[j];
}

}  // namespace

ColorFunctions ColorTable() {
  return {RgbToHsv, HsvToRgb, TurnHue, ScaleSaturation, AddChannels, MoveFromMeans};
}

}  // namespace troupe::TROUPE_ISA

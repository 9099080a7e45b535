#include "kernels/simd/resize.h"

#include <string.h>
#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

namespace troupe::TROUPE_ISA {
namespace {

typedef float Four __attribute__((vector_size(16)));

inline Four Splat(float x) { return x - Four{}; }

/// The four values from `in` on: a pixel of three or four channels.
inline Four Load(const float* in) {
  Four four;
  memcpy(&four, in, sizeof(four));
  return four;
}
inline Four Load(const uint8_t* in) {
#if defined(__SSE4_1__)
  int32_t bytes;
  memcpy(&bytes, in, sizeof(bytes));
  return (Four)_mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
#else
  return Four{(float)in[0], (float)in[1], (float)in[2], (float)in[3]};
#endif
}
inline void Store(Four four, float* out) { memcpy(out, &four, sizeof(four)); }

template <typename T>
void Lerp(const RowTaps& taps, const T* in, float* out) {
  const int64_t channels = taps.channels;
  int64_t x = 0;
  for (; x < taps.whole; ++x) {
    const Four left = Load(in + taps.indices[2 * x] * channels);
    const Four right = Load(in + taps.indices[2 * x + 1] * channels);
    Store(left + (right - left) * Splat(taps.weights[2 * x + 1]), out + x * channels);
  }
  for (; x < taps.size; ++x) {
    const T* left = in + taps.indices[2 * x] * channels;
    const T* right = in + taps.indices[2 * x + 1] * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float value = static_cast<float>(left[c]);
      out[x * channels + c] =
          value + (static_cast<float>(right[c]) - value) * taps.weights[2 * x + 1];
    }
  }
}

template <typename T>
void Sum(const RowTaps& taps, const T* in, float* out) {
  const int64_t channels = taps.channels;
  int64_t x = 0;
  for (; x < taps.whole; ++x) {
    Four sum = Four{};
    for (int32_t k = taps.begins[x]; k < taps.begins[x + 1]; ++k) {
      sum += Load(in + taps.indices[k] * channels) * Splat(taps.weights[k]);
    }
    Store(sum, out + x * channels);
  }
  for (; x < taps.size; ++x) {
    float* to = out + x * channels;
    for (int64_t c = 0; c < channels; ++c) to[c] = 0;
    for (int32_t k = taps.begins[x]; k < taps.begins[x + 1]; ++k) {
      const T* from = in + taps.indices[k] * channels;
      const float weight = taps.weights[k];
      for (int64_t c = 0; c < channels; ++c) to[c] += static_cast<float>(from[c]) * weight;
    }
  }
}

void LerpRows(const float* top, const float* bottom, float fraction, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = top[i] + (bottom[i] - top[i]) * fraction;
}

void AddRow(const float* in, float weight, bool first, int64_t n, float* out) {
  if (first) {
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] * weight;
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] += in[i] * weight;
  }
}

}  // namespace

ResizeFunctions ResizeTable() {
  return {Lerp<uint8_t>, Lerp<float>, Sum<uint8_t>, Sum<float>, LerpRows, AddRow};
}

}  // namespace troupe::TROUPE_ISA

#include "kernels/simd/resize.h"

#include <string.h>
#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

#include <type_traits>

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

#if defined(__AVX512F__)
typedef float Sixteen __attribute__((vector_size(64)));

/// Four values of each of four pixels, every other index being of them.
inline Sixteen Gather(const uint8_t* in, const int32_t* indices, int64_t channels) {
  int32_t bytes[4];
  for (int k = 0; k < 4; ++k) memcpy(&bytes[k], in + indices[2 * k] * channels, 4);
  const __m128i pixels = _mm_set_epi32(bytes[3], bytes[2], bytes[1], bytes[0]);
  return (Sixteen)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(pixels));
}

/// Four pixels of bytes at once; the number of those that were.
int64_t LerpMany(const RowTaps& taps, const uint8_t* in, float* out) {
  const int64_t channels = taps.channels;
  const __m512i fractions = _mm512_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7);
  const __m512i three = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
  int64_t x = 0;
  for (; x + 4 <= taps.whole; x += 4) {
    const Sixteen left = Gather(in, taps.indices + 2 * x, channels);
    const Sixteen right = Gather(in, taps.indices + 2 * x + 1, channels);
    const __m512 weights = _mm512_castps256_ps512(_mm256_loadu_ps(taps.weights + 2 * x));
    const auto fraction = (Sixteen)_mm512_permutexvar_ps(fractions, weights);
    const __m512 value = (__m512)(left + (right - left) * fraction);
    if (channels == 4) {
      _mm512_storeu_ps(out + 4 * x, value);
    } else {
      _mm512_mask_storeu_ps(out + 3 * x, 0xfff, _mm512_permutexvar_ps(three, value));
    }
  }
  return x;
}
#elif defined(__AVX2__)
typedef float Eight __attribute__((vector_size(32)));

/// Four values of each of two pixels, every other index being of them.
inline Eight Gather(const uint8_t* in, const int32_t* indices, int64_t channels) {
  uint32_t bytes[2];
  for (int k = 0; k < 2; ++k) memcpy(&bytes[k], in + indices[2 * k] * channels, 4);
  const __m128i pixels =
      _mm_cvtsi64_si128(static_cast<int64_t>(uint64_t{bytes[1]} << 32 | bytes[0]));
  return (Eight)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(pixels));
}

/// Two pixels of bytes at once; the number of those that were.
int64_t LerpMany(const RowTaps& taps, const uint8_t* in, float* out) {
  const int64_t channels = taps.channels;
  int64_t x = 0;
  for (; x + 2 <= taps.whole; x += 2) {
    const Eight left = Gather(in, taps.indices + 2 * x, channels);
    const Eight right = Gather(in, taps.indices + 2 * x + 1, channels);
    const float one = taps.weights[2 * x + 1], two = taps.weights[2 * x + 3];
    const Eight value = left + (right - left) * Eight{one, one, one, one, two, two, two, two};
    // The second pixel overwrites what the first has too much of.
    _mm_storeu_ps(out + x * channels, _mm256_castps256_ps128((__m256)value));
    _mm_storeu_ps(out + (x + 1) * channels, _mm256_extractf128_ps((__m256)value, 1));
  }
  return x;
}
#else
int64_t LerpMany(const RowTaps&, const uint8_t*, float*) { return 0; }
#endif

template <typename T>
void Lerp(const RowTaps& taps, const T* in, float* out) {
  const int64_t channels = taps.channels;
  int64_t x = 0;
  if constexpr (std::is_same_v<T, uint8_t>) x = LerpMany(taps, in, out);
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

/// Half and bfloat16 in code that is compiled for several instruction sets: blocks are widened to
/// float on the stack, computed, and rounded back to nearest even.
#ifndef TROUPE_KERNELS_SIMD_HALF_BLOCKS_H_
#define TROUPE_KERNELS_SIMD_HALF_BLOCKS_H_

#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "kernels/simd/independent.h"
#include "kernels/simd/table.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

constexpr int64_t kHalfBlock = 512;

inline uint32_t FloatBits(float f) {
  uint32_t u;
  __builtin_memcpy(&u, &f, 4);
  return u;
}
inline float BitsFloat(uint32_t u) {
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}

struct F16 {
  static float ToFloat(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
    const uint32_t exponent = rest & 0x0f800000u;
    // Without branches, so that loops vectorise: infinities and NaN, subnormals, the rest.
    const uint32_t special = rest + 0x70000000u;
    const uint32_t small = FloatBits(BitsFloat(rest + 0x38800000u) - 6.103515625e-05f);
    const uint32_t normal = rest + 0x38000000u;
    uint32_t u = exponent == 0x0f800000u ? special : normal;
    u = exponent == 0 ? small : u;
    return BitsFloat(sign | u);
  }
  static uint16_t FromFloat(float value) {
    const uint32_t f = FloatBits(value);
    const uint32_t sign = (f >> 16) & 0x8000u;
    const uint32_t magnitude = f & 0x7fffffffu;
    const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t small = FloatBits(BitsFloat(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1)) >> 13;
    uint32_t u = magnitude < 0x38800000u ? small : normal;
    u = magnitude >= 0x47800000u ? special : u;
    return static_cast<uint16_t>(sign | u);
  }
  static void Load(const uint16_t* in, float* out, int64_t n) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
      _mm256_storeu_ps(out + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
    }
#endif
    TROUPE_INDEPENDENT
    for (; i < n; ++i) out[i] = ToFloat(in[i]);
  }
  static void Store(const float* in, uint16_t* out, int64_t n) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    TROUPE_INDEPENDENT
    for (; i < n; ++i) out[i] = FromFloat(in[i]);
  }
};

struct BF16 {
  static float ToFloat(uint16_t h) { return BitsFloat(static_cast<uint32_t>(h) << 16); }
  static uint16_t FromFloat(float value) {
    const uint32_t u = FloatBits(value);
    const uint32_t nan = ((u >> 31) << 15) | 0x7fc0u;
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
    return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
  static void Load(const uint16_t* in, float* out, int64_t n) {
    TROUPE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = ToFloat(in[i]);
  }
  static void Store(const float* in, uint16_t* out, int64_t n) {
    TROUPE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = FromFloat(in[i]);
  }
};

/// A float function for elements of type H; kTo8: its results are bool.
template <UnaryFn F, typename H, bool kToBool>
void HalfUnary(const void* in, void* out, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(in);
  float buffer[kHalfBlock];
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
    H::Load(x + i, buffer, m);
    if constexpr (kToBool) {
      F(buffer, static_cast<bool*>(out) + i, m);
    } else {
      F(buffer, buffer, m);
      H::Store(buffer, static_cast<uint16_t*>(out) + i, m);
    }
  }
}

template <BinaryFn F, typename H, bool kToBool, bool kScalarA, bool kScalarB>
uint32_t HalfBinary(const void* a, const void* b, void* out, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(a);
  const uint16_t* y = static_cast<const uint16_t*>(b);
  float u[kScalarA ? 1 : kHalfBlock], v[kScalarB ? 1 : kHalfBlock];
  if constexpr (kScalarA) u[0] = H::ToFloat(x[0]);
  if constexpr (kScalarB) v[0] = H::ToFloat(y[0]);
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = n - i < kHalfBlock ? n - i : kHalfBlock;
    if constexpr (!kScalarA) H::Load(x + i, u, m);
    if constexpr (!kScalarB) H::Load(y + i, v, m);
    if constexpr (kToBool) {
      F(u, v, static_cast<bool*>(out) + i, m);
    } else {
      float* w = kScalarA ? v : u;
      F(u, v, w, m);
      H::Store(w, static_cast<uint16_t*>(out) + i, m);
    }
  }
  return 0;
}

}  // namespace
}  // namespace troupe::simd::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_HALF_BLOCKS_H_

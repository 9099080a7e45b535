#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/simd/random.h"
#include "kernels/simd/vector_bytes.h"

namespace troupe::TROUPE_ISA {
namespace {

constexpr int kLanes = kVectorBytes / 4;

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef int32_t Ints __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
typedef uint64_t Longs __attribute__((vector_size(kVectorBytes)));

struct Block {
  Words w[4];  // lane i: word of block i
};

inline Words Splat(uint32_t x) { return x - Words{}; }
inline Floats Splat(float x) { return x - Floats{}; }

// Products of the lanes with a constant: upper and lower halves.
inline void Multiply(Words a, uint32_t constant, Words* high, Words* low) {
#if defined(__AVX512F__)
  const __m512i m = _mm512_set1_epi32(static_cast<int>(constant));
  const __m512i even = _mm512_mul_epu32((__m512i)a, m);
  const __m512i odd = _mm512_mul_epu32((__m512i)((Longs)a >> 32), m);
  *high = (Words)_mm512_mask_mov_epi32((__m512i)((Longs)even >> 32), 0xaaaa, odd);
  *low = (Words)_mm512_mask_mov_epi32(even, 0xaaaa, (__m512i)((Longs)odd << 32));
#elif defined(__AVX2__)
  const __m256i m = _mm256_set1_epi32(static_cast<int>(constant));
  const __m256i even = _mm256_mul_epu32((__m256i)a, m);
  const __m256i odd = _mm256_mul_epu32((__m256i)((Longs)a >> 32), m);
  *high = (Words)_mm256_blend_epi32((__m256i)((Longs)even >> 32), odd, 0xaa);
  *low = (Words)_mm256_blend_epi32(even, (__m256i)((Longs)odd << 32), 0xaa);
#elif defined(__SSE4_1__)
  const __m128i m = _mm_set1_epi32(static_cast<int>(constant));
  const __m128i even = _mm_mul_epu32((__m128i)a, m);
  const __m128i odd = _mm_mul_epu32((__m128i)((Longs)a >> 32), m);
  *high = (Words)_mm_blend_epi16((__m128i)((Longs)even >> 32), odd, 0xcc);
  *low = (Words)_mm_blend_epi16(even, (__m128i)((Longs)odd << 32), 0xcc);
#else
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t p = static_cast<uint64_t>(constant) * a[i];
    (*high)[i] = static_cast<uint32_t>(p >> 32);
    (*low)[i] = static_cast<uint32_t>(p);
  }
#endif
}

inline Floats SquareRoot(Floats x) {
#if defined(__AVX512F__)
  return (Floats)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX__)
  return (Floats)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE__)
  return (Floats)_mm_sqrt_ps((__m128)x);
#else
  for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

constexpr int kRounds = 10;

// What does not change from block to block.
struct Generator {
  explicit Generator(const PhiloxBlocks& blocks) : blocks(blocks) {
    uint32_t k0 = static_cast<uint32_t>(blocks.key), k1 = static_cast<uint32_t>(blocks.key >> 32);
    for (int round = 0; round < kRounds; ++round) {
      keys[round][0] = Splat(k0);
      keys[round][1] = Splat(k1);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (int i = 0; i < kLanes / 2; ++i) {
      even[i] = static_cast<uint64_t>(2 * i) * blocks.stride;
      odd[i] = static_cast<uint64_t>(2 * i + 1) * blocks.stride;
    }
  }

  // kLanes blocks from number `first` on.
  inline Block Counters(int64_t first) const {
    const uint64_t begin = blocks.low + static_cast<uint64_t>(first) * blocks.stride;
    const Longs even_low = even + begin, odd_low = odd + begin;
    const Longs even_high = blocks.high - (Longs)(even_low < blocks.low);
    const Longs odd_high = blocks.high - (Longs)(odd_low < blocks.low);
    const Longs lower = Longs{} + 0xffffffffu;
    Block b;
    b.w[0] = (Words)((even_low & lower) | (odd_low << 32));
    b.w[1] = (Words)((even_low >> 32) | (odd_low & ~lower));
    b.w[2] = (Words)((even_high & lower) | (odd_high << 32));
    b.w[3] = (Words)((even_high >> 32) | (odd_high & ~lower));
    return b;
  }

  // kCount times kLanes blocks, side by side: one alone would wait for its own products.
  template <int kCount>
  inline void Compute(int64_t first, Block* b) const {
#pragma GCC unroll 4
    for (int g = 0; g < kCount; ++g) b[g] = Counters(first + g * kLanes);
#pragma GCC unroll 1
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 4
      for (int g = 0; g < kCount; ++g) {
        Words* w = b[g].w;
        Words high0, low0, high1, low1;
        Multiply(w[0], 0xD2511F53, &high0, &low0);
        Multiply(w[2], 0xCD9E8D57, &high1, &low1);
        w[0] = high1 ^ w[1] ^ keys[round][0];
        w[1] = low1;
        w[2] = high0 ^ w[3] ^ keys[round][1];
        w[3] = low0;
      }
    }
  }

  const PhiloxBlocks blocks;
  Words keys[kRounds][2];
  Longs even, odd;  // counters of the even and of the odd lanes
};

// Calls use(block, number of the first, how many) for all blocks.
template <typename Use>
inline void ForEachBlock(const PhiloxBlocks& blocks, int64_t count, const Use& use) {
  constexpr int kAtOnce = 2;
  const Generator generator(blocks);
  int64_t i = 0;
  Block b[kAtOnce];
  for (; i + kAtOnce * kLanes <= count; i += kAtOnce * kLanes) {
    generator.Compute<kAtOnce>(i, b);
#pragma GCC unroll 4
    for (int g = 0; g < kAtOnce; ++g) use(b[g], i + g * kLanes, kLanes);
  }
  for (; i < count; i += kLanes) {
    generator.Compute<1>(i, b);
    use(b[0], i, static_cast<int>(count - i < kLanes ? count - i : kLanes));
  }
}

#if defined(__SSE2__)
// In each part of 16 bytes: a0 b0 a1 b1, a2 b2 a3 b3, and the same with pairs of words.
#if defined(__AVX512F__)
inline Words LowWords(Words a, Words b) {
  return (Words)_mm512_unpacklo_epi32((__m512i)a, (__m512i)b);
}
inline Words HighWords(Words a, Words b) {
  return (Words)_mm512_unpackhi_epi32((__m512i)a, (__m512i)b);
}
inline Words LowPairs(Words a, Words b) {
  return (Words)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b);
}
inline Words HighPairs(Words a, Words b) {
  return (Words)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b);
}
#elif defined(__AVX2__)
inline Words LowWords(Words a, Words b) {
  return (Words)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
}
inline Words HighWords(Words a, Words b) {
  return (Words)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b);
}
inline Words LowPairs(Words a, Words b) {
  return (Words)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b);
}
inline Words HighPairs(Words a, Words b) {
  return (Words)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b);
}
#else
inline Words LowWords(Words a, Words b) {
  return (Words)_mm_unpacklo_epi32((__m128i)a, (__m128i)b);
}
inline Words HighWords(Words a, Words b) {
  return (Words)_mm_unpackhi_epi32((__m128i)a, (__m128i)b);
}
inline Words LowPairs(Words a, Words b) {
  return (Words)_mm_unpacklo_epi64((__m128i)a, (__m128i)b);
}
inline Words HighPairs(Words a, Words b) {
  return (Words)_mm_unpackhi_epi64((__m128i)a, (__m128i)b);
}
#endif
#endif

// Lane i's four values become out[4i .. 4i + 3], for the first `count` lanes.
template <typename V, typename T>
inline void Interleave(const V* v, int count, T* out) {
  T mixed[4 * kLanes];
#if defined(__SSE2__)
  const Words low01 = LowWords((Words)v[0], (Words)v[1]);
  const Words low23 = LowWords((Words)v[2], (Words)v[3]);
  const Words high01 = HighWords((Words)v[0], (Words)v[1]);
  const Words high23 = HighWords((Words)v[2], (Words)v[3]);
  // quads[j]: the values of lanes j, 4 + j, 8 + j, ...
  const Words quads[4] = {LowPairs(low01, low23), HighPairs(low01, low23), LowPairs(high01, high23),
                          HighPairs(high01, high23)};
  T* to = count == kLanes ? out : mixed;
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    T quad[kLanes];
    memcpy(quad, &quads[j], sizeof(quad));
#pragma GCC unroll 4
    for (int part = 0; part < kLanes / 4; ++part) {
      memcpy(to + 4 * (4 * part + j), quad + 4 * part, 4 * sizeof(T));
    }
  }
  if (count == kLanes) return;
#else
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < 4; ++j) mixed[4 * i + j] = v[j][i];
  }
#endif
  memcpy(out, mixed, sizeof(T) * 4 * count);
}

inline Floats ToUniform(Words w) {
  return (Floats)((w & Splat(0x7fffffu)) | Splat(0x3f800000u)) - Splat(1.0f);
}

// Natural logarithm of positive normal numbers: polynomial of Cephes' logf.
inline Floats Log(Floats x) {
  Words bits = (Words)x;
  // Mantissa in [sqrt(1/2), sqrt(2)).
  bits += Splat(0x3f800000u - 0x3f3504f3u);
  const Floats e = __builtin_convertvector((Ints)(bits >> 23) - 127, Floats);
  bits = (bits & Splat(0x007fffffu)) + Splat(0x3f3504f3u);
  const Floats m = (Floats)bits - Splat(1.0f);
  const Floats z = m * m;
  Floats y = Splat(7.0376836292e-2f);
  y = y * m + Splat(-1.1514610310e-1f);
  y = y * m + Splat(1.1676998740e-1f);
  y = y * m + Splat(-1.2420140846e-1f);
  y = y * m + Splat(1.4249322787e-1f);
  y = y * m + Splat(-1.6668057665e-1f);
  y = y * m + Splat(2.0000714765e-1f);
  y = y * m + Splat(-2.4999993993e-1f);
  y = y * m + Splat(3.3333331174e-1f);
  y = y * m * z;
  y = y + e * Splat(-2.12194440e-4f);
  y = y - Splat(0.5f) * z;
  return m + y + e * Splat(0.693359375f);
}

// Sine and cosine for x in [0, 2 pi]: polynomials of Cephes' sinf and cosf.
inline void SineCosine(Floats x, Floats* sine, Floats* cosine) {
  const Ints quadrant = __builtin_convertvector(x * Splat(0.636619772f) + Splat(0.5f), Ints);
  const Floats q = __builtin_convertvector(quadrant, Floats);
  Floats r = x - q * Splat(1.5703125f);
  r = r - q * Splat(4.837512969970703125e-4f);
  r = r - q * Splat(7.54978995489188216e-8f);
  const Floats z = r * r;
  Floats s = Splat(-1.9515295891e-4f);
  s = s * z + Splat(8.3321608736e-3f);
  s = s * z + Splat(-1.6666654611e-1f);
  s = s * z * r + r;
  Floats c = Splat(2.443315711809948e-5f);
  c = c * z + Splat(-1.388731625493765e-3f);
  c = c * z + Splat(4.166664568298827e-2f);
  c = c * z * z - Splat(0.5f) * z + Splat(1.0f);
  const Words swap = (Words)((quadrant & 1) != 0);
  const Words sine_sign = (Words)(quadrant & 2) << 30;
  const Words cosine_sign = (Words)((quadrant + 1) & 2) << 30;
  *sine = (Floats)(((swap & (Words)c) | (~swap & (Words)s)) ^ sine_sign);
  *cosine = (Floats)(((swap & (Words)s) | (~swap & (Words)c)) ^ cosine_sign);
}

// The angle is the double-precision product rounded to float, as TensorFlow's is: where the sine is
// small, the last bit of the angle counts.
typedef double Doubles __attribute__((vector_size(2 * kVectorBytes)));
inline Floats Angle(Floats u) {
  const Doubles product = __builtin_convertvector(u, Doubles) * (2 * 3.14159265358979323846);
  return __builtin_convertvector(product, Floats);
}

inline void BoxMuller(Words a, Words b, Floats* first, Floats* second) {
  Floats u = ToUniform(a);
  const Floats least = Splat(1.0e-7f);
  const Words small = (Words)(u < least);
  u = (Floats)((small & (Words)least) | (~small & (Words)u));
  const Floats radius = SquareRoot(Splat(-2.0f) * Log(u));
  Floats sine, cosine;
  SineCosine(Angle(ToUniform(b)), &sine, &cosine);
  *first = sine * radius;
  *second = cosine * radius;
}

}  // namespace

void RandomWords(const PhiloxBlocks& blocks, int64_t count, uint32_t* out) {
  ForEachBlock(blocks, count, [out](const Block& b, int64_t i, int lanes) {
    Interleave(b.w, lanes, out + 4 * i);
  });
}

void RandomUniform(const PhiloxBlocks& blocks, int64_t count, float* out) {
  ForEachBlock(blocks, count, [out](const Block& b, int64_t i, int lanes) {
    Floats v[4];
    for (int j = 0; j < 4; ++j) v[j] = ToUniform(b.w[j]);
    Interleave(v, lanes, out + 4 * i);
  });
}

void RandomNormal(const PhiloxBlocks& blocks, int64_t count, float* out) {
  ForEachBlock(blocks, count, [out](const Block& b, int64_t i, int lanes) {
    Floats v[4];
    BoxMuller(b.w[0], b.w[1], &v[0], &v[1]);
    BoxMuller(b.w[2], b.w[3], &v[2], &v[3]);
    Interleave(v, lanes, out + 4 * i);
  });
}

}  // namespace troupe::TROUPE_ISA

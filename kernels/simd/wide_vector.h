/// Vectors of floats, as wide as registers are, that are read from and written to float, half and
/// bfloat16, in code that is compiled for several instruction sets.
#ifndef TROUPE_KERNELS_SIMD_WIDE_VECTOR_H_
#define TROUPE_KERNELS_SIMD_WIDE_VECTOR_H_

#include <cstdint>
#include <cstring>

#include "kernels/simd/half_blocks.h"
#include "kernels/simd/vector_bytes.h"

namespace troupe::simd::TROUPE_ISA {
namespace {

constexpr int kWideLanes = troupe::TROUPE_ISA::kVectorBytes / 4;
typedef float Wide __attribute__((vector_size(4 * kWideLanes)));
typedef uint32_t WideBits __attribute__((vector_size(4 * kWideLanes)));
typedef uint16_t NarrowBits __attribute__((vector_size(2 * kWideLanes)));

// Elements of type float, F16 or BF16: how one is stored, and how one or a
// vector of them is read and written.
struct F32 {
  static float ToFloat(float x) { return x; }
  static float FromFloat(float x) { return x; }
};
template <typename Element>
struct StoredType {
  typedef uint16_t Type;
};
template <>
struct StoredType<F32> {
  typedef float Type;
};
template <typename Element>
using Stored = typename StoredType<Element>::Type;

template <typename V>
inline V ReadAs(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

// `Element` only picks the overload.
inline Wide LoadWide(const float* p, F32) { return ReadAs<Wide>(p); }
inline Wide LoadWide(const uint16_t* p, BF16) {
#if defined(__AVX512F__)  // g++ 12 converts vectors of this size in halves.
  return (Wide)_mm512_slli_epi32(_mm512_cvtepu16_epi32(ReadAs<__m256i>(p)), 16);
#else
  return (Wide)(__builtin_convertvector(ReadAs<NarrowBits>(p), WideBits) << 16);
#endif
}
inline Wide LoadWide(const uint16_t* p, F16) {
#if defined(__AVX512F__)
  return (Wide)_mm512_cvtph_ps(ReadAs<__m256i>(p));
#elif defined(__F16C__)
  return (Wide)_mm256_cvtph_ps(ReadAs<__m128i>(p));
#else
  float lanes[kWideLanes];
  F16::Load(p, lanes, kWideLanes);
  return ReadAs<Wide>(lanes);
#endif
}
inline void StoreWide(Wide v, float* p, F32) { __builtin_memcpy(p, &v, sizeof(v)); }
inline void StoreWide(Wide v, uint16_t* p, BF16) {
  const WideBits u = (WideBits)v;
  const WideBits rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
  const WideBits nan = (u >> 31 << 15) | 0x7fc0u;
  const WideBits bits = (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
#if defined(__AVX512F__)
  const __m256i narrow = _mm512_cvtepi32_epi16((__m512i)bits);
#else
  const NarrowBits narrow = __builtin_convertvector(bits, NarrowBits);
#endif
  __builtin_memcpy(p, &narrow, sizeof(narrow));
}
inline void StoreWide(Wide v, uint16_t* p, F16) {
#if defined(__AVX512F__)
  const __m256i narrow = _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT);
  __builtin_memcpy(p, &narrow, sizeof(narrow));
#elif defined(__F16C__)
  const __m128i narrow = _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
  __builtin_memcpy(p, &narrow, sizeof(narrow));
#else
  float lanes[kWideLanes];
  __builtin_memcpy(lanes, &v, sizeof(v));
  F16::Store(lanes, p, kWideLanes);
#endif
}

// Rounds to numbers of 16 bits.
inline Wide RoundWide(Wide v, F16) {
#if defined(__AVX512F__)
  return (Wide)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  return (Wide)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  const WideBits u = (WideBits)v, magnitude = u & 0x7fffffffu;
  // The float adder rounds what is subnormal.
  const WideBits small = (WideBits)((Wide)magnitude + 0.5f - 0.5f);
  const WideBits normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1)) & ~0x1fffu;
  const WideBits infinite = WideBits() + 0x7f800000u;
  WideBits rounded = magnitude < 0x38800000u ? small : normal;
  rounded = rounded >= 0x47800000u ? infinite : rounded;
  rounded = magnitude > infinite ? infinite + 0x400000u : rounded;
  return (Wide)(rounded | (u & 0x80000000u));
#endif
}
inline Wide RoundWide(Wide v, BF16) {
  const WideBits u = (WideBits)v, rounded = (u + 0x7fffu + ((u >> 16) & 1)) & 0xffff0000u;
  return (Wide)((u & 0x7fffffffu) > 0x7f800000u ? (u & 0x80000000u) | 0x7fc00000u : rounded);
}

// The same for one element, so that a loop's tail is the same code: V is Wide or float, of F32 any
// vector of floats.
template <typename V, typename Element>
inline V LoadFloats(const Stored<Element>* p) {
  if constexpr (sizeof(Stored<Element>) == sizeof(float)) {
    return ReadAs<V>(p);
  } else if constexpr (sizeof(V) == sizeof(float)) {
    return Element::ToFloat(*p);
  } else {
    return LoadWide(p, Element());
  }
}
template <typename Element, typename V>
inline void StoreFloats(V v, Stored<Element>* p) {
  if constexpr (sizeof(Stored<Element>) == sizeof(float)) {
    __builtin_memcpy(p, &v, sizeof(v));
  } else if constexpr (sizeof(V) == sizeof(float)) {
    *p = Element::FromFloat(v);
  } else {
    StoreWide(v, p, Element());
  }
}

// a * b + c, rounded once where the instruction set can.
inline Wide MultiplyAdd(Wide a, Wide b, Wide c) {
#if defined(__AVX512F__)
  return (Wide)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Wide)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
inline float MultiplyAdd(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// Calls body.template operator()<V, N>(c) for blocks of columns that begin at c and are N vectors V
// wide: four vectors as long as they fit, then one, then single columns.
template <typename Body>
inline void ForColumnBlocks(int64_t columns, Body body) {
  int64_t c = 0;
  for (; c + 4 * kWideLanes <= columns; c += 4 * kWideLanes) body.template operator()<Wide, 4>(c);
  for (; c + kWideLanes <= columns; c += kWideLanes) body.template operator()<Wide, 1>(c);
  for (; c < columns; ++c) body.template operator()<float, 1>(c);
}
template <typename V>
constexpr int64_t kFloats = static_cast<int64_t>(sizeof(V) / sizeof(float));

}  // namespace
}  // namespace troupe::simd::TROUPE_ISA

#endif  // TROUPE_KERNELS_SIMD_WIDE_VECTOR_H_

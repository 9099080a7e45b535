#include "kernels/simd/conv.h"

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::TROUPE_ISA {
namespace {

// Output pixels (or rows of the filter) that are worked on at once, with panels of two vectors and
// of one: enough sums in flight to hide the latency of a multiplication and addition, few enough to
// stay in registers.
#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr int kWide = 8, kNarrow = 10;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
constexpr int kWide = 6, kNarrow = 10;
#else
constexpr int kBytes = 16;
constexpr int kWide = 6, kNarrow = 10;
#endif
constexpr int kLanes = kBytes / 4;

typedef float Floats __attribute__((vector_size(kBytes)));
typedef float Unaligned __attribute__((vector_size(kBytes), aligned(4), may_alias));

inline Floats Load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
inline void Store(float* p, Floats v) { *reinterpret_cast<Unaligned*>(p) = v; }
inline Floats Splat(float x) { return x - Floats{}; }

inline Floats MultiplyAdd(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

// Copies `count` < 32 elements.
inline void CopyFew(const float* from, float* to, int count) {
  if (count & 16) {
    memcpy(to, from, 64);
    to += 16;
    from += 16;
  }
  if (count & 8) {
    memcpy(to, from, 32);
    to += 8;
    from += 8;
  }
  if (count & 4) {
    memcpy(to, from, 16);
    to += 4;
    from += 4;
  }
  if (count & 2) {
    memcpy(to, from, 8);
    to += 2;
    from += 2;
  }
  if (count & 1) *to = *from;
}

// Not inlined, so that the sums have all registers for themselves.
template <int MR, int NV>
[[gnu::noinline]] void Pixels(const ConvImage& conv, const float* const* in, const float* filter,
                              float* const* out, int count) {
  Floats sum[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) sum[i][v] = Floats{};
  }
  const int64_t run = conv.run;
  const float* rows[MR];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) rows[i] = in[i];
  for (int64_t t = 0; t < conv.taps; ++t) {
    for (int64_t l = 0; l < run; ++l) {
      Floats f[NV];
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) f[v] = Load(filter + v * kLanes);
      filter += NV * kLanes;
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const Floats x = Splat(rows[i][l]);
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = MultiplyAdd(x, f[v], sum[i][v]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) rows[i] += conv.tap_step;
  }
  if (count == NV * kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) Store(out[i] + v * kLanes, sum[i][v]);
    }
    return;
  }
  // All sums at once: if one of them had an address of its own, none would stay in a register.
  float pixels[MR][NV * kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) Store(pixels[i] + v * kLanes, sum[i][v]);
  }
  for (int i = 0; i < MR; ++i) CopyFew(pixels[i], out[i], count);
}

// All pixels for one panel. The last group of MR may overlap the one before, with the same results.
template <int MR, int NV>
void Panel(const ConvImage& conv, const float* filter, int64_t first_channel, int count) {
  const int64_t pixels = conv.rows * conv.columns;
  const float* in[MR];
  float* out[MR];
  int64_t y = 0, x = 0;
  for (int64_t p = 0; p < pixels;) {
    const int n = pixels - p >= MR ? MR : 1;
    if (n == 1 && pixels >= MR) {
      p = pixels - MR;
      y = p / conv.columns;
      x = p % conv.columns;
    }
    const int group = pixels >= MR ? MR : 1;
    for (int i = 0; i < group; ++i) {
      in[i] = conv.in + y * conv.in_row_step + x * conv.in_column_step;
      out[i] = conv.out + y * conv.out_row_step + x * conv.out_column_step + first_channel;
      if (++x == conv.columns) {
        x = 0;
        ++y;
      }
    }
    if (group == MR) {
      Pixels<MR, NV>(conv, in, filter, out, count);
    } else {
      Pixels<1, NV>(conv, in, filter, out, count);
    }
    p += group;
  }
}

void Image(const ConvImage& conv) {
  const float* filter = conv.filter;
  for (int64_t c = 0; c < conv.depth;) {
    const int64_t width = ConvPanelWidth(conv.depth - c, kLanes);
    const int count = static_cast<int>(conv.depth - c < width ? conv.depth - c : width);
    if (width == kLanes) {
      Panel<kNarrow, 1>(conv, filter, c, count);
    } else {
      Panel<kWide, 2>(conv, filter, c, count);
    }
    filter += conv.taps * conv.run * width;
    c += width;
  }
}

template <int MR, int NV>
[[gnu::noinline]] void FilterRows(const ConvFilterImage& conv, const float* in,
                                  const float* gradient, float* out, int count) {
  Floats sum[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) sum[i][v] = Floats{};
  }
  const int64_t columns = conv.columns, step = conv.in_column_step;
  for (int64_t y = 0; y < conv.rows; ++y) {
    const float* x = in + y * conv.in_row_step;
    for (int64_t column = 0; column < columns; ++column) {
      Floats g[NV];
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) g[v] = Load(gradient + v * kLanes);
      gradient += NV * kLanes;
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const Floats a = Splat(x[i]);
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = MultiplyAdd(a, g[v], sum[i][v]);
      }
      x += step;
    }
  }
  float lanes[MR][NV * kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) Store(lanes[i] + v * kLanes, sum[i][v]);
  }
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < count; ++j) out[i * conv.depth + j] += lanes[i][j];
  }
}

template <int NV>
void FilterRowsOf(int rows, const ConvFilterImage& conv, const float* in, const float* gradient,
                  float* out, int count) {
  switch (rows) {
    case 1:
      return FilterRows<1, NV>(conv, in, gradient, out, count);
    case 2:
      return FilterRows<2, NV>(conv, in, gradient, out, count);
    case 3:
      return FilterRows<3, NV>(conv, in, gradient, out, count);
    case 4:
      return FilterRows<4, NV>(conv, in, gradient, out, count);
    case 5:
      return FilterRows<5, NV>(conv, in, gradient, out, count);
    case 6:
      return FilterRows<6, NV>(conv, in, gradient, out, count);
    default:
      break;
  }
  if constexpr (NV == 1 || kWide > 6) {
    switch (rows) {
      case 7:
        return FilterRows<7, NV>(conv, in, gradient, out, count);
      case 8:
        return FilterRows<8, NV>(conv, in, gradient, out, count);
      default:
        break;
    }
  }
  if constexpr (NV == 1) {
    if (rows == 9) return FilterRows<9, NV>(conv, in, gradient, out, count);
    return FilterRows<10, NV>(conv, in, gradient, out, count);
  }
}

void Filter(const ConvFilterImage& conv) {
  const float* gradient = conv.gradient;
  for (int64_t c = 0; c < conv.depth;) {
    const int64_t width = ConvPanelWidth(conv.depth - c, kLanes);
    const int count = static_cast<int>(conv.depth - c < width ? conv.depth - c : width);
    const int most = width == kLanes ? kNarrow : kWide;
    const int64_t strips = (conv.run + most - 1) / most;
    for (int64_t t = 0; t < conv.taps; ++t) {
      const float* in = conv.in + t * conv.tap_step;
      float* out = conv.filter + t * conv.run * conv.depth + c;
      for (int64_t s = 0; s < strips; ++s) {
        const int64_t first = conv.run * s / strips;
        const int rows = static_cast<int>(conv.run * (s + 1) / strips - first);
        if (width == kLanes) {
          FilterRowsOf<1>(rows, conv, in + first, gradient, out + first * conv.depth, count);
        } else {
          FilterRowsOf<2>(rows, conv, in + first, gradient, out + first * conv.depth, count);
        }
      }
    }
    gradient += conv.rows * conv.columns * width;
    c += width;
  }
}

}  // namespace

ConvFunctions ConvTable() { return {kLanes, Image, Filter}; }

}  // namespace troupe::TROUPE_ISA

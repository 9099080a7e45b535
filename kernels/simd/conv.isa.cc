#include "kernels/simd/conv.h"

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/simd/vector_bytes.h"

namespace troupe::TROUPE_ISA {
namespace {

// Output pixels (or rows of the filter) that are worked on at once, with panels of two vectors and
// of one: enough sums in flight to hide the latency of a multiplication and addition, few enough to
// stay in registers.
constexpr int kWide = kVectorBytes == 64 ? 8 : 6, kNarrow = 10;
constexpr int kLanes = kVectorBytes / 4;

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

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

// Copies `count` < kMost elements.
template <int kMost>
inline void CopyFew(const float* from, float* to, int count) {
  if (kMost > 16 && (count & 16)) {
    memcpy(to, from, 64);
    to += 16;
    from += 16;
  }
  if (kMost > 8 && (count & 8)) {
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
  for (int i = 0; i < MR; ++i) CopyFew<NV * kLanes>(pixels[i], out[i], count);
}

using PixelFunction = void (*)(const ConvImage&, const float* const*, const float*, float* const*,
                               int);

PixelFunction NarrowPixels(int pixels) {
  switch (pixels) {
    case 1:
      return Pixels<1, 1>;
    case 2:
      return Pixels<2, 1>;
    case 3:
      return Pixels<3, 1>;
    case 4:
      return Pixels<4, 1>;
    case 5:
      return Pixels<5, 1>;
    case 6:
      return Pixels<6, 1>;
    case 7:
      return Pixels<7, 1>;
    case 8:
      return Pixels<8, 1>;
    case 9:
      return Pixels<9, 1>;
    default:
      return Pixels<kNarrow, 1>;
  }
}

PixelFunction WidePixels(int pixels) {
  switch (pixels) {
    case 1:
      return Pixels<1, 2>;
    case 2:
      return Pixels<2, 2>;
    case 3:
      return Pixels<3, 2>;
    case 4:
      return Pixels<4, 2>;
    case 5:
      return Pixels<5, 2>;
    case 6:
      return Pixels<6, 2>;
    case 7:
      return Pixels < kWide < 7 ? 6 : 7, 2 > ;
    default:
      return Pixels<kWide, 2>;
  }
}

// All pixels for one panel, in groups that are as equal as they can be.
void Panel(const ConvImage& conv, const float* filter, int64_t first_channel, int count,
           bool narrow) {
  const int64_t pixels = conv.rows * conv.columns;
  const int64_t most = narrow ? kNarrow : kWide;
  const int64_t groups = (pixels + most - 1) / most;
  const int64_t base = pixels / groups, longer = pixels % groups;
  const float* in[kNarrow];
  float* out[kNarrow];
  int64_t y = 0, x = 0;
  for (int part = 0; part < 2; ++part) {
    const int group = static_cast<int>(base) + (part == 0);
    const int64_t number = part == 0 ? longer : groups - longer;
    if (number == 0) continue;
    const PixelFunction function = narrow ? NarrowPixels(group) : WidePixels(group);
    for (int64_t g = 0; g < number; ++g) {
      for (int i = 0; i < group; ++i) {
        in[i] = conv.in + y * conv.in_row_step + x * conv.in_column_step;
        out[i] = conv.out + y * conv.out_row_step + x * conv.out_column_step + first_channel;
        if (++x == conv.columns) {
          x = 0;
          ++y;
        }
      }
      function(conv, in, filter, out, count);
    }
  }
}

void Image(const ConvImage& conv) {
  const float* filter = conv.filter;
  for (int64_t c = 0; c < conv.depth;) {
    const int64_t width = ConvPanelWidth(conv.depth - c, kLanes);
    const int count = static_cast<int>(conv.depth - c < width ? conv.depth - c : width);
    Panel(conv, filter, c, count, width == kLanes);
    filter += conv.taps * conv.run * width;
    c += width;
  }
}

// `MR` rows of the filter in each of `TAPS` taps, which are conv.tap_step apart in the image.
template <int TAPS, int MR, int NV>
[[gnu::noinline]] void FilterRows(const ConvFilterImage& conv, const float* in,
                                  const float* gradient, float* out, int count) {
  constexpr int kRows = TAPS * MR;
  Floats sum[kRows][NV];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) sum[i][v] = Floats{};
  }
  const int64_t columns = conv.columns, step = conv.in_column_step;
  for (int64_t y = 0; y < conv.rows; ++y) {
    const float* x = in + y * conv.in_row_step;
    const float* x2 = x + (TAPS - 1) * conv.tap_step;
    for (int64_t column = 0; column < columns; ++column) {
      Floats g[NV];
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v) g[v] = Load(gradient + v * kLanes);
      gradient += NV * kLanes;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Floats a = Splat(i < MR ? x[i] : x2[i - MR]);
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = MultiplyAdd(a, g[v], sum[i][v]);
      }
      x += step;
      x2 += step;
    }
  }
  float lanes[kRows][NV * kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) Store(lanes[i] + v * kLanes, sum[i][v]);
  }
  for (int i = 0; i < kRows; ++i) {
    float* row = out + ((i / MR) * conv.run + i % MR) * conv.depth;
    for (int j = 0; j < count; ++j) row[j] += lanes[i][j];
  }
}

using FilterFunction = void (*)(const ConvFilterImage&, const float*, const float*, float*, int);

// With few rows to a tap, two taps at once keep enough sums in flight.
template <int TAPS>
FilterFunction NarrowFilterRows(int rows) {
  switch (rows) {
    case 1:
      return FilterRows<TAPS, 1, 1>;
    case 2:
      return FilterRows<TAPS, 2, 1>;
    case 3:
      return FilterRows<TAPS, 3, 1>;
    case 4:
      return FilterRows<TAPS, 4, 1>;
    case 5:
      return FilterRows<TAPS, 5, 1>;
    case 6:
      return FilterRows<TAPS, 6, 1>;
    default:
      break;
  }
  switch (rows) {
    case 7:
      return FilterRows<1, 7, 1>;
    case 8:
      return FilterRows<1, 8, 1>;
    case 9:
      return FilterRows<1, 9, 1>;
    default:
      return FilterRows<1, 10, 1>;
  }
}

FilterFunction WideFilterRows(int rows) {
  switch (rows) {
    case 1:
      return FilterRows<1, 1, 2>;
    case 2:
      return FilterRows<1, 2, 2>;
    case 3:
      return FilterRows<1, 3, 2>;
    case 4:
      return FilterRows<1, 4, 2>;
    case 5:
      return FilterRows<1, 5, 2>;
    case 6:
      return FilterRows<1, 6, 2>;
    default:
      break;
  }
  return rows == 7 ? FilterRows < 1, kWide < 7 ? 6 : 7, 2 > : FilterRows<1, kWide, 2>;
}

void Filter(const ConvFilterImage& conv) {
  const float* gradient = conv.gradient;
  for (int64_t c = 0; c < conv.depth;) {
    const int64_t width = ConvPanelWidth(conv.depth - c, kLanes);
    const int count = static_cast<int>(conv.depth - c < width ? conv.depth - c : width);
    const bool narrow = width == kLanes;
    const int most = narrow ? kNarrow : kWide;
    const int64_t strips = (conv.run + most - 1) / most;
    for (int64_t t = 0; t < conv.taps;) {
      const int64_t taps = narrow && conv.run <= 6 && t + 1 < conv.taps ? 2 : 1;
      for (int64_t s = 0; s < strips; ++s) {
        const int64_t first = conv.run * s / strips;
        const int rows = static_cast<int>(conv.run * (s + 1) / strips - first);
        const FilterFunction function = !narrow     ? WideFilterRows(rows)
                                        : taps == 2 ? NarrowFilterRows<2>(rows)
                                                    : NarrowFilterRows<1>(rows);
        function(conv, conv.in + t * conv.tap_step + first, gradient,
                 conv.filter + (t * conv.run + first) * conv.depth + c, count);
      }
      t += taps;
    }
    gradient += conv.rows * conv.columns * width;
    c += width;
  }
}

// Lanes past `count` get whatever follows in memory, zeros at the end: nobody looks at their
// results.
template <int NV>
void PackPanel(const float* from, const float* end, int64_t rows, int64_t row_step, int count,
               float* to) {
  constexpr int kWidth = NV * kLanes;
  for (int64_t r = 0; r < rows; ++r, from += row_step, to += kWidth) {
    if (end - from >= kWidth) {
      for (int v = 0; v < NV; ++v) Store(to + v * kLanes, Load(from + v * kLanes));
    } else {
      for (int j = 0; j < kWidth; ++j) to[j] = j < count ? from[j] : 0.0f;
    }
  }
}

void Pack(const float* from, int64_t rows, int64_t depth, float* to) {
  const float* end = from + rows * depth;
  for (int64_t c = 0; c < depth;) {
    const int64_t width = ConvPanelWidth(depth - c, kLanes);
    const int count = static_cast<int>(depth - c < width ? depth - c : width);
    if (width == kLanes) {
      PackPanel<1>(from + c, end, rows, depth, count, to);
    } else {
      PackPanel<2>(from + c, end, rows, depth, count, to);
    }
    to += rows * width;
    c += width;
  }
}

}  // namespace

ConvFunctions ConvTable() { return {kLanes, Pack, Image, Filter}; }

}  // namespace troupe::TROUPE_ISA

#include "kernels/simd/depthwise.h"

#include "kernels/simd/wide_vector.h"

namespace troupe::TROUPE_ISA {
namespace {

using namespace simd::TROUPE_ISA;

// What is computed at once: as many sums as hide the latency of a multiplication and addition, and
// stay in registers with two rows of the window.
#if defined(__AVX512F__)
constexpr int kMostPixels = 8;
constexpr int kMostPairedTaps = 7;  // of two rows of the result
#else
constexpr int kMostPixels = 4;
constexpr int kMostPairedTaps = 3;
#endif

// Sums of kLines rows of kPixels pixels, kCount vectors of channels each.
template <typename V, int kLines, int kPixels, int kCount>
struct Sums {
  V of[kLines][kPixels][kCount];
};

template <typename V, int kTaps, int kCount>
struct FilterRow {
  V of[kTaps][kCount];

  inline void Load(const float* filter, int64_t step) {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) {
        of[t][v] = LoadFloats<V, F32>(filter + t * step + v * kFloats<V>);
      }
    }
  }
};

// Adds a row of the input, kStride elements of which lie between pixels, to rows [kFirst, kEnd) of
// the result: times `first` to row 0, times `second` to row 1. An element is read once for all.
template <int kFirst, int kEnd, int kStride, typename V, int kLines, int kPixels, int kCount,
          int kTaps>
inline void AddRow(const float* in, int64_t step, const FilterRow<V, kTaps, kCount>& first,
                   const FilterRow<V, kTaps, kCount>& second,
                   Sums<V, kLines, kPixels, kCount>* sums) {
#pragma GCC unroll 32
  for (int x = 0; x < (kPixels - 1) * kStride + kTaps; ++x, in += step) {
    asm("" : "+r"(in));  // one address a step, not one register for each element's distance
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const V value = LoadFloats<V, F32>(in + v * kFloats<V>);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        const int i = (x - t) / kStride;
        if (x < t || (x - t) % kStride != 0 || i >= kPixels) continue;
#pragma GCC unroll 2
        for (int l = kFirst; l < kEnd; ++l) {
          V* sum = &sums->of[l][i][v];
          *sum = MultiplyAdd(value, (l == 0 ? first : second).of[t][v], *sum);
        }
      }
    }
  }
}

// A row of any number of elements at any distance.
template <typename V, int kPixels, int kCount>
inline void AddAnyRow(const DepthwiseRun& d, const float* in, const float* filter,
                      Sums<V, 1, kPixels, kCount>* sums) {
  for (int64_t t = 0; t < d.taps; ++t, in += d.in_tap_step, filter += d.filter_tap_step) {
    FilterRow<V, 1, kCount> factors;
    factors.Load(filter, 0);
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) {
        const V value = LoadFloats<V, F32>(in + i * d.in_step + v * kFloats<V>);
        sums->of[0][i][v] = MultiplyAdd(value, factors.of[0][v], sums->of[0][i][v]);
      }
    }
  }
}

// kTaps: of a row of the window, 0 for any.
template <typename V, int kLines, int kPixels, int kCount, int kTaps, int kStride>
inline void Block(const DepthwiseRun& d, int64_t pixel, int64_t channel) {
  const float* in = d.in + pixel * d.in_step + channel;
  const float* filter = d.filter + channel;
  Sums<V, kLines, kPixels, kCount> sums;
#pragma GCC unroll 2
  for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) sums.of[l][i][v] = V{};
    }
  }
  if (d.is_far) {
    // What the next rows of the result read and these do not.
    const float* ahead = in + (d.rows - 1) * d.in_row_step + kLines * d.in_line_step;
#pragma GCC unroll 2
    for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kCount; ++v) {
          __builtin_prefetch(ahead + l * d.in_line_step + i * d.in_step + v * kFloats<V>, 0, 2);
        }
      }
    }
  }
  if constexpr (kTaps == 0) {
    for (int64_t r = 0; r < d.rows; ++r) {
      AddAnyRow(d, in + r * d.in_row_step, filter + r * d.filter_row_step, &sums);
    }
  } else if constexpr (kLines == 1) {
    for (int64_t r = 0; r < d.rows; ++r, in += d.in_row_step, filter += d.filter_row_step) {
      FilterRow<V, kTaps, kCount> row;
      row.Load(filter, d.filter_tap_step);
      AddRow<0, 1, kStride>(in, d.in_tap_step, row, row, &sums);
    }
  } else {
    // Row r of the input is row r of the first window and row r - 1 of the second.
    FilterRow<V, kTaps, kCount> row, before;
    row.Load(filter, d.filter_tap_step);
    AddRow<0, 1, kStride>(in, d.in_tap_step, row, row, &sums);
    for (int64_t r = 1; r < d.rows; ++r) {
      in += d.in_row_step;
      filter += d.filter_row_step;
      before = row;
      row.Load(filter, d.filter_tap_step);
      AddRow<0, 2, kStride>(in, d.in_tap_step, row, before, &sums);
    }
    AddRow<1, 2, kStride>(in + d.in_row_step, d.in_tap_step, row, row, &sums);
  }
  float* out = d.out + pixel * d.out_step + channel;
#pragma GCC unroll 2
  for (int l = 0; l < kLines; ++l) {
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) {
        StoreFloats<F32>(sums.of[l][i][v],
                         out + l * d.out_line_step + i * d.out_step + v * kFloats<V>);
      }
    }
  }
}

// All channels, at least a vector of them; the last one computes some again. Pixels are outside:
// what lies side by side in memory is read one after the other.
template <int kLines, int kPixels, int kTaps, int kStride>
inline int64_t Blocks(const DepthwiseRun& d, int64_t pixel) {
  constexpr int kVectors = kLines == 1 ? 2 : 1;
  for (; pixel + kPixels <= d.pixels; pixel += kPixels) {
    int64_t c = 0;
    for (; c + kVectors * kWideLanes <= d.channels; c += kVectors * kWideLanes) {
      Block<Wide, kLines, kPixels, kVectors, kTaps, kStride>(d, pixel, c);
    }
    for (; c + kWideLanes <= d.channels; c += kWideLanes) {
      Block<Wide, kLines, kPixels, 1, kTaps, kStride>(d, pixel, c);
    }
    if (c < d.channels) {
      Block<Wide, kLines, kPixels, 1, kTaps, kStride>(d, pixel, d.channels - kWideLanes);
    }
  }
  return pixel;
}

template <int kLines, int kTaps, int kStride>
void RunLines(const DepthwiseRun& d) {
  int64_t pixel = Blocks<kLines, kMostPixels, kTaps, kStride>(d, 0);
  if (kMostPixels > 4) pixel = Blocks<kLines, 4, kTaps, kStride>(d, pixel);
  pixel = Blocks<kLines, 2, kTaps, kStride>(d, pixel);
  Blocks<kLines, 1, kTaps, kStride>(d, pixel);
}

template <int kTaps, int kStride>
void RunVectors(const DepthwiseRun& d) {
  if (d.lines == 1) return RunLines<1, kTaps, kStride>(d);
  if constexpr (kStride == 1 && kTaps > 1 && kTaps <= kMostPairedTaps) {
    if (d.in_line_step == d.in_row_step && d.rows > 0) return RunLines<2, kTaps, kStride>(d);
  }
  DepthwiseRun line = d;
  RunLines<1, kTaps, kStride>(line);
  line.in += d.in_line_step;
  line.out += d.out_line_step;
  RunLines<1, kTaps, kStride>(line);
}

void RunScalars(const DepthwiseRun& run) {
  DepthwiseRun d = run;
  for (int64_t l = 0; l < run.lines; ++l) {
    for (int64_t i = 0; i < d.pixels; ++i) {
      for (int64_t c = 0; c < d.channels; ++c) Block<float, 1, 1, 1, 0, 1>(d, i, c);
    }
    d.in += d.in_line_step;
    d.out += d.out_line_step;
  }
}

// Makes a negative step between `count` elements of a window positive.
void TurnAround(int64_t count, int64_t* in_step, int64_t* filter_step, DepthwiseRun* d) {
  if (*in_step >= 0 || count == 0) return;
  d->in += (count - 1) * *in_step;
  d->filter += (count - 1) * *filter_step;
  *in_step = -*in_step;
  *filter_step = -*filter_step;
}

void Run(const DepthwiseRun& run) {
  DepthwiseRun d = run;
  TurnAround(d.rows, &d.in_row_step, &d.filter_row_step, &d);
  TurnAround(d.taps, &d.in_tap_step, &d.filter_tap_step, &d);
  if (d.channels < kWideLanes) return RunScalars(d);
  if (d.in_step == d.in_tap_step) {
    if (d.taps == 1) return RunVectors<1, 1>(d);
    if (d.taps == 2) return RunVectors<2, 1>(d);
    if (d.taps == 3) return RunVectors<3, 1>(d);
    if (d.taps == 5) return RunVectors<5, 1>(d);
    if (d.taps == 7) return RunVectors<7, 1>(d);
  } else if (d.in_step == 2 * d.in_tap_step) {
    if (d.taps == 2) return RunVectors<2, 2>(d);
    if (d.taps == 3) return RunVectors<3, 2>(d);
    if (d.taps == 5) return RunVectors<5, 2>(d);
  }
  RunVectors<0, 1>(d);
}

}  // namespace

DepthwiseFunctions DepthwiseTable() { return {kWideLanes, Run}; }

}  // namespace troupe::TROUPE_ISA

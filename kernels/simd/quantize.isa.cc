#include "kernels/simd/quantize.h"

#include "kernels/simd/independent.h"

namespace troupe::TROUPE_ISA {
namespace {

template <typename T>
inline T Clip(T x, T min, T max) {
  const T below = max < x ? max : x;
  return below < min ? min : below;
}

inline float Floor(float x) { return __builtin_floorf(x); }
inline double Floor(double x) { return __builtin_floor(x); }
inline float ToEven(float x) { return __builtin_rintf(x); }
inline double ToEven(double x) { return __builtin_rint(x); }
// The largest number below a half, added to the magnitude and rounded to a float, reaches the next
// integer from halves on.
inline float AwayFromZero(float x) {
  return __builtin_truncf(x + __builtin_copysignf(0x1.fffffep-2f, x));
}
inline double AwayFromZero(double x) {
  return __builtin_trunc(x + __builtin_copysign(0x1.fffffffffffffp-2, x));
}

template <Rounding kRounding, typename T>
inline T Round(T x) {
  return kRounding == Rounding::kHalfUp       ? Floor(x + T(0.5))
         : kRounding == Rounding::kHalfToEven ? ToEven(x)
                                              : AwayFromZero(x);
}

template <Rounding kRounding, typename T>
inline T Steps(T x, const ToGrid<T>& how) {
  return Round<kRounding>((Clip(x, how.min, how.max) - how.shift) * how.scale - how.zero);
}

// f.operator()<Rounding>() for that of `how`.
template <typename T, typename F>
void WithRounding(const ToGrid<T>& how, F f) {
  switch (how.rounding) {
    case Rounding::kHalfUp:
      return f.template operator()<Rounding::kHalfUp>();
    case Rounding::kHalfToEven:
      return f.template operator()<Rounding::kHalfToEven>();
    case Rounding::kHalfAwayFromZero:
      return f.template operator()<Rounding::kHalfAwayFromZero>();
  }
}

template <typename T>
void Snap(const T* x, int64_t n, const ToGrid<T>& given, T step, T* y) {
  WithRounding(given, [&, how = given]<Rounding kRounding>() {
    TROUPE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) y[i] = Steps<kRounding>(x[i], how) * step;
  });
}

// The nearest integer to a whole number; 0 for NaN.
template <typename Int>
inline Int Saturated(float x) {
  constexpr float kLowest = static_cast<float>(std::numeric_limits<Int>::lowest());
  if constexpr (sizeof(Int) < 4) {
    constexpr float kHighest = static_cast<float>(std::numeric_limits<Int>::max());
    const float clipped = Clip(x, kLowest, kHighest);
    return static_cast<Int>(static_cast<int32_t>(clipped == clipped ? clipped : 0.0f));
  } else {
    const bool above = x >= -kLowest, below = x < kLowest;
    const auto fitting = static_cast<int32_t>((above | below | (x != x)) ? 0.0f : x);
    const int32_t not_above = below ? std::numeric_limits<Int>::lowest() : fitting;
    return above ? std::numeric_limits<Int>::max() : not_above;
  }
}

template <typename Int>
void Quantize(const float* x, int64_t n, const ToInteger& given, Int* q) {
  WithRounding(given, [&, how = given]<Rounding kRounding>() {
    TROUPE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const float integer = Steps<kRounding, float>(x[i], how) - how.offset;
      q[i] = Saturated<Int>(how.most < integer ? how.most : integer);
    }
  });
}

template <typename Int>
void Dequantize(const Int* q, int64_t n, const FromInteger& given, float* x) {
  const FromInteger how = given;
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    x[i] = (static_cast<float>(q[i]) + how.shift) * how.scale + how.offset;
  }
}

// Calls f(row, columns) for the rows of n elements of a matrix; the last one may be shorter.
template <typename F>
inline void ForRows(int64_t n, int64_t columns, F f) {
  for (int64_t row = 0; row < n; row += columns) f(row, n - row < columns ? n - row : columns);
}

void SnapColumns(const float* x, int64_t n, const GridColumns& given, float* y) {
  const GridColumns grids = given;
  ForRows(n, grids.count, [&](int64_t row, int64_t columns) {
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < columns; ++c) {
      const float shifted = Clip(x[row + c], grids.min[c], grids.max[c]) - grids.min[c];
      const float steps = shifted / grids.step[c] - grids.zero[c];
      const float value = Round<Rounding::kHalfUp>(steps) * grids.step[c];
      y[row + c] = grids.none[c] != 0 ? 0.0f : value;
    }
  });
}

template <typename T>
void Pass(const T* dy, const T* x, int64_t n, T min, T max, T* dx) {
  TROUPE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    dx[i] = dy[i] * (((x[i] >= min) & (x[i] <= max)) ? T(1) : T(0));
  }
}

void PassColumns(const float* dy, const float* x, int64_t n, const GridColumns& given, float* dx,
                 double* below, double* above) {
  const GridColumns grids = given;
  ForRows(n, grids.count, [&](int64_t row, int64_t columns) {
    TROUPE_INDEPENDENT
    for (int64_t c = 0; c < columns; ++c) {
      const float value = x[row + c], gradient = dy[row + c];
      const bool none = grids.none[c] != 0, some = grids.none[c] == 0;
      const bool is_below = some & (value < grids.min[c]);
      const bool is_above = some & (value > grids.max[c]);
      const bool within = none | ((value >= grids.min[c]) & (value <= grids.max[c]));
      below[c] += static_cast<double>(is_below ? gradient : 0.0f);
      above[c] += static_cast<double>(is_above ? gradient : 0.0f);
      dx[row + c] = gradient * (within ? 1.0f : 0.0f);
    }
  });
}

template <typename T>
void Extremes(const T* x, int64_t n, T* least, T* most) {
  typedef T Lanes __attribute__((vector_size(64)));
  constexpr int64_t kLanes = 64 / sizeof(T);
  Lanes low = Lanes{} + *least, high = Lanes{} + *most;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes v;
    __builtin_memcpy(&v, x + i, sizeof(v));
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  const auto take = [&](T value_low, T value_high) {
    *least = value_low < *least ? value_low : *least;
    *most = value_high > *most ? value_high : *most;
  };
  for (int64_t k = 0; k < kLanes; ++k) take(low[k], high[k]);
  for (; i < n; ++i) take(x[i], x[i]);
}

}  // namespace

QuantizeFunctions QuantizeTable() {
  return {{Quantize<int8_t>, Dequantize<int8_t>},
          {Quantize<uint8_t>, Dequantize<uint8_t>},
          {Quantize<int16_t>, Dequantize<int16_t>},
          {Quantize<uint16_t>, Dequantize<uint16_t>},
          {Quantize<int32_t>, Dequantize<int32_t>},
          {Snap<float>, Pass<float>, Extremes<float>},
          {Snap<double>, Pass<double>, Extremes<double>},
          SnapColumns,
          PassColumns,
          Extremes<int32_t>};
}

}  // namespace troupe::TROUPE_ISA

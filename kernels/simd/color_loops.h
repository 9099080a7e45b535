/// Conversions of colors, free of branches so that the compiler makes vector code of them. In an
/// unnamed namespace, because files for different instruction sets include it.
#ifndef TROUPE_KERNELS_SIMD_COLOR_LOOPS_H_
#define TROUPE_KERNELS_SIMD_COLOR_LOOPS_H_

#include <stdint.h>

namespace troupe {
namespace {

template <typename T>
struct Color {
  T x, y, z;  // red, green, blue; or hue, saturation, value
};

template <typename T>
inline T Smaller(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
inline T Larger(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
inline T Magnitude(T a) {
  return a < 0 ? -a : a;
}
template <typename T>
inline T ToUnit(T a) {
  return Smaller(Larger(a, T(0)), T(1));
}

/// Hue in [0, 1), 0 for gray; saturation, 0 for black.
template <typename T>
inline Color<T> ToHsv(Color<T> rgb) {
  const T r = rgb.x, g = rgb.y, b = rgb.z;
  const T value = Larger(r, Larger(g, b));
  const T range = value - Smaller(r, Smaller(g, b));
  const T saturation = value > 0 ? range / value : T(0);
  const T norm = T(1) / range * (T(1) / T(6));
  T hue = norm * (r - g) + T(4) / T(6);
  hue = g == value ? norm * (b - r) + T(2) / T(6) : hue;
  hue = r == value ? norm * (g - b) : hue;
  hue = range > 0 ? hue : T(0);
  hue = hue < 0 ? hue + T(1) : hue;
  return {hue, saturation, value};
}

/// How much of red, green and blue a hue has that goes from 0 to 6.
template <typename T>
inline Color<T> OfHue(T hue) {
  return {ToUnit(Magnitude(hue - T(3)) - T(1)), ToUnit(T(2) - Magnitude(hue - T(2))),
          ToUnit(T(2) - Magnitude(hue - T(4)))};
}

template <typename T>
inline Color<T> ToRgb(Color<T> hsv) {
  const Color<T> pure = OfHue(hsv.x * T(6));
  const T white = T(1) - hsv.y;
  return {(white + hsv.y * pure.x) * hsv.z, (white + hsv.y * pure.y) * hsv.z,
          (white + hsv.y * pure.z) * hsv.z};
}

/// Calls `convert` for `n` pixels of three channels.
template <typename T, typename Convert>
inline void ForColors(const T* in, int64_t n, T* out, const Convert& convert) {
  // By blocks, each channel by itself: the loops over them have no strides.
  constexpr int64_t kBlock = 256;
  T x[kBlock], y[kBlock], z[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    const T* from = in + 3 * i;
    for (int64_t j = 0; j < count; ++j) {
      x[j] = from[3 * j];
      y[j] = from[3 * j + 1];
      z[j] = from[3 * j + 2];
    }
    for (int64_t j = 0; j < count; ++j) {
      const Color<T> color = convert(Color<T>{x[j], y[j], z[j]});
      x[j] = color.x;
      y[j] = color.y;
      z[j] = color.z;
    }
    T* to = out + 3 * i;
    for (int64_t j = 0; j < count; ++j) {
      to[3 * j] = x[j];
      to[3 * j + 1] = y[j];
      to[3 * j + 2] = z[j];
    }
  }
}

}  // namespace
}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_COLOR_LOOPS_H_

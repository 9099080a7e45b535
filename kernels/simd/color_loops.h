/// Conversions of colors, free of branches so that the compiler makes vector code of them. In an
/// unnamed namespace, because files for different instruction sets include it. Plain types only,
/// for all compilers.
#ifndef TROUPE_KERNELS_SIMD_COLOR_LOOPS_H_
#define TROUPE_KERNELS_SIMD_COLOR_LOOPS_H_

#include <stdint.h>

#include "kernels/common/device_function.h"

namespace troupe {
namespace {

template <typename T>
struct Color {
  T x, y, z;  // red, green, blue; or hue, saturation, value
};

template <typename T>
TROUPE_DEVICE_FUNCTION inline T Smaller(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
TROUPE_DEVICE_FUNCTION inline T Larger(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
TROUPE_DEVICE_FUNCTION inline T Magnitude(T a) {
  return a < 0 ? -a : a;
}
template <typename T>
TROUPE_DEVICE_FUNCTION inline T ToUnit(T a) {
  return Smaller(Larger(a, T(0)), T(1));
}

/// Hue in [0, 1), 0 for gray; saturation, 0 for black.
template <typename T>
TROUPE_DEVICE_FUNCTION inline Color<T> ToHsv(Color<T> rgb) {
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
TROUPE_DEVICE_FUNCTION inline Color<T> OfHue(T hue) {
  return {ToUnit(Magnitude(hue - T(3)) - T(1)), ToUnit(T(2) - Magnitude(hue - T(2))),
          ToUnit(T(2) - Magnitude(hue - T(4)))};
}

template <typename T>
TROUPE_DEVICE_FUNCTION inline Color<T> ToRgb(Color<T> hsv) {
  const Color<T> pure = OfHue(hsv.x * T(6));
  const T white = T(1) - hsv.y;
  return {(white + hsv.y * pure.x) * hsv.z, (white + hsv.y * pure.y) * hsv.z,
          (white + hsv.y * pure.z) * hsv.z};
}

/// The color with hue `hue`, in [0, 6), between the least and the greatest of its channels.
template <typename T>
TROUPE_DEVICE_FUNCTION inline Color<T> Between(T hue, T low, T high) {
  const Color<T> pure = OfHue(hue);
  const T range = high - low;
  return {low + range * pure.x, low + range * pure.y, low + range * pure.z};
}

/// With the hue turned by `by` full turns.
TROUPE_DEVICE_FUNCTION inline Color<float> TurnedHue(Color<float> c, float by) {
  const float high = Larger(c.x, Larger(c.y, c.z)), low = Smaller(c.x, Smaller(c.y, c.z));
  float hue = ToHsv(c).x * 6 + by * 6;
#ifdef __CUDACC__
  hue -= 6 * floorf(hue / 6);
#else
  hue -= 6 * __builtin_floorf(hue / 6);
#endif
  return Between(hue, low, high);
}

/// With the saturation times `by`.
TROUPE_DEVICE_FUNCTION inline Color<float> ScaledSaturation(Color<float> c, float by) {
  const Color<float> hsv = ToHsv(c);
  const float range = ToUnit(hsv.y * by) * hsv.z;
  return Between(hsv.x * 6, hsv.z - range, hsv.z);
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

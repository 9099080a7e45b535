/// Where pixels of a transformed image come from, for processors and cards. Plain types only, for
/// all compilers.
#ifndef TROUPE_KERNELS_IMAGE_PROJECTIVE_FORMULAS_H_
#define TROUPE_KERNELS_IMAGE_PROJECTIVE_FORMULAS_H_

#include <math.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/device_function.h"

namespace troupe {

/// What lies outside of an image.
enum class Outside : uint8_t { kConstant, kReflect, kWrap, kNearest };

/// The coordinate in an image of `size` pixels that stands for one that may be outside of it.
TROUPE_DEVICE_FUNCTION inline float InsideOf(int64_t size, Outside outside, float at) {
  const auto pixels = static_cast<float>(size);
  const float last = pixels - 1;
  switch (outside) {
    case Outside::kConstant:
      return at;
    case Outside::kNearest:
      break;
    case Outside::kReflect: {  // [abcd]: dcba abcd dcba
      const float period = 2 * pixels;
      if (size <= 1) return 0;
      if (at < 0) {
        at += period * truncf(-at / period);
        at = at < -pixels ? at + period : -at - 1;
      } else if (at > last) {
        at -= period * truncf(at / period);
        if (at >= pixels) at = period - at - 1;
      }
      break;
    }
    case Outside::kWrap: {  // [abcd]: abcd abcd abcd
      if (size <= 1) return 0;
      if (at < 0) {
        at += pixels * (truncf(-at / last) + 1);
      } else if (at > last) {
        at -= pixels * truncf(at / last);
      }
      break;
    }
  }
  at = at < 0 ? 0 : at;  // NaN stays NaN.
  return last < at ? last : at;
}

template <typename T>
inline constexpr T kMostOfPixel = std::numeric_limits<T>::max();
template <typename T>
inline constexpr T kLeastOfPixel = std::numeric_limits<T>::min();

/// What a mean of pixels becomes as a pixel: integers are cut off.
template <typename T>
TROUPE_DEVICE_FUNCTION T ToPixel(float value) {
  if constexpr (std::is_integral_v<T>) {
    if (value >= static_cast<float>(kMostOfPixel<T>)) return kMostOfPixel<T>;
    if (!(value > static_cast<float>(kLeastOfPixel<T>))) return kLeastOfPixel<T>;
  }
  return static_cast<T>(value);
}

/// An image, with `fill` around it.
template <typename T>
struct ProjectedPixels {
  const T* values;
  int64_t height, width, channels;
  T fill;

  /// At whole numbers.
  TROUPE_DEVICE_FUNCTION T At(float y, float x, int64_t c) const {
    const auto row = static_cast<int64_t>(y), column = static_cast<int64_t>(x);
    if (row < 0 || row >= height || column < 0 || column >= width) return fill;
    return values[(row * width + column) * channels + c];
  }
  TROUPE_DEVICE_FUNCTION T Nearest(float y, float x, int64_t c) const {
    return At(roundf(y), roundf(x), c);
  }
  TROUPE_DEVICE_FUNCTION T Between(float y, float x, int64_t c) const {
    const float y0 = floorf(y), x0 = floorf(x), y1 = y0 + 1, x1 = x0 + 1;
    const float top =
        (x1 - x) * static_cast<float>(At(y0, x0, c)) + (x - x0) * static_cast<float>(At(y0, x1, c));
    const float bottom =
        (x1 - x) * static_cast<float>(At(y1, x0, c)) + (x - x0) * static_cast<float>(At(y1, x1, c));
    return ToPixel<T>((y1 - y) * top + (y - y0) * bottom);
  }
};

/// Where a pixel of a new image lies in the old one.
struct Projected {
  float y, x;
  bool there;

  /// The transform is the first 8 numbers of a matrix of 3 x 3, whose last one is 1.
  TROUPE_DEVICE_FUNCTION static Projected Of(const float* t, int64_t row, int64_t column,
                                             int64_t height, int64_t width, Outside outside) {
    const auto v = static_cast<float>(row), u = static_cast<float>(column);
    const float k = t[6] * u + t[7] * v + 1;
    const float x = InsideOf(width, outside, (t[0] * u + t[1] * v + t[2]) / k);
    const float y = InsideOf(height, outside, (t[3] * u + t[4] * v + t[5]) / k);
    // Up to a pixel outside, those inside have a part.
    const bool there = k != 0 && x > -1 && x < static_cast<float>(width) && y > -1 &&
                       y < static_cast<float>(height);
    return {y, x, there};
  }
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IMAGE_PROJECTIVE_FORMULAS_H_

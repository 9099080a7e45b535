/// Pooling of images in NHWC: loops over windows outside, over channels inside, so that the
/// compiler makes vector code of them. In an unnamed namespace, because files for different
/// instruction sets include it.
#ifndef TROUPE_KERNELS_SIMD_POOL_LOOPS_H_
#define TROUPE_KERNELS_SIMD_POOL_LOOPS_H_

#include <stdint.h>

#include <type_traits>

#include "kernels/simd/pool.h"

namespace troupe {
namespace {

// Element of an output that stems from rows [y0, y1) and columns [x0, x1) of the input.
struct PoolWindow {
  int64_t y0, y1, x0, x1;
  int64_t count() const { return (y1 - y0) * (x1 - x0); }
};

inline void Clip(const PoolAxis& axis, int64_t out, int64_t* begin, int64_t* end) {
  const int64_t first = out * axis.stride - axis.pad;
  *begin = first < 0 ? 0 : first;
  *end = first + axis.window > axis.input ? axis.input : first + axis.window;
  if (*end < *begin) *end = *begin;
}
inline PoolWindow WindowAt(const PoolForm& form, int64_t row, int64_t column) {
  PoolWindow w;
  Clip(form.rows, row, &w.y0, &w.y1);
  Clip(form.columns, column, &w.x0, &w.x1);
  return w;
}

// Channels that are worked on at once; their state stays in the first-level cache.
constexpr int64_t kChannels = 256;

// The type in which T is compared and summed.
template <typename T>
struct PoolType {
  typedef T Type;
};

template <typename T>
void MaxPoolRows(const PoolForm& form, const T* input, T* output, int64_t begin, int64_t end) {
  const int64_t depth = form.depth;
  for (int64_t i = begin; i < end; ++i) {
    const T* image = input + i / form.rows.output * form.rows.input * form.columns.input * depth;
    for (int64_t column = 0; column < form.columns.output; ++column) {
      const PoolWindow w = WindowAt(form, i % form.rows.output, column);
      T* out = output + (i * form.columns.output + column) * depth;
      const T lowest = *static_cast<const T*>(form.lowest);
      for (int64_t c = 0; c < depth; ++c) out[c] = lowest;
      for (int64_t y = w.y0; y < w.y1; ++y) {
        for (int64_t x = w.x0; x < w.x1; ++x) {
          const T* in = image + (y * form.columns.input + x) * depth;
          for (int64_t c = 0; c < depth; ++c) out[c] = in[c] > out[c] ? in[c] : out[c];
        }
      }
    }
  }
}

// For each channel the position of the first of the largest elements of the window (NaN loses
// unless it is first), counted along rows, in the type of T's size so that vectors have as many
// lanes.
template <typename T, typename Index>
void FindMax(const PoolForm& form, const T* image, const PoolWindow& w, int64_t c0,
             int64_t channels, T* best, Index* where) {
  Index position = 0;
  for (int64_t y = w.y0; y < w.y1; ++y) {
    for (int64_t x = w.x0; x < w.x1; ++x) {
      const T* in = image + (y * form.columns.input + x) * form.depth + c0;
      if (position == 0) {
        for (int64_t c = 0; c < channels; ++c) best[c] = in[c];
        for (int64_t c = 0; c < channels; ++c) where[c] = 0;
      } else {
        for (int64_t c = 0; c < channels; ++c) {
          const bool more = in[c] > best[c];
          best[c] = more ? in[c] : best[c];
          where[c] = more ? position : where[c];
        }
      }
      ++position;
    }
  }
}

// Sums of integers wrap around.
template <typename T>
inline T Added(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    typedef std::make_unsigned_t<T> U;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return T(a + b);
  }
}

template <typename T, typename Index>
void MaxPoolGradImages(const PoolForm& form, const T* input, const T* gradient, T* output,
                       int64_t begin, int64_t end) {
  const int64_t depth = form.depth;
  const int64_t image_size = form.rows.input * form.columns.input * depth;
  const T zero = T(0.0f);
  T best[kChannels];
  Index where[kChannels];
  for (int64_t n = begin; n < end; ++n) {
    const T* image = input + n * image_size;
    T* out = output + n * image_size;
    for (int64_t i = 0; i < image_size; ++i) out[i] = zero;
    const T* grad = gradient + n * form.rows.output * form.columns.output * depth;
    for (int64_t row = 0; row < form.rows.output; ++row) {
      for (int64_t column = 0; column < form.columns.output; ++column, grad += depth) {
        const PoolWindow w = WindowAt(form, row, column);
        for (int64_t c0 = 0; c0 < depth; c0 += kChannels) {
          const int64_t channels = depth - c0 < kChannels ? depth - c0 : kChannels;
          FindMax(form, image, w, c0, channels, best, where);
          Index position = 0;
          for (int64_t y = w.y0; y < w.y1; ++y) {
            for (int64_t x = w.x0; x < w.x1; ++x) {
              T* to = out + (y * form.columns.input + x) * depth + c0;
              for (int64_t c = 0; c < channels; ++c) {
                to[c] = Added(to[c], where[c] == position ? grad[c0 + c] : zero);
              }
              ++position;
            }
          }
        }
      }
    }
  }
}

// The means of a window's elements for channels from `c` on, kLanes at a time, which the compiler
// keeps in registers; gives the first channel that is left.
template <int kLanes, typename T>
inline int64_t AverageWindow(const PoolForm& form, const T* image, const PoolWindow& w, int64_t c,
                             T* out) {
  typedef typename PoolType<T>::Type Sum;
  const Sum count = static_cast<Sum>(w.count());
  for (; c + kLanes <= form.depth; c += kLanes) {
    Sum sums[kLanes];
    for (int k = 0; k < kLanes; ++k) sums[k] = 0;
    for (int64_t y = w.y0; y < w.y1; ++y) {
      const T* in = image + (y * form.columns.input + w.x0) * form.depth + c;
      for (int64_t x = w.x0; x < w.x1; ++x, in += form.depth) {
        for (int k = 0; k < kLanes; ++k) sums[k] += static_cast<Sum>(in[k]);
      }
    }
    for (int k = 0; k < kLanes; ++k) out[c + k] = T(sums[k] / count);
  }
  return c;
}

template <typename T>
void AvgPoolRows(const PoolForm& form, const T* input, T* output, int64_t begin, int64_t end) {
  const int64_t depth = form.depth;
  for (int64_t i = begin; i < end; ++i) {
    const T* image = input + i / form.rows.output * form.rows.input * form.columns.input * depth;
    for (int64_t column = 0; column < form.columns.output; ++column) {
      const PoolWindow w = WindowAt(form, i % form.rows.output, column);
      T* out = output + (i * form.columns.output + column) * depth;
      int64_t c = AverageWindow<64>(form, image, w, 0, out);
      c = AverageWindow<16>(form, image, w, c, out);
      AverageWindow<1>(form, image, w, c, out);
    }
  }
}

// `sums` has room for an image in the type in which T is summed; it may be the image itself.
template <typename T>
void AvgPoolGradImage(const PoolForm& form, const T* gradient, typename PoolType<T>::Type* sums) {
  typedef typename PoolType<T>::Type Sum;
  const int64_t depth = form.depth;
  for (int64_t i = 0; i < form.rows.input * form.columns.input * depth; ++i) sums[i] = 0;
  const T* grad = gradient;
  for (int64_t row = 0; row < form.rows.output; ++row) {
    for (int64_t column = 0; column < form.columns.output; ++column, grad += depth) {
      const PoolWindow w = WindowAt(form, row, column);
      const Sum part = Sum(1) / static_cast<Sum>(w.count() > 0 ? w.count() : 1);
      for (int64_t y = w.y0; y < w.y1; ++y) {
        for (int64_t x = w.x0; x < w.x1; ++x) {
          Sum* to = sums + (y * form.columns.input + x) * depth;
          for (int64_t c = 0; c < depth; ++c) to[c] += static_cast<Sum>(grad[c]) * part;
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_POOL_LOOPS_H_

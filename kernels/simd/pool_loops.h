/// Pooling of images in NHWC, in loops that the compiler makes vector code of. In an unnamed
/// namespace, because files for different instruction sets include it.
#ifndef TROUPE_KERNELS_SIMD_POOL_LOOPS_H_
#define TROUPE_KERNELS_SIMD_POOL_LOOPS_H_

#include <stdint.h>

#include "kernels/simd/independent.h"
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

// How pooled values are joined, and what becomes of them, `count` of which were joined.
struct Largest {
  template <typename V>
  static V Join(V best, V x) {
    return x > best ? x : best;
  }
  template <typename V>
  static V Finish(V best, V) {
    return best;
  }
};
struct Mean {
  template <typename V>
  static V Join(V sum, V x) {
    return sum + x;
  }
  template <typename V>
  static V Finish(V sum, V count) {
    return sum / count;
  }
};

template <typename T, typename V>
void WidenLine(const T* in, V* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<V>(in[i]);
}
template <typename T, typename V>
void NarrowLine(const V* in, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = T(in[i]);
}

// sums[i] joined with in[i], in[i + step] and so on, kLines of them.
template <typename Rule, int kLines, typename V>
inline void JoinSome(const V* in, int64_t step, int64_t n, V* sums) {
  int64_t first = 0;
  if (kLines == 1) {
    // g++ 12 would store only where a value changes, one by one, were it stored at once.
    constexpr int kChunk = 16;
    for (; first + kChunk <= n; first += kChunk) {
      V chunk[kChunk];
      for (int i = 0; i < kChunk; ++i) chunk[i] = Rule::Join(sums[first + i], in[first + i]);
      for (int i = 0; i < kChunk; ++i) sums[first + i] = chunk[i];
    }
  }
  TROUPE_INDEPENDENT
  for (int64_t i = first; i < n; ++i) {
    V sum = sums[i];
#pragma GCC unroll 4
    for (int k = 0; k < kLines; ++k) sum = Rule::Join(sum, in[i + k * step]);
    sums[i] = sum;
  }
}
template <typename Rule, typename V>
inline void JoinLines(const V* in, int64_t step, int64_t lines, int64_t n, V* sums) {
  for (; lines >= 3; lines -= 3, in += 3 * step) JoinSome<Rule, 3>(in, step, n, sums);
  if (lines == 2) JoinSome<Rule, 2>(in, step, n, sums);
  if (lines == 1) JoinSome<Rule, 1>(in, step, n, sums);
}

// Pixels of `channels` values, every `stride`th of `in`, joined with those of `out`.
template <typename Rule, int kChannelsOf, typename V>
inline void JoinEvery(const V* in, int64_t stride, int64_t pixels, int64_t channels, V* out) {
  if (kChannelsOf > 0) channels = kChannelsOf;
  for (int64_t x = 0; x < pixels; ++x) {
    for (int64_t c = 0; c < channels; ++c) {
      V* to = out + x * channels + c;
      *to = Rule::Join(*to, in[x * stride * channels + c]);
    }
  }
}

// Values that are worked on at once; they stay in the first-level cache.
constexpr int64_t kPoolBlock = 2048;

// Outputs [x0, x1) of a row, of channels [c0, c0 + channels): first the rows of the windows are
// joined, of each pixel once, then its columns. Both are long lines of values however few the
// channels are. Windows of many columns are cut into parts of `part`.
template <typename Rule, typename T>
class PoolBlock {
 public:
  typedef typename PoolType<T>::Type Value;

  PoolBlock(const PoolForm& form, const T* image, const PoolWindow& rows, Value start)
      : form_(form), image_(image), rows_(rows), start_(start) {}

  void Run(int64_t x0, int64_t x1, int64_t c0, int64_t channels, int64_t part, T* out) {
    const PoolAxis& axis = form_.columns;
    const int64_t size = (x1 - x0) * channels;
    for (int64_t i = 0; i < size; ++i) result_[i] = start_;
    for (int64_t k = 0; k < axis.window; k += part) {
      const int64_t columns = axis.window - k < part ? axis.window - k : part;
      const int64_t width = (x1 - x0 - 1) * axis.stride + columns;
      JoinRows(x0 * axis.stride - axis.pad + k, width, c0, channels);
      if (axis.stride == 1) {
        JoinLines<Rule>(lines_, channels, columns, size, result_);
      } else if (channels >= 16 || x1 - x0 == 1) {
        for (int64_t x = 0; x < x1 - x0; ++x) {
          JoinLines<Rule>(lines_ + x * axis.stride * channels, channels, columns, channels,
                          result_ + x * channels);
        }
      } else {
        JoinColumns(x1 - x0, width, columns, channels);
      }
    }
    for (int64_t x = x0; x < x1;) {
      const int64_t count = Count(x);
      int64_t end = x + 1;
      while (end < x1 && Count(end) == count) ++end;
      Value* run = result_ + (x - x0) * channels;
      const Value joined = static_cast<Value>(count);
      for (int64_t i = 0; i < (end - x) * channels; ++i) run[i] = Rule::Finish(run[i], joined);
      x = end;
    }
    if (channels == form_.depth) return NarrowLine(result_, out, size);
    for (int64_t x = 0; x < x1 - x0; ++x) {
      NarrowLine(result_ + x * channels, out + x * form_.depth, channels);
    }
  }

 private:
  int64_t Count(int64_t x) const {
    PoolWindow w = rows_;
    Clip(form_.columns, x, &w.x0, &w.x1);
    return w.count();
  }

  // lines_ = the pixels [first, first + width) of the rows joined, `start_` outside of the image.
  void JoinRows(int64_t first, int64_t width, int64_t c0, int64_t channels) {
    const int64_t row_step = form_.columns.input * form_.depth;
    for (int64_t i = 0; i < width * channels; ++i) lines_[i] = start_;
    const int64_t begin = first < 0 ? 0 : first;
    const int64_t end = first + width > form_.columns.input ? form_.columns.input : first + width;
    if (begin >= end) return;
    const T* in = image_ + rows_.y0 * row_step + begin * form_.depth + c0;
    Value* lines = lines_ + (begin - first) * channels;
    // One run of all channels, or one for each pixel.
    const bool whole = channels == form_.depth;
    const int64_t runs = whole ? 1 : end - begin;
    const int64_t n = whole ? (end - begin) * channels : channels;
    for (int64_t run = 0; run < runs; ++run, in += form_.depth, lines += channels) {
      if constexpr (sizeof(T) == sizeof(Value)) {
        JoinLines<Rule>(in, row_step, rows_.y1 - rows_.y0, n, lines);
      } else {
        for (int64_t y = 0; y < rows_.y1 - rows_.y0; ++y) {
          WidenLine(in + y * row_step, wide_, n);
          JoinSome<Rule, 1>(wide_, 0, n, lines);
        }
      }
    }
  }

  // Few channels: columns are joined at each pixel, of which `stride` - 1 in `stride` are dropped.
  void JoinColumns(int64_t outputs, int64_t width, int64_t columns, int64_t channels) {
    const int64_t n = (width - columns + 1) * channels, stride = form_.columns.stride;
    for (int64_t i = 0; i < n; ++i) wide_[i] = start_;
    JoinLines<Rule>(lines_, channels, columns, n, wide_);
    switch (channels) {
      case 1:
        return JoinEvery<Rule, 1>(wide_, stride, outputs, channels, result_);
      case 2:
        return JoinEvery<Rule, 2>(wide_, stride, outputs, channels, result_);
      case 3:
        return JoinEvery<Rule, 3>(wide_, stride, outputs, channels, result_);
      case 4:
        return JoinEvery<Rule, 4>(wide_, stride, outputs, channels, result_);
      case 8:
        return JoinEvery<Rule, 8>(wide_, stride, outputs, channels, result_);
      default:
        return JoinEvery<Rule, 0>(wide_, stride, outputs, channels, result_);
    }
  }

  const PoolForm& form_;
  const T* image_;
  PoolWindow rows_;
  Value start_;
  Value result_[kPoolBlock], lines_[kPoolBlock], wide_[kPoolBlock];
};

template <typename Rule, typename T>
void PoolRows(const PoolForm& form, typename PoolType<T>::Type start, const T* input, T* output,
              int64_t begin, int64_t end) {
  const PoolAxis& axis = form.columns;
  const int64_t channels = form.depth < kChannels ? form.depth : kChannels;
  const int64_t pixels = kPoolBlock / channels;
  const int64_t most = pixels / 2 > 1 ? pixels / 2 : 1;
  const int64_t part = axis.window < most ? axis.window : most;
  // Between windows that lie far apart nothing should be joined.
  const int64_t at_once = axis.stride > 2 * axis.window || axis.stride > pixels - part
                              ? 1
                              : (pixels - part) / axis.stride + 1;
  for (int64_t i = begin; i < end; ++i) {
    const T* image =
        input + i / form.rows.output * form.rows.input * form.columns.input * form.depth;
    PoolWindow rows = {0, 0, 0, 0};
    Clip(form.rows, i % form.rows.output, &rows.y0, &rows.y1);
    PoolBlock<Rule, T> block(form, image, rows, start);
    for (int64_t x0 = 0; x0 < axis.output; x0 += at_once) {
      const int64_t x1 = x0 + at_once < axis.output ? x0 + at_once : axis.output;
      for (int64_t c0 = 0; c0 < form.depth; c0 += channels) {
        const int64_t count = form.depth - c0 < channels ? form.depth - c0 : channels;
        block.Run(x0, x1, c0, count, part, output + (i * axis.output + x0) * form.depth + c0);
      }
    }
  }
}

template <typename T>
void MaxPoolRows(const PoolForm& form, const T* input, T* output, int64_t begin, int64_t end) {
  typedef typename PoolType<T>::Type Value;
  PoolRows<Largest>(form, static_cast<Value>(*static_cast<const T*>(form.lowest)), input, output,
                    begin, end);
}
template <typename T>
void AvgPoolRows(const PoolForm& form, const T* input, T* output, int64_t begin, int64_t end) {
  PoolRows<Mean>(form, typename PoolType<T>::Type(0), input, output, begin, end);
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

// Adds the gradient of channel c to the first of the largest elements of the window.
template <typename T>
inline void AddAtMax(const PoolForm& form, const T* image, const PoolWindow& w, int64_t c,
                     T gradient, T* out) {
  typedef typename PoolType<T>::Type Value;
  int64_t where = (w.y0 * form.columns.input + w.x0) * form.depth + c;
  Value best = static_cast<Value>(image[where]);
  for (int64_t y = w.y0; y < w.y1; ++y) {
    int64_t at = (y * form.columns.input + w.x0) * form.depth + c;
    for (int64_t x = w.x0; x < w.x1; ++x, at += form.depth) {
      const Value value = static_cast<Value>(image[at]);
      where = value > best ? at : where;
      best = value > best ? value : best;
    }
  }
  out[where] = T(out[where] + gradient);
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
        // Few channels fill no vectors, and conversions no loops.
        if (depth < 8 || sizeof(T) != sizeof(typename PoolType<T>::Type)) {
          for (int64_t c = 0; c < depth && w.count() > 0; ++c) {
            AddAtMax(form, image, w, c, grad[c], out);
          }
          continue;
        }
        for (int64_t c0 = 0; c0 < depth; c0 += kChannels) {
          const int64_t channels = depth - c0 < kChannels ? depth - c0 : kChannels;
          FindMax(form, image, w, c0, channels, best, where);
          Index position = 0;
          for (int64_t y = w.y0; y < w.y1; ++y) {
            for (int64_t x = w.x0; x < w.x1; ++x) {
              T* to = out + (y * form.columns.input + x) * depth + c0;
              for (int64_t c = 0; c < channels; ++c) {
                to[c] = T(to[c] + (where[c] == position ? grad[c0 + c] : zero));
              }
              ++position;
            }
          }
        }
      }
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

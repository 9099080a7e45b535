// Transforms of lines on the CPU. Several lines are transformed at once, so that registers are
// full.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/fft/fft_ops.h"
#include "kernels/fft/plan.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

using fft::Lines;

/// Some lines that are transformed at once: those from (outer, inner) on, along the dimension that
/// has several.
struct Block {
  /// Where the first line begins in a tensor whose lines have n elements.
  int64_t Begin(const Lines& all, int64_t n) const { return outer * n * all.inner + inner; }
  int64_t outer, inner, lines;
};

/// The two parts of complex numbers.
template <typename R>
struct Parts {
  /// For the inverse transform.
  Parts Exchanged() const { return {im, re}; }
  R *re, *im;
};

/// Bytes of the buffers of a block: they should stay in the second-level cache.
constexpr int64_t kBlockBytes = 512 << 10;
// Lines whose elements are brought side by side at once: a cache line of doubles.
constexpr int64_t kTogether = 8;

/// `n` pairs of numbers that lie side by side, to their two parts.
template <typename R>
void SplitRow(const R* pairs, int64_t n, Parts<R> to) {
  int64_t i = 0;
#if defined(__SSE2__)
  if constexpr (std::is_same_v<R, float>) {
    for (; i + 4 <= n; i += 4) {
      const __m128 a = _mm_loadu_ps(pairs + 2 * i), b = _mm_loadu_ps(pairs + 2 * i + 4);
      _mm_storeu_ps(to.re + i, _mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
      _mm_storeu_ps(to.im + i, _mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    }
  }
#endif
  for (; i < n; ++i) {
    to.re[i] = pairs[2 * i];
    to.im[i] = pairs[2 * i + 1];
  }
}

/// The other way, times `scale`.
template <typename R>
void JoinRow(Parts<R> from, int64_t n, R scale, R* pairs) {
  int64_t i = 0;
#if defined(__SSE2__)
  if constexpr (std::is_same_v<R, float>) {
    const __m128 factor = _mm_set1_ps(scale);
    for (; i + 4 <= n; i += 4) {
      const __m128 re = _mm_mul_ps(_mm_loadu_ps(from.re + i), factor);
      const __m128 im = _mm_mul_ps(_mm_loadu_ps(from.im + i), factor);
      _mm_storeu_ps(pairs + 2 * i, _mm_unpacklo_ps(re, im));
      _mm_storeu_ps(pairs + 2 * i + 4, _mm_unpackhi_ps(re, im));
    }
  }
#endif
  for (; i < n; ++i) {
    pairs[2 * i] = from.re[i] * scale;
    pairs[2 * i + 1] = from.im[i] * scale;
  }
}

/// Lines from number `l` on of those that SplitPairs splits.
template <typename R>
void SplitLines(const R* from, int64_t apart, int64_t n, int64_t l, int64_t lines, Parts<R> to) {
  for (; l + kTogether <= lines; l += kTogether) {
    const R* in = from + l * apart;
    R *re = to.re + l, *im = to.im + l;
    for (int64_t k = 0; k < n; ++k, in += 2, re += lines, im += lines) {
      for (int64_t i = 0; i < kTogether; ++i) re[i] = in[i * apart];
      for (int64_t i = 0; i < kTogether; ++i) im[i] = in[i * apart + 1];
    }
  }
  for (; l < lines; ++l) {
    for (int64_t k = 0; k < n; ++k) {
      to.re[k * lines + l] = from[l * apart + 2 * k];
      to.im[k * lines + l] = from[l * apart + 2 * k + 1];
    }
  }
}

/// The same of JoinPairs.
template <typename R>
void JoinLines(Parts<R> from, int64_t n, int64_t l, int64_t lines, R scale, R* to, int64_t apart) {
  for (; l + kTogether <= lines; l += kTogether) {
    R* out = to + l * apart;
    const R *re = from.re + l, *im = from.im + l;
    for (int64_t k = 0; k < n; ++k, out += 2, re += lines, im += lines) {
      for (int64_t i = 0; i < kTogether; ++i) {
        out[i * apart] = re[i] * scale;
        out[i * apart + 1] = im[i] * scale;
      }
    }
  }
  for (; l < lines; ++l) {
    for (int64_t k = 0; k < n; ++k) {
      to[l * apart + 2 * k] = from.re[k * lines + l] * scale;
      to[l * apart + 2 * k + 1] = from.im[k * lines + l] * scale;
    }
  }
}

/// Element k < n of line l, a pair of numbers at from[l * apart + 2 * k], goes to re[k * lines + l]
/// and im[k * lines + l]. `apart` counts numbers.
template <typename R>
void SplitPairs(const R* from, int64_t apart, int64_t n, int64_t lines, Parts<R> to) {
  if (lines == 1) return SplitRow(from, n, to);
  int64_t l = 0;
#if defined(__SSE2__)
  if constexpr (std::is_same_v<R, float>) {
    for (; l + 4 <= lines; l += 4) {
      const float* in = from + l * apart;
      float *re = to.re + l, *im = to.im + l;
      int64_t k = 0;
      for (; k + 2 <= n; k += 2) {
        __m128 a = _mm_loadu_ps(in + 2 * k), b = _mm_loadu_ps(in + apart + 2 * k);
        __m128 c = _mm_loadu_ps(in + 2 * apart + 2 * k), d = _mm_loadu_ps(in + 3 * apart + 2 * k);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(re + k * lines, a);
        _mm_storeu_ps(im + k * lines, b);
        _mm_storeu_ps(re + (k + 1) * lines, c);
        _mm_storeu_ps(im + (k + 1) * lines, d);
      }
      for (; k < n; ++k) {
        for (int64_t i = 0; i < 4; ++i) {
          re[k * lines + i] = in[i * apart + 2 * k];
          im[k * lines + i] = in[i * apart + 2 * k + 1];
        }
      }
    }
  }
#endif
  SplitLines(from, apart, n, l, lines, to);
}

/// The other way, times `scale`.
template <typename R>
void JoinPairs(Parts<R> from, int64_t n, int64_t lines, R scale, R* to, int64_t apart) {
  if (lines == 1) return JoinRow(from, n, scale, to);
  int64_t l = 0;
#if defined(__SSE2__)
  if constexpr (std::is_same_v<R, float>) {
    const __m128 factor = _mm_set1_ps(scale);
    for (; l + 4 <= lines; l += 4) {
      float* out = to + l * apart;
      const float *re = from.re + l, *im = from.im + l;
      int64_t k = 0;
      for (; k + 2 <= n; k += 2) {
        __m128 a = _mm_mul_ps(_mm_loadu_ps(re + k * lines), factor);
        __m128 b = _mm_mul_ps(_mm_loadu_ps(im + k * lines), factor);
        __m128 c = _mm_mul_ps(_mm_loadu_ps(re + (k + 1) * lines), factor);
        __m128 d = _mm_mul_ps(_mm_loadu_ps(im + (k + 1) * lines), factor);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(out + 2 * k, a);
        _mm_storeu_ps(out + apart + 2 * k, b);
        _mm_storeu_ps(out + 2 * apart + 2 * k, c);
        _mm_storeu_ps(out + 3 * apart + 2 * k, d);
      }
      for (; k < n; ++k) {
        for (int64_t i = 0; i < 4; ++i) {
          out[i * apart + 2 * k] = re[k * lines + i] * scale;
          out[i * apart + 2 * k + 1] = im[k * lines + i] * scale;
        }
      }
    }
  }
#endif
  JoinLines(from, n, l, lines, scale, to, apart);
}

/// Transforms all lines: `load(block, parts)` brings the lines of a block, number k of line l being
/// element k * block.lines + l, `store(block, parts, spare)` takes the results from there; `spare`
/// has room for one element of each line more.
template <typename R, typename Load, typename Store>
void TransformLines(KernelContext& ctx, const FftPlan<R>& plan, const Lines& all, Load load,
                    Store store) {
  const int64_t size = plan.BufferSize();
  const int64_t side_by_side = all.inner == 1 ? all.outer : all.inner;
  const int64_t most = 64 / static_cast<int64_t>(sizeof(R));  // A register, or a cache line.
  const int64_t fitting = kBlockBytes / (4 * static_cast<int64_t>(sizeof(R)) * size);
  const int64_t lines = std::min(side_by_side, std::clamp<int64_t>(fitting, 1, most));
  const int64_t blocks_in_row = (side_by_side + lines - 1) / lines;
  const int64_t blocks = all.inner == 1 ? blocks_in_row : all.outer * blocks_in_row;
  const double ns =
      20 + static_cast<double>(size * lines) * (1 + 0.3 * std::log2(static_cast<double>(size)));
  ctx.ParallelFor(blocks, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
    // Aligned to cache lines, and not at distances that are powers of two: those would share sets
    // of the cache.
    struct alignas(64) Line {
      R numbers[64 / sizeof(R)];
    };
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(R));
    const int64_t part = ((size + 1) * lines + kLine - 1) / kLine * kLine + 5 * kLine;
    const std::unique_ptr<Line[]> buffer(new Line[4 * part / kLine]);
    R* const first_part = reinterpret_cast<R*>(buffer.get());
    const Parts<R> parts = {first_part, first_part + part};
    const Parts<R> spare = {first_part + 2 * part, first_part + 3 * part};
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks_in_row * lines;
      const Block block = {all.inner == 1 ? first : b / blocks_in_row, all.inner == 1 ? 0 : first,
                           std::min(lines, side_by_side - first)};
      load(block, parts);
      plan.Run(block.lines, parts.re, parts.im, spare.re, spare.im);
      store(block, parts, spare);
    }
  });
}

/// Complex numbers, from lines of n elements at `in` to lines at `out`, which may be `in`.
template <typename R>
void TransformComplex(KernelContext& ctx, const Lines& all, int64_t n, bool forward,
                      const std::complex<R>* in, std::complex<R>* out) {
  const auto plan = FftPlan<R>::For(n);
  const R scale = forward ? R(1) : static_cast<R>(1.0 / static_cast<double>(n));
  TransformLines(
      ctx, *plan, all,
      [&](const Block& block, Parts<R> to) {
        if (!forward) to = to.Exchanged();
        const R* from = reinterpret_cast<const R*>(in + block.Begin(all, n));
        const int64_t lines = block.lines;
        if (all.inner == 1) return SplitPairs(from, 2 * n, n, lines, to);
        for (int64_t k = 0; k < n; ++k) {
          SplitRow(from + 2 * k * all.inner, lines, Parts<R>{to.re + k * lines, to.im + k * lines});
        }
      },
      [&](const Block& block, Parts<R> from, Parts<R>) {
        if (!forward) from = from.Exchanged();
        R* to = reinterpret_cast<R*>(out + block.Begin(all, n));
        const int64_t lines = block.lines;
        if (all.inner == 1) return JoinPairs(from, n, lines, scale, to, 2 * n);
        for (int64_t k = 0; k < n; ++k) {
          JoinRow(Parts<R>{from.re + k * lines, from.im + k * lines}, lines, scale,
                  to + 2 * k * all.inner);
        }
      });
}

template <typename R>
struct ShortVectorOf {
  typedef R Type __attribute__((vector_size(16)));
};
template <typename R>
using ShortVector = typename ShortVectorOf<R>::Type;

template <typename V, typename R>
V ReadAt(const R* p) {
  V v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

/// Element l, or a vector V from it on, of a term of a real transform, from those terms of the
/// complex one that hold the even and the odd numbers' transforms. w is the root of unity.
template <typename R, typename V>
void JoinHalves(Parts<R> left, Parts<R> right, int64_t l, R w_re, R w_im, Parts<R> to) {
  const V a_re = ReadAt<V>(left.re + l), a_im = ReadAt<V>(left.im + l);
  const V b_re = ReadAt<V>(right.re + l), b_im = ReadAt<V>(right.im + l);
  const V even_re = a_re + b_re, even_im = a_im - b_im;
  const V odd_re = a_im + b_im, odd_im = b_re - a_re;
  const V re = R(0.5) * (even_re + w_re * odd_re - w_im * odd_im);
  const V im = R(0.5) * (even_im + w_re * odd_im + w_im * odd_re);
  std::memcpy(to.re + l, &re, sizeof(re));
  std::memcpy(to.im + l, &im, sizeof(im));
}

/// `count` lines of an even number n of real numbers, from lines `in_step` apart. Even and odd ones
/// are the parts of n / 2 complex numbers.
template <typename R>
void TransformEvenReal(KernelContext& ctx, int64_t count, int64_t n, const R* in, int64_t in_step,
                       std::complex<R>* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(half);
  TransformLines(
      ctx, *plan, Lines{count, 1},
      [&](const Block& block, Parts<R> to) {
        SplitPairs(in + block.outer * in_step, in_step, half, block.lines, to);
      },
      [&](const Block& block, Parts<R> from, Parts<R> to) {
        constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(R));
        for (int64_t k = 0; k <= half; ++k) {
          const R w_re = plan->half_root_re(k), w_im = plan->half_root_im(k);
          const int64_t a = (k == half ? 0 : k) * block.lines;
          const int64_t b = (k == 0 ? 0 : half - k) * block.lines;
          const Parts<R> left = {from.re + a, from.im + a}, right = {from.re + b, from.im + b};
          const Parts<R> out_k = {to.re + k * block.lines, to.im + k * block.lines};
          int64_t l = 0;
          for (; l + kLanes <= block.lines; l += kLanes) {
            JoinHalves<R, ShortVector<R>>(left, right, l, w_re, w_im, out_k);
          }
          for (; l < block.lines; ++l) JoinHalves<R, R>(left, right, l, w_re, w_im, out_k);
        }
        JoinPairs(to, half + 1, block.lines, R(1),
                  reinterpret_cast<R*>(out + block.outer * (half + 1)), 2 * (half + 1));
      });
}

/// The inverse, from lines of n / 2 + 1 complex numbers. Imaginary parts of the first and the last
/// one are not read.
template <typename R>
void InvertEvenReal(KernelContext& ctx, int64_t count, int64_t n, const std::complex<R>* in,
                    R* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(half);
  const R scale = static_cast<R>(1.0 / static_cast<double>(n));
  TransformLines(
      ctx, *plan, Lines{count, 1},
      [&](const Block& block, Parts<R> to) {
        to = to.Exchanged();
        for (int64_t k = 0; k < half; ++k) {
          const R w_re = plan->half_root_re(k), w_im = -plan->half_root_im(k);
          for (int64_t l = 0; l < block.lines; ++l) {
            const std::complex<R>* from = in + (block.outer + l) * (half + 1);
            std::complex<R> a = from[k], b = from[half - k];
            if (k == 0) {
              a = a.real();
              b = b.real();
            }
            const R even_re = a.real() + b.real(), even_im = a.imag() - b.imag();
            const R dif_re = a.real() - b.real(), dif_im = a.imag() + b.imag();
            const R odd_re = dif_re * w_re - dif_im * w_im, odd_im = dif_re * w_im + dif_im * w_re;
            to.re[k * block.lines + l] = even_re - odd_im;
            to.im[k * block.lines + l] = even_im + odd_re;
          }
        }
      },
      [&](const Block& block, Parts<R> from, Parts<R>) {
        JoinPairs(from.Exchanged(), half, block.lines, scale, out + block.outer * n, n);
      });
}

/// Two lines of an odd number n of real numbers are the parts of n complex ones.
template <typename R>
void TransformOddReal(KernelContext& ctx, int64_t count, int64_t n, const R* in, int64_t in_step,
                      std::complex<R>* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(n);
  TransformLines(
      ctx, *plan, Lines{(count + 1) / 2, 1},
      [&](const Block& block, Parts<R> to) {
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          const R* from = in + line * in_step;
          for (int64_t k = 0; k < n; ++k) {
            to.re[k * block.lines + l] = from[k];
            to.im[k * block.lines + l] = line + 1 < count ? from[in_step + k] : R(0);
          }
        }
      },
      [&](const Block& block, Parts<R> from, Parts<R>) {
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          std::complex<R>* to = out + line * (half + 1);
          for (int64_t k = 0; k <= half; ++k) {
            const int64_t a = k * block.lines + l, b = (k == 0 ? 0 : n - k) * block.lines + l;
            to[k] = {R(0.5) * (from.re[a] + from.re[b]), R(0.5) * (from.im[a] - from.im[b])};
            if (line + 1 == count) continue;
            to[half + 1 + k] = {R(0.5) * (from.im[a] + from.im[b]),
                                R(0.5) * (from.re[b] - from.re[a])};
          }
        }
      });
}

template <typename R>
void InvertOddReal(KernelContext& ctx, int64_t count, int64_t n, const std::complex<R>* in,
                   R* out) {
  const int64_t half = n / 2;
  const auto plan = FftPlan<R>::For(n);
  const R scale = static_cast<R>(1.0 / static_cast<double>(n));
  TransformLines(
      ctx, *plan, Lines{(count + 1) / 2, 1},
      [&](const Block& block, Parts<R> to) {
        to = to.Exchanged();
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          const std::complex<R>* from = in + line * (half + 1);
          for (int64_t k = 0; k <= half; ++k) {
            std::complex<R> x = from[k], y = line + 1 < count ? from[half + 1 + k] : R(0);
            if (k == 0) {
              x = x.real();
              y = y.real();
            }
            // x + i y, and the same of the conjugates.
            const int64_t a = k * block.lines + l, b = (k == 0 ? 0 : n - k) * block.lines + l;
            to.re[b] = x.real() + y.imag();
            to.im[b] = y.real() - x.imag();
            to.re[a] = x.real() - y.imag();
            to.im[a] = x.imag() + y.real();
          }
        }
      },
      [&](const Block& block, Parts<R> from, Parts<R>) {
        from = from.Exchanged();
        for (int64_t l = 0; l < block.lines; ++l) {
          const int64_t line = 2 * (block.outer + l);
          for (int64_t k = 0; k < n; ++k) {
            out[line * n + k] = from.re[k * block.lines + l] * scale;
            if (line + 1 < count) out[(line + 1) * n + k] = from.im[k * block.lines + l] * scale;
          }
        }
      });
}

class CpuEngine final : public fft::Engine {
 public:
  absl::Status Complex(KernelContext& ctx, ElementType type, const Lines& lines, int64_t n,
                       bool forward, const void* in, void* out) const override {
    return SwitchType<complex64, complex128>(type, [&]<typename T>() {
      TransformComplex(ctx, lines, n, forward, static_cast<const T*>(in), static_cast<T*>(out));
      return absl::OkStatus();
    });
  }

  absl::Status Real(KernelContext& ctx, ElementType type, int64_t count, int64_t n, const void* in,
                    void* out) const override {
    return SwitchType<float, double>(type, [&]<typename R>() {
      const R* const from = static_cast<const R*>(in);
      auto* const to = static_cast<std::complex<R>*>(out);
      n % 2 == 0 ? TransformEvenReal(ctx, count, n, from, n, to)
                 : TransformOddReal(ctx, count, n, from, n, to);
      return absl::OkStatus();
    });
  }

  absl::Status InverseReal(KernelContext& ctx, ElementType type, int64_t count, int64_t n,
                           const void* in, void* out) const override {
    return SwitchType<float, double>(type, [&]<typename R>() {
      const auto* const from = static_cast<const std::complex<R>*>(in);
      R* const to = static_cast<R*>(out);
      n % 2 == 0 ? InvertEvenReal(ctx, count, n, from, to) : InvertOddReal(ctx, count, n, from, to);
      return absl::OkStatus();
    });
  }
};

[[maybe_unused]] const bool kRegistered = [] {
  fft::ForEachSpec([](const KernelSpec& spec) {
    KernelRegistry::Global()->Register(spec, [](KernelConstruction& construction) {
      return fft::Make(construction, std::make_unique<CpuEngine>());
    });
  });
  return true;
}();

}  // namespace
}  // namespace troupe

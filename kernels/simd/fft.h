/// The inner loops of Fourier transforms, compiled once per instruction set.
///
/// Complex numbers lie in two arrays, one for each part.
#ifndef TROUPE_KERNELS_SIMD_FFT_H_
#define TROUPE_KERNELS_SIMD_FFT_H_

#include <cstdint>

namespace troupe {

inline constexpr int kLargestRadix = 31;

/// One pass of Stockham's transform, which needs no reordering: of a sum of `radix` * `rest` terms
/// it leaves sums of `rest` terms. Element q < `stride` of term k is at k * stride + q: the results
/// of former passes, and lines that are transformed at the same time, lie side by side.
template <typename R>
struct FftPass {
  int radix = 0;  ///< At most kLargestRadix.
  int64_t rest = 0;
  /// Powers of the root of unity of order radix * rest: number (p, j), for p < rest and
  /// 0 < j < radix, is at p * (radix - 1) + j - 1, and is its p * j-th power.
  const R *twiddle_re = nullptr, *twiddle_im = nullptr;
  /// The powers 0 to radix - 1 of the root of order `radix`.
  const R *root_re = nullptr, *root_im = nullptr;
};

template <typename R>
struct FftFunctions {
  /// Reads and writes radix * rest * stride elements of each array. No array overlaps another.
  void (*pass)(const FftPass<R>& pass, int64_t stride, const R* in_re, const R* in_im, R* out_re,
               R* out_im);
  /// Multiplies element k < `count` of each line by factor k. Element k of line l < `lines` is at
  /// k * lines + l.
  void (*multiply)(const R* factor_re, const R* factor_im, int64_t count, int64_t lines, R* re,
                   R* im);
};

/// The best functions that this processor can run.
template <typename R>
const FftFunctions<R>& Fft();
template <>
const FftFunctions<float>& Fft<float>();
template <>
const FftFunctions<double>& Fft<double>();

#define TROUPE_DECLARE_FFT(ISA)                                                          \
  namespace ISA {                                                                        \
  void RunFftPass(const FftPass<float>& pass, int64_t stride, const float* in_re,        \
                  const float* in_im, float* out_re, float* out_im);                     \
  void RunFftPass(const FftPass<double>& pass, int64_t stride, const double* in_re,      \
                  const double* in_im, double* out_re, double* out_im);                  \
  void MultiplyFftLines(const float* factor_re, const float* factor_im, int64_t count,   \
                        int64_t lines, float* re, float* im);                            \
  void MultiplyFftLines(const double* factor_re, const double* factor_im, int64_t count, \
                        int64_t lines, double* re, double* im);                          \
  }
TROUPE_DECLARE_FFT(v2)
TROUPE_DECLARE_FFT(v3)
TROUPE_DECLARE_FFT(v4)
#undef TROUPE_DECLARE_FFT

}  // namespace troupe

#endif  // TROUPE_KERNELS_SIMD_FFT_H_

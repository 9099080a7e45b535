#include "kernels/simd/fft.h"

#include "kernels/simd/vector_bytes.h"

namespace troupe::TROUPE_ISA {
namespace {

template <typename R>
struct RealVector {
  typedef R Type __attribute__((vector_size(kVectorBytes)));
  typedef R Short __attribute__((vector_size(16)));
};

template <typename V, typename R>
inline V Read(const R* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
template <typename V, typename R>
inline void Write(V v, R* p) {
  __builtin_memcpy(p, &v, sizeof(v));
}

/// A transform of kRadix numbers, or of vectors V of them, in place. R is the type of a part.
template <typename R, typename V, int kRadix>
struct Butterfly;

template <typename R, typename V>
struct Butterfly<R, V, 2> {
  static inline void Run(V* re, V* im) {
    const V re1 = re[0] - re[1], im1 = im[0] - im[1];
    re[0] += re[1];
    im[0] += im[1];
    re[1] = re1;
    im[1] = im1;
  }
};

template <typename R, typename V>
struct Butterfly<R, V, 3> {
  static inline void Run(V* re, V* im) {
    constexpr R kSin = R(0.86602540378443864676);  // of a third of a turn
    const V sum_re = re[1] + re[2], sum_im = im[1] + im[2];
    const V dif_re = kSin * (re[1] - re[2]), dif_im = kSin * (im[1] - im[2]);
    const V mid_re = re[0] - R(0.5) * sum_re, mid_im = im[0] - R(0.5) * sum_im;
    re[0] += sum_re;
    im[0] += sum_im;
    re[1] = mid_re + dif_im;
    im[1] = mid_im - dif_re;
    re[2] = mid_re - dif_im;
    im[2] = mid_im + dif_re;
  }
};

template <typename R, typename V>
struct Butterfly<R, V, 4> {
  static inline void Run(V* re, V* im) {
    const V a_re = re[0] + re[2], a_im = im[0] + im[2];
    const V b_re = re[0] - re[2], b_im = im[0] - im[2];
    const V c_re = re[1] + re[3], c_im = im[1] + im[3];
    const V d_re = re[1] - re[3], d_im = im[1] - im[3];
    re[0] = a_re + c_re;
    im[0] = a_im + c_im;
    re[1] = b_re + d_im;
    im[1] = b_im - d_re;
    re[2] = a_re - c_re;
    im[2] = a_im - c_im;
    re[3] = b_re - d_im;
    im[3] = b_im + d_re;
  }
};

template <typename R, typename V>
struct Butterfly<R, V, 5> {
  static inline void Run(V* re, V* im) {
    constexpr R kCos1 = R(0.30901699437494742410), kSin1 = R(0.95105651629515357212);
    constexpr R kCos2 = R(-0.80901699437494742410), kSin2 = R(0.58778525229247312917);
    const V s1_re = re[1] + re[4], s1_im = im[1] + im[4];
    const V d1_re = re[1] - re[4], d1_im = im[1] - im[4];
    const V s2_re = re[2] + re[3], s2_im = im[2] + im[3];
    const V d2_re = re[2] - re[3], d2_im = im[2] - im[3];
    const V a_re = re[0] + kCos1 * s1_re + kCos2 * s2_re;
    const V a_im = im[0] + kCos1 * s1_im + kCos2 * s2_im;
    const V b_re = re[0] + kCos2 * s1_re + kCos1 * s2_re;
    const V b_im = im[0] + kCos2 * s1_im + kCos1 * s2_im;
    const V c_re = kSin1 * d1_re + kSin2 * d2_re, c_im = kSin1 * d1_im + kSin2 * d2_im;
    const V e_re = kSin2 * d1_re - kSin1 * d2_re, e_im = kSin2 * d1_im - kSin1 * d2_im;
    re[0] += s1_re + s2_re;
    im[0] += s1_im + s2_im;
    re[1] = a_re + c_im;
    im[1] = a_im - c_re;
    re[4] = a_re - c_im;
    im[4] = a_im + c_re;
    re[2] = b_re + e_im;
    im[2] = b_im - e_re;
    re[3] = b_re - e_im;
    im[3] = b_im + e_re;
  }
};

template <typename R, typename V>
struct Butterfly<R, V, 7> {
  static inline void Run(V* re, V* im) {
    constexpr R kCos1 = R(0.62348980185873353053), kSin1 = R(0.78183148246802980871);
    constexpr R kCos2 = R(-0.22252093395631440429), kSin2 = R(0.97492791218182360702);
    constexpr R kCos3 = R(-0.90096886790241912624), kSin3 = R(0.43388373911755812048);
    const V s1_re = re[1] + re[6], s1_im = im[1] + im[6];
    const V d1_re = re[1] - re[6], d1_im = im[1] - im[6];
    const V s2_re = re[2] + re[5], s2_im = im[2] + im[5];
    const V d2_re = re[2] - re[5], d2_im = im[2] - im[5];
    const V s3_re = re[3] + re[4], s3_im = im[3] + im[4];
    const V d3_re = re[3] - re[4], d3_im = im[3] - im[4];
    const V a_re = re[0] + kCos1 * s1_re + kCos2 * s2_re + kCos3 * s3_re;
    const V a_im = im[0] + kCos1 * s1_im + kCos2 * s2_im + kCos3 * s3_im;
    const V b_re = re[0] + kCos2 * s1_re + kCos3 * s2_re + kCos1 * s3_re;
    const V b_im = im[0] + kCos2 * s1_im + kCos3 * s2_im + kCos1 * s3_im;
    const V c_re = re[0] + kCos3 * s1_re + kCos1 * s2_re + kCos2 * s3_re;
    const V c_im = im[0] + kCos3 * s1_im + kCos1 * s2_im + kCos2 * s3_im;
    const V e_re = kSin1 * d1_re + kSin2 * d2_re + kSin3 * d3_re;
    const V e_im = kSin1 * d1_im + kSin2 * d2_im + kSin3 * d3_im;
    const V f_re = kSin2 * d1_re - kSin3 * d2_re - kSin1 * d3_re;
    const V f_im = kSin2 * d1_im - kSin3 * d2_im - kSin1 * d3_im;
    const V g_re = kSin3 * d1_re - kSin1 * d2_re + kSin2 * d3_re;
    const V g_im = kSin3 * d1_im - kSin1 * d2_im + kSin2 * d3_im;
    re[0] += s1_re + s2_re + s3_re;
    im[0] += s1_im + s2_im + s3_im;
    re[1] = a_re + e_im;
    im[1] = a_im - e_re;
    re[6] = a_re - e_im;
    im[6] = a_im + e_re;
    re[2] = b_re + f_im;
    im[2] = b_im - f_re;
    re[5] = b_re - f_im;
    im[5] = b_im + f_re;
    re[3] = c_re + g_im;
    im[3] = c_im - g_re;
    re[4] = c_re - g_im;
    im[4] = c_im + g_re;
  }
};

/// The butterfly of elements q, one for each lane of V. In the last pass all twiddles are 1.
template <typename R, typename V, int kRadix, bool kIsLast>
inline void FixedStep(const R* from_re, const R* from_im, int64_t apart, const R* w_re,
                      const R* w_im, R* to_re, R* to_im, int64_t stride) {
  V re[kRadix], im[kRadix];
#pragma GCC unroll 7
  for (int j = 0; j < kRadix; ++j) {
    re[j] = Read<V>(from_re + j * apart);
    im[j] = Read<V>(from_im + j * apart);
  }
  Butterfly<R, V, kRadix>::Run(re, im);
  Write(re[0], to_re);
  Write(im[0], to_im);
#pragma GCC unroll 7
  for (int j = 1; j < kRadix; ++j) {
    Write(kIsLast ? re[j] : re[j] * w_re[j] - im[j] * w_im[j], to_re + j * stride);
    Write(kIsLast ? im[j] : re[j] * w_im[j] + im[j] * w_re[j], to_im + j * stride);
  }
}

template <typename R, int kRadix, bool kIsLast>
void FixedPass(const FftPass<R>& pass, int64_t stride, const R* in_re, const R* in_im, R* out_re,
               R* out_im) {
  using V = typename RealVector<R>::Type;
  using Short = typename RealVector<R>::Short;
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(R));
  constexpr int64_t kShortLanes = 16 / static_cast<int64_t>(sizeof(R));
  const int64_t apart = pass.rest * stride;  // of the terms of one butterfly
  for (int64_t p = 0; p < pass.rest; ++p) {
    R w_re[kRadix] = {1}, w_im[kRadix] = {0};
    for (int j = 1; j < kRadix; ++j) {
      w_re[j] = pass.twiddle_re[p * (kRadix - 1) + j - 1];
      w_im[j] = pass.twiddle_im[p * (kRadix - 1) + j - 1];
    }
    const R* from_re = in_re + p * stride;
    const R* from_im = in_im + p * stride;
    R* to_re = out_re + p * kRadix * stride;
    R* to_im = out_im + p * kRadix * stride;
    int64_t q = 0;
    for (; q + kLanes <= stride; q += kLanes) {
      FixedStep<R, V, kRadix, kIsLast>(from_re + q, from_im + q, apart, w_re, w_im, to_re + q,
                                       to_im + q, stride);
    }
    for (; q + kShortLanes <= stride; q += kShortLanes) {
      FixedStep<R, Short, kRadix, kIsLast>(from_re + q, from_im + q, apart, w_re, w_im, to_re + q,
                                           to_im + q, stride);
    }
    for (; q < stride; ++q) {
      FixedStep<R, R, kRadix, kIsLast>(from_re + q, from_im + q, apart, w_re, w_im, to_re + q,
                                       to_im + q, stride);
    }
  }
}

constexpr int kBlock = 16;  // of elements side by side

/// Any odd radix: terms j and radix - j are taken together, which meet conjugate roots. Elements
/// [q0, q0 + width) of the butterfly p; kWidth is the width if it is known.
template <typename R, int kWidth>
void OddBlock(const FftPass<R>& pass, int64_t p, int64_t q0, int64_t stride,
              const R* __restrict in_re, const R* __restrict in_im, R* __restrict out_re,
              R* __restrict out_im, int any_width) {
  const int width = kWidth > 0 ? kWidth : any_width;
  const int radix = pass.radix, half = (radix - 1) / 2;
  const int64_t apart = pass.rest * stride;
  R sum_re[kLargestRadix / 2][kBlock], sum_im[kLargestRadix / 2][kBlock];
  R dif_re[kLargestRadix / 2][kBlock], dif_im[kLargestRadix / 2][kBlock];
  const R* from_re = in_re + p * stride + q0;
  const R* from_im = in_im + p * stride + q0;
  R* to_re = out_re + p * radix * stride + q0;
  R* to_im = out_im + p * radix * stride + q0;
  R all_re[kBlock], all_im[kBlock];
  for (int q = 0; q < width; ++q) {
    all_re[q] = from_re[q];
    all_im[q] = from_im[q];
  }
  for (int j = 0; j < half; ++j) {
    const int64_t a = (j + 1) * apart, b = (radix - 1 - j) * apart;
    for (int q = 0; q < width; ++q) {
      sum_re[j][q] = from_re[a + q] + from_re[b + q];
      sum_im[j][q] = from_im[a + q] + from_im[b + q];
      dif_re[j][q] = from_re[a + q] - from_re[b + q];
      dif_im[j][q] = from_im[a + q] - from_im[b + q];
      all_re[q] += sum_re[j][q];
      all_im[q] += sum_im[j][q];
    }
  }
  for (int q = 0; q < width; ++q) {
    to_re[q] = all_re[q];
    to_im[q] = all_im[q];
  }
  for (int k = 1; k <= half; ++k) {
    R even_re[kBlock], even_im[kBlock], odd_re[kBlock], odd_im[kBlock];
    for (int q = 0; q < width; ++q) {
      even_re[q] = from_re[q];
      even_im[q] = from_im[q];
      odd_re[q] = odd_im[q] = 0;
    }
    for (int j = 0; j < half; ++j) {
      const int power = (j + 1) * k % radix;
      const R cosine = pass.root_re[power], sine = pass.root_im[power];
      for (int q = 0; q < width; ++q) {
        even_re[q] += cosine * sum_re[j][q];
        even_im[q] += cosine * sum_im[j][q];
        odd_re[q] -= sine * dif_im[j][q];
        odd_im[q] += sine * dif_re[j][q];
      }
    }
    for (int side = 0; side < 2; ++side) {
      const int j = side == 0 ? k : radix - k;
      const R sign = side == 0 ? R(1) : R(-1);
      const R w_re = pass.twiddle_re[p * (radix - 1) + j - 1];
      const R w_im = pass.twiddle_im[p * (radix - 1) + j - 1];
      for (int q = 0; q < width; ++q) {
        const R re = even_re[q] + sign * odd_re[q], im = even_im[q] + sign * odd_im[q];
        to_re[j * stride + q] = re * w_re - im * w_im;
        to_im[j * stride + q] = re * w_im + im * w_re;
      }
    }
  }
}

template <typename R>
void OddPass(const FftPass<R>& pass, int64_t stride, const R* in_re, const R* in_im, R* out_re,
             R* out_im) {
  for (int64_t p = 0; p < pass.rest; ++p) {
    for (int64_t q0 = 0; q0 < stride; q0 += kBlock) {
      if (stride - q0 >= kBlock) {
        OddBlock<R, kBlock>(pass, p, q0, stride, in_re, in_im, out_re, out_im, kBlock);
      } else {
        OddBlock<R, 0>(pass, p, q0, stride, in_re, in_im, out_re, out_im,
                       static_cast<int>(stride - q0));
      }
    }
  }
}

template <typename R, int kRadix>
void FixedPass(const FftPass<R>& pass, int64_t stride, const R* in_re, const R* in_im, R* out_re,
               R* out_im) {
  pass.rest == 1 ? FixedPass<R, kRadix, true>(pass, stride, in_re, in_im, out_re, out_im)
                 : FixedPass<R, kRadix, false>(pass, stride, in_re, in_im, out_re, out_im);
}

template <typename R>
void AnyPass(const FftPass<R>& pass, int64_t stride, const R* in_re, const R* in_im, R* out_re,
             R* out_im) {
  switch (pass.radix) {
    case 2:
      return FixedPass<R, 2>(pass, stride, in_re, in_im, out_re, out_im);
    case 3:
      return FixedPass<R, 3>(pass, stride, in_re, in_im, out_re, out_im);
    case 4:
      return FixedPass<R, 4>(pass, stride, in_re, in_im, out_re, out_im);
    case 5:
      return FixedPass<R, 5>(pass, stride, in_re, in_im, out_re, out_im);
    case 7:
      return FixedPass<R, 7>(pass, stride, in_re, in_im, out_re, out_im);
    default:
      return OddPass(pass, stride, in_re, in_im, out_re, out_im);
  }
}

template <typename R>
void Multiply(const R* factor_re, const R* factor_im, int64_t count, int64_t lines, R* re, R* im) {
  using V = typename RealVector<R>::Type;
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(R));
  for (int64_t k = 0; k < count; ++k, re += lines, im += lines) {
    const R w_re = factor_re[k], w_im = factor_im[k];
    int64_t l = 0;
    for (; l + kLanes <= lines; l += kLanes) {
      const V r = Read<V>(re + l), i = Read<V>(im + l);
      Write(r * w_re - i * w_im, re + l);
      Write(r * w_im + i * w_re, im + l);
    }
    for (; l < lines; ++l) {
      const R r = re[l], i = im[l];
      re[l] = r * w_re - i * w_im;
      im[l] = r * w_im + i * w_re;
    }
  }
}

}  // namespace

void MultiplyFftLines(const float* factor_re, const float* factor_im, int64_t count, int64_t lines,
                      float* re, float* im) {
  Multiply(factor_re, factor_im, count, lines, re, im);
}
void MultiplyFftLines(const double* factor_re, const double* factor_im, int64_t count,
                      int64_t lines, double* re, double* im) {
  Multiply(factor_re, factor_im, count, lines, re, im);
}

void RunFftPass(const FftPass<float>& pass, int64_t stride, const float* in_re, const float* in_im,
                float* out_re, float* out_im) {
  AnyPass(pass, stride, in_re, in_im, out_re, out_im);
}
void RunFftPass(const FftPass<double>& pass, int64_t stride, const double* in_re,
                const double* in_im, double* out_re, double* out_im) {
  AnyPass(pass, stride, in_re, in_im, out_re, out_im);
}

}  // namespace troupe::TROUPE_ISA

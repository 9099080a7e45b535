/// Plans of discrete Fourier transforms: what depends on the number of terms alone.
#ifndef TROUPE_KERNELS_FFT_PLAN_H_
#define TROUPE_KERNELS_FFT_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/simd/fft.h"

namespace troupe {

/// The forward transform of n complex numbers: y[k] = sum over j of x[j] exp(-2 pi i j k / n). The
/// inverse one, times n, is had by exchanging real and imaginary parts of both x and y.
///
/// By Stockham's algorithm with radices of at most kLargestRadix; if n has a larger prime factor,
/// by a convolution with a chirp of a length without one (Bluestein, "A linear filtering approach
/// to the computation of discrete Fourier transform", 1970). Thread-safe. R is float or double.
template <typename R>
class FftPlan {
 public:
  /// The plan for n > 0 numbers: kept, within bounds, for others who ask for it.
  static std::shared_ptr<const FftPlan> For(int64_t n);

  explicit FftPlan(int64_t n);

  int64_t size() const { return n_; }
  /// The elements of each part of the buffers that `Run` needs, per line.
  int64_t BufferSize() const { return chirp_plan_ == nullptr ? n_ : chirp_plan_->n_; }
  /// A measure of the memory that the plan takes.
  int64_t TableSize() const;
  /// exp(-pi i k / n), for 0 <= k <= n: what a transform of 2 n real numbers is made with.
  R half_root_re(int64_t k) const { return half_root_re_[k]; }
  R half_root_im(int64_t k) const { return half_root_im_[k]; }

  /// Transforms `lines` lines at once: number k of line l is element k * lines + l of `re` and
  /// `im`. The result is there, too. All arrays hold BufferSize() * lines elements.
  void Run(int64_t lines, R* re, R* im, R* spare_re, R* spare_im) const;

 private:
  struct Stage {
    int radix;
    int64_t rest;
    std::vector<R> twiddle_re, twiddle_im, root_re, root_im;
  };

  void AddStages(std::vector<int> radices);
  void MakeChirp();
  void RunStages(int64_t lines, R* re, R* im, R* spare_re, R* spare_im) const;
  void RunChirp(int64_t lines, R* re, R* im, R* spare_re, R* spare_im) const;

  int64_t n_;
  std::vector<Stage> stages_;
  std::vector<R> half_root_re_, half_root_im_;
  // If n has a large prime factor: the chirp, the transform of its conjugate, divided by its
  // length, and the plan for that length.
  std::vector<R> chirp_re_, chirp_im_, filter_re_, filter_im_;
  std::unique_ptr<const FftPlan> chirp_plan_;
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace troupe

#endif  // TROUPE_KERNELS_FFT_PLAN_H_

/// Passes of discrete Fourier transforms on CUDA. Complex numbers are pairs of floats or doubles.
#ifndef TROUPE_KERNELS_CUDA_FFT_H_
#define TROUPE_KERNELS_CUDA_FFT_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace troupe::cuda {

/// One pass of Stockham's algorithm with a radix that may be large: all lines of [outer, size,
/// inner] at once. With s = inner * (the radices of the passes before), numbers x of a line become
///     y[q + s (radix p + k)] = w(p k / size) * sum over j of x[q + s (p + rest j)] w(j k / radix)
/// for q < s, p < rest, k < radix, where w(t) = exp(-2 pi i t), and size = radix * rest is what is
/// left to do: `outer` lines of size * s numbers.
struct FftPass {
  int64_t outer = 1, rest = 1, stride = 1;
  int radix = 1;
  /// Sums are computed by passes of these radices within shared memory.
  int factors[16];
  int num_factors = 0;
  int tile_bits = 0;  ///< The binary logarithm of how many sums a block computes at once.
  bool swap_in = false, swap_out = false;  ///< Exchanges parts, for the inverse transform.
  double scale = 1;
};

/// The passes for lines of n numbers; none if n has a prime factor that is too large. The first
/// reads, the last one writes the numbers; only a last one may write where it reads.
std::vector<FftPass> PlanFft(int64_t outer, int64_t n, int64_t inner, bool wide);
/// The least number of at least n that has no large prime factor.
int64_t SmoothSize(int64_t n);

/// `roots`: what LaunchRoots has made for the radix. With `wide`, parts are doubles.
cudaError_t LaunchFftPass(bool wide, const FftPass& pass, const void* roots, const void* in,
                          void* out, cudaStream_t stream);
/// exp(-2 pi i k / n) for k < n.
cudaError_t LaunchRoots(bool wide, int64_t n, void* roots, cudaStream_t stream);

/// Lines of n numbers by a convolution of a length without large prime factors (Bluestein, "A
/// linear filtering approach to the computation of discrete Fourier transform", 1970).
struct Chirp {
  int64_t outer, n, inner, length;
};
/// The first terms of a line times the chirp exp(-pi i k^2 / n), then zeros: [outer, length,
/// inner].
cudaError_t LaunchChirpIn(bool wide, const Chirp& chirp, bool swap, const void* in, void* work,
                          cudaStream_t stream);
/// The conjugate of the chirp, of k and -k: [length], divided by the length.
cudaError_t LaunchChirpFilter(bool wide, const Chirp& chirp, void* filter, cudaStream_t stream);
/// Element by element, in `work`, of all lines.
cudaError_t LaunchTimesFilter(bool wide, const Chirp& chirp, const void* filter, void* work,
                              cudaStream_t stream);
/// The other way round than LaunchChirpIn, times `scale`.
cudaError_t LaunchChirpOut(bool wide, const Chirp& chirp, bool swap, double scale, const void* work,
                           void* out, cudaStream_t stream);

/// `count` lines of n / 2 transforms of pairs of real numbers, n being even, to n / 2 + 1 of the n
/// real numbers; and the way back, but for the inverse transform.
cudaError_t LaunchJoinHalves(bool wide, int64_t count, int64_t n, const void* in, void* out,
                             cudaStream_t stream);
cudaError_t LaunchSplitHalves(bool wide, int64_t count, int64_t n, const void* in, void* out,
                              cudaStream_t stream);
/// Real numbers as complex ones; the first n / 2 + 1 of n numbers; all n of these numbers, the
/// others being their conjugates; real parts.
cudaError_t LaunchToComplex(bool wide, int64_t elements, const void* in, void* out,
                            cudaStream_t stream);
cudaError_t LaunchFirstHalf(bool wide, int64_t count, int64_t n, const void* in, void* out,
                            cudaStream_t stream);
cudaError_t LaunchBothHalves(bool wide, int64_t count, int64_t n, const void* in, void* out,
                             cudaStream_t stream);
cudaError_t LaunchToReal(bool wide, int64_t elements, const void* in, void* out,
                         cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_FFT_H_

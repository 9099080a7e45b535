/// Random numbers of CUDA: those of the CPU's kernels for the same seeds.
#ifndef TROUPE_KERNELS_CUDA_RANDOM_H_
#define TROUPE_KERNELS_CUDA_RANDOM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

/// Where a run's blocks of Philox begin (`kernels/common/philox.h`).
struct PhiloxStart {
  uint64_t key = 0, low = 0, high = 0;
  /// If given, what is in the card's memory, and not above: the key, and the counter's two halves.
  const uint64_t *key_there = nullptr, *counter_there = nullptr;
};

/// Fills out[0, n) with floating-point numbers: uniform in [0, 1), standard normal, and normal
/// below 2.
cudaError_t LaunchUniform(Number type, PhiloxStart start, void* out, int64_t n,
                          cudaStream_t stream);
cudaError_t LaunchNormal(Number type, PhiloxStart start, void* out, int64_t n, cudaStream_t stream);
cudaError_t LaunchTruncatedNormal(Number type, PhiloxStart start, void* out, int64_t n,
                                  cudaStream_t stream);
/// With integers of [low, low + range), of 32 or 64 bits. Range 0: any integers.
cudaError_t LaunchUniformInt(Number type, PhiloxStart start, int64_t low, uint64_t range, void* out,
                             int64_t n, cudaStream_t stream);

/// Writes the key and the counter of a random generator's state to `position`[0, 3), and the
/// counter after so many blocks to `next`, which may be `state`.
cudaError_t LaunchAdvance(const int64_t* state, int64_t* next, uint64_t blocks, uint64_t* position,
                          cudaStream_t stream);

struct GammaCall {
  Number type;  ///< Floating-point.
  PhiloxStart start;
  const void* alpha;  ///< [sets].
  void* out;          ///< [samples, sets].
  int64_t sets, samples;
};
/// Draws from gamma distributions.
cudaError_t LaunchGamma(const GammaCall& call, cudaStream_t stream);

struct MultinomialCall {
  Number type;  ///< Of the logits.
  const void* logits;
  int64_t rows, classes, samples;
  PhiloxStart start;
  double* sums;     ///< [rows, classes], for running sums.
  double* scratch;  ///< MultinomialScratch(rows, classes).
  bool wide;        ///< Classes are int64, else int32.
  void* out;        ///< [rows, samples].
};
int64_t MultinomialScratch(int64_t rows, int64_t classes);
/// Draws classes. None of the sizes is 0.
cudaError_t LaunchMultinomial(const MultinomialCall& call, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_RANDOM_H_

/// Batch normalization on CUDA.
#ifndef TROUPE_KERNELS_CUDA_BATCH_NORM_H_
#define TROUPE_KERNELS_CUDA_BATCH_NORM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/cuda/reduce_plan.h"

namespace troupe::cuda {

/// Elements of `size` bytes that are read at once by reductions whose plan allows it.
constexpr int BatchNormPack(int64_t size) { return static_cast<int>(16 / size); }
/// The size of accumulators of a mean and a variance.
inline constexpr int64_t kMomentsSize = 16;

/// `x` and what is of its shape: [outer, channels, inner] of half, bfloat16 or float; at least one
/// element. All else: a float for each channel.
struct BatchNormCall {
  Number type;
  int64_t outer, channels, inner;
  bool is_training;
  float epsilon, factor;
  const void* x;
  const float *scale, *offset, *given_mean, *given_variance;
  void* y;
  float *mean, *variance, *saved_mean, *saved_variance;
  float* coefficients;  ///< Scratch: 3 for each channel; aligned to 32 bytes.
  void* scratch;        ///< For the plan, whose accumulators have kMomentsSize bytes.
};
struct BatchNormGradCall {
  Number type;
  int64_t outer, channels, inner;
  bool is_training;
  float epsilon;
  const void *dy, *x;
  const float *scale, *mean, *variance;
  void* dx;
  float *scale_gradient, *offset_gradient;
  float* coefficients;  ///< Scratch: 4 for each channel; aligned to 32 bytes.
  void* scratch;        ///< For the plan, whose accumulators have 8 bytes.
};

/// The plans reduce all dimensions but that of channels. Launches: one for each pass of the plan,
/// and one that writes.
cudaError_t LaunchBatchNorm(const BatchNormCall& call, const ReducePlan& plan, cudaStream_t stream);
cudaError_t LaunchBatchNormGrad(const BatchNormGradCall& call, const ReducePlan& plan,
                                cudaStream_t stream);

/// By given statistics: `x` and what is of its shape are [rows, channels] of half or float, all
/// else is an element of that type for each channel. Without a `gamma` (nullptr) nothing is scaled.
struct GlobalNormCall {
  Number type;
  int64_t rows, channels;
  float epsilon;
  const void *x, *mean, *variance, *beta, *gamma;
  void* y;
  float* factor;  ///< Scratch: one for each channel; aligned to 32 bytes.
};
struct GlobalNormGradCall {
  Number type;
  int64_t rows, channels;
  float epsilon;
  const void *x, *mean, *variance, *gamma, *dy;
  void *dx, *mean_gradient, *variance_gradient, *beta_gradient, *gamma_gradient;
  float* factor;  ///< As above.
  void* scratch;  ///< For the plan, whose accumulators have 8 bytes.
};
cudaError_t LaunchGlobalNorm(const GlobalNormCall& call, cudaStream_t stream);
/// The plan reduces the rows.
cudaError_t LaunchGlobalNormGrad(const GlobalNormGradCall& call, const ReducePlan& plan,
                                 cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_BATCH_NORM_H_

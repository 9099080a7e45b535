/// Special functions of mathematics on cards, of float and double. All enqueue and return; with n =
/// 0 they do nothing. Outputs may be operands that are not broadcast.
#ifndef TROUPE_KERNELS_CUDA_SPECIAL_H_
#define TROUPE_KERNELS_CUDA_SPECIAL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/elementwise.h"

namespace troupe::cuda {

/// kDigamma and kLgamma take half, too.
enum class SpecialOp : uint8_t {
  kDawsn,
  kDigamma,
  kErfinv,
  kExpint,
  kFresnelCos,
  kFresnelSin,
  kLgamma,
  kNdtri,
  kSpence,
};
/// y[i] = op(x[i]) for i < n.
cudaError_t LaunchSpecial(SpecialOp op, Number type, const void* x, void* y, int64_t n,
                          cudaStream_t stream);

enum class SpecialBinaryOp : uint8_t {
  kIgamma,
  kIgammaGradA,
  kIgammac,
  kPolygamma,
  kRandomGammaGrad,
  kZeta,
};
/// out[i] = op(a[i], b[i]) for i < n.
cudaError_t LaunchSpecialBinary(SpecialBinaryOp op, Number type, const BinaryCall& call,
                                cudaStream_t stream);

struct BetaincCall {
  const void* operands[3];  ///< a, b and x.
  int64_t steps[3];         ///< From element to element: 0 or 1.
  void* out;
  int64_t n;
};
cudaError_t LaunchBetainc(Number type, const BetaincCall& call, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_SPECIAL_H_

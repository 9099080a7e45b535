/// Element-wise kernels of CUDA.
#ifndef TROUPE_KERNELS_CUDA_ELEMENTWISE_H_
#define TROUPE_KERNELS_CUDA_ELEMENTWISE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"

namespace troupe::cuda {

enum class UnaryOp : uint8_t {
  kAbs,
  kCeil,
  kCos,
  kErf,
  kExp,
  kExpm1,
  kFloor,
  kInv,
  kLog,
  kLog1p,
  kNeg,
  kRelu,
  kRsqrt,
  kSigmoid,
  kSign,
  kSin,
  kSoftplus,
  kSqrt,
  kSquare,
  kTanh,
};

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kPow,
  kSquaredDifference,
  kReluGrad,
  kRsqrtGrad,
  kSigmoidGrad,
  kSqrtGrad,
  kTanhGrad,
};

/// How two operands are read to fill an output that they are broadcast to. The last dimension is
/// the innermost; a stride of 0 stands still.
struct Broadcast {
  static constexpr int kMaxRank = 8;
  int rank = 0;
  int64_t sizes[kMaxRank];
  int64_t strides[2][kMaxRank];
};

/// y[i] = op(x[i]) for i < n; y may be x.
cudaError_t LaunchUnary(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                        cudaStream_t stream);
/// out[i] = op(a[i], b[i]), broadcast, for i < n; out may be an operand that is not broadcast.
cudaError_t LaunchBinary(BinaryOp op, Number type, const void* a, const void* b, void* out,
                         int64_t n, const Broadcast& broadcast, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_ELEMENTWISE_H_

/// Element-wise kernels of CUDA. All enqueue and return; with n = 0 they do nothing. Outputs may be
/// operands of the same type that are not broadcast.
#ifndef TROUPE_KERNELS_CUDA_ELEMENTWISE_H_
#define TROUPE_KERNELS_CUDA_ELEMENTWISE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/number.h"
#include "kernels/late_record.h"

namespace troupe::cuda {

enum class UnaryOp : uint8_t {
  kAbs,
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCeil,
  kConj,
  kCos,
  kCosh,
  kElu,
  kErf,
  kErfc,
  kExp,
  kExpm1,
  kFloor,
  kInv,
  kLog,
  kLog1p,
  kNeg,
  kRelu,
  kRelu6,
  kRint,
  kRsqrt,
  kSelu,
  kSigmoid,
  kSign,
  kSin,
  kSinh,
  kSoftplus,
  kSoftsign,
  kSqrt,
  kSquare,
  kTan,
  kTanh,
};

enum class BinaryOp : uint8_t {
  kAdd,
  kAtan2,
  kSub,
  kMul,
  kMulNoNan,
  kDiv,
  kDivNoNan,
  kFloorDiv,
  kFloorMod,
  kMaximum,
  kMinimum,
  kNextAfter,
  kPow,
  kSquaredDifference,
  kTruncateDiv,
  kXdivy,
  kXlog1py,
  kXlogy,
};

/// Gradients: functions of the op's output (of those up to kTanh) or its input, and of what came
/// back.
enum class GradientOp : uint8_t {
  kInv,
  kRsqrt,
  kSigmoid,
  kSqrt,
  kTanh,
  kElu,
  kRelu,
  kRelu6,
  kSelu,
  kSoftplus,
  kSoftsign,
};

/// How operands are read to fill an output that they are broadcast to. The last dimension is the
/// innermost, of strides 0 or 1; a stride of 0 stands still.
struct Broadcast {
  static constexpr int kMaxRank = 8, kMaxOperands = 3;
  int rank = 0;
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxOperands][kMaxRank];
};

/// y[i] = op(x[i]) for i < n. By types: floating-point numbers, integers, complex numbers.
cudaError_t LaunchUnaryFloating(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                                cudaStream_t stream);
/// Those of them that are inverse or hyperbolic functions.
cudaError_t LaunchInverseFloating(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                                  cudaStream_t stream);
cudaError_t LaunchUnaryInteger(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                               cudaStream_t stream);
cudaError_t LaunchUnaryComplex(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                               cudaStream_t stream);

struct BinaryCall {
  const void *a, *b;
  void* out;
  int64_t n;
  Broadcast broadcast;
  /// Of ops that divide integers, or raise them to a power: by 0, or to a negative one, is an
  /// error.
  LateCheck check{};
};
/// out[i] = op(a[i], b[i]) for i < n.
cudaError_t LaunchBinaryFloating(BinaryOp op, Number type, const BinaryCall& call,
                                 cudaStream_t stream);
/// Those of them that are 0 where an operand is, and Atan2; of float and double NextAfter, too.
cudaError_t LaunchProductFloating(BinaryOp op, Number type, const BinaryCall& call,
                                  cudaStream_t stream);
cudaError_t LaunchBinaryInteger(BinaryOp op, Number type, const BinaryCall& call,
                                cudaStream_t stream);
cudaError_t LaunchBinaryComplex(BinaryOp op, Number type, const BinaryCall& call,
                                cudaStream_t stream);

/// out[i] = the gradient that goes on, for i < n. `y`: the op's output, or its input.
cudaError_t LaunchGradient(GradientOp op, Number type, const void* y, const void* dy, void* out,
                           int64_t n, cudaStream_t stream);
cudaError_t LaunchLeakyRelu(Number type, float alpha, const void* x, void* y, int64_t n,
                            cudaStream_t stream);
cudaError_t LaunchLeakyReluGradient(Number type, float alpha, const void* x, const void* dy,
                                    void* out, int64_t n, cudaStream_t stream);

/// A relation of two numbers: those of `less`, `equal` that hold, or all others if `negated`.
struct Relation {
  bool less = false, equal = false, negated = false;
};
/// out[i], a bool, says whether the relation holds. bool and complex numbers are only equal.
cudaError_t LaunchComparison(Relation relation, Number type, const BinaryCall& call,
                             cudaStream_t stream);

/// out[i], a bool, says whether a[i] and b[i] are at most `tolerance` apart; of float and double.
cudaError_t LaunchApproximateEqual(float tolerance, Number type, const void* a, const void* b,
                                   bool* out, int64_t n, cudaStream_t stream);

enum class BitsOp : uint8_t { kAnd, kOr, kXor, kLeftShift, kRightShift };
/// Bits of integers. Shifts are by 0 places at least, and one less than the type has bits at most.
cudaError_t LaunchBits(BitsOp op, Number type, const BinaryCall& call, cudaStream_t stream);
cudaError_t LaunchInvert(Number type, const void* x, void* y, int64_t n, cudaStream_t stream);
cudaError_t LaunchPopulationCount(Number type, const void* x, uint8_t* y, int64_t n,
                                  cudaStream_t stream);

/// Real numbers from complex ones of `type`, and complex numbers of `type` from real ones.
enum class ComplexPart : uint8_t { kReal, kImag, kAbs, kAngle };
cudaError_t LaunchComplexPart(ComplexPart part, Number type, const void* x, void* y, int64_t n,
                              cudaStream_t stream);
cudaError_t LaunchMakeComplex(Number type, const BinaryCall& call, cudaStream_t stream);

/// Kinds of floating-point numbers.
enum class Kind : uint8_t { kFinite, kInfinite, kNan };
/// y[i], a bool, says whether x[i] is of the kind.
cudaError_t LaunchIsOfKind(Kind kind, Number type, const void* x, bool* y, int64_t n,
                           cudaStream_t stream);
cudaError_t LaunchNot(const bool* x, bool* y, int64_t n, cudaStream_t stream);

}  // namespace troupe::cuda

#endif  // TROUPE_KERNELS_CUDA_ELEMENTWISE_H_

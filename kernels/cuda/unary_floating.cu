// Functions of one floating-point number.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/functions.cuh"

namespace troupe::cuda {
cudaError_t LaunchUnaryFloating(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                                cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case UnaryOp::NAME:     \
    return MapFloating<UnaryFunction<UnaryOp::NAME>>(type, x, y, n, stream)
    TROUPE_CASE(kAbs);
    TROUPE_CASE(kCeil);
    TROUPE_CASE(kCos);
    TROUPE_CASE(kElu);
    TROUPE_CASE(kErf);
    TROUPE_CASE(kExp);
    TROUPE_CASE(kExpm1);
    TROUPE_CASE(kFloor);
    TROUPE_CASE(kInv);
    TROUPE_CASE(kLog);
    TROUPE_CASE(kLog1p);
    TROUPE_CASE(kNeg);
    TROUPE_CASE(kRelu);
    TROUPE_CASE(kRelu6);
    TROUPE_CASE(kRint);
    TROUPE_CASE(kRsqrt);
    TROUPE_CASE(kSelu);
    TROUPE_CASE(kSigmoid);
    TROUPE_CASE(kSign);
    TROUPE_CASE(kSin);
    TROUPE_CASE(kSoftplus);
    TROUPE_CASE(kSoftsign);
    TROUPE_CASE(kSqrt);
    TROUPE_CASE(kSquare);
    TROUPE_CASE(kTan);
    TROUPE_CASE(kTanh);
#undef TROUPE_CASE
    default:
      return LaunchInverseFloating(op, type, x, y, n, stream);
  }
}

}  // namespace troupe::cuda

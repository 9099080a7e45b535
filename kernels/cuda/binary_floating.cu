// Functions of two floating-point numbers, broadcast against each other.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <BinaryOp kOp>
cudaError_t Run(Number type, const BinaryCall& call, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapStrided(Widened<BinaryFunction<kOp>, T>(), call.broadcast, call.n, stream,
                      static_cast<T*>(call.out), static_cast<const T*>(call.a),
                      static_cast<const T*>(call.b));
  });
}

}  // namespace

cudaError_t LaunchBinaryFloating(BinaryOp op, Number type, const BinaryCall& call,
                                 cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case BinaryOp::NAME:    \
    return Run<BinaryOp::NAME>(type, call, stream)
    TROUPE_CASE(kAdd);
    TROUPE_CASE(kSub);
    TROUPE_CASE(kMul);
    TROUPE_CASE(kDiv);
    TROUPE_CASE(kDivNoNan);
    TROUPE_CASE(kFloorDiv);
    TROUPE_CASE(kFloorMod);
    TROUPE_CASE(kMaximum);
    TROUPE_CASE(kMinimum);
    TROUPE_CASE(kPow);
    TROUPE_CASE(kSquaredDifference);
    TROUPE_CASE(kTruncateDiv);
#undef TROUPE_CASE
    default:
      return LaunchProductFloating(op, type, call, stream);
  }
}

}  // namespace troupe::cuda

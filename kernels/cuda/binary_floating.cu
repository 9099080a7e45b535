// Functions of two floating-point numbers, broadcast against each other.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <BinaryOp kOp>
struct Function {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    if constexpr (kOp == BinaryOp::kAdd) return a + b;
    if constexpr (kOp == BinaryOp::kSub) return a - b;
    if constexpr (kOp == BinaryOp::kMul) return a * b;
    if constexpr (kOp == BinaryOp::kDiv) return a / b;
    if constexpr (kOp == BinaryOp::kDivNoNan) return b == 0 ? W(0) : a / b;
    if constexpr (kOp == BinaryOp::kFloorDiv) return floor(a / b);
    if constexpr (kOp == BinaryOp::kTruncateDiv) return trunc(a / b);
    if constexpr (kOp == BinaryOp::kFloorMod) {
      const W rest = fmod(a, b);
      return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
    }
    // NaN in either operand is the result.
    if constexpr (kOp == BinaryOp::kMaximum) return a < b || b != b ? b : a;
    if constexpr (kOp == BinaryOp::kMinimum) return b < a || b != b ? b : a;
    if constexpr (kOp == BinaryOp::kPow) return pow(a, b);
    if constexpr (kOp == BinaryOp::kSquaredDifference) return (a - b) * (a - b);
  }
};

template <BinaryOp kOp>
cudaError_t Run(Number type, const BinaryCall& call, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapStrided(Widened<Function<kOp>, T>(), call.broadcast, call.n, stream,
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

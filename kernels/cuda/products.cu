// Products and quotients of two floating-point numbers that are 0 where one of them is, whatever
// the other; Atan2 and NextAfter.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/map.cuh"

namespace troupe::cuda {
namespace {

template <BinaryOp kOp>
struct Function {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    if constexpr (kOp == BinaryOp::kAtan2) return atan2(a, b);
    if constexpr (kOp == BinaryOp::kMulNoNan) return b == 0 ? W(0) : a * b;
    if constexpr (kOp == BinaryOp::kNextAfter) return nextafter(a, b);
    if constexpr (kOp == BinaryOp::kXdivy) return a == 0 ? W(0) : a / b;
    if constexpr (kOp == BinaryOp::kXlog1py) return a == 0 ? W(0) : a * log1p(b);
    if constexpr (kOp == BinaryOp::kXlogy) return a == 0 ? W(0) : a * log(b);
  }
};

template <BinaryOp kOp>
auto Runs(const BinaryCall& call, cudaStream_t stream) {
  return [&call, stream](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapStrided(Widened<Function<kOp>, T>(), call.broadcast, call.n, stream,
                      static_cast<T*>(call.out), static_cast<const T*>(call.a),
                      static_cast<const T*>(call.b));
  };
}

}  // namespace

cudaError_t LaunchProductFloating(BinaryOp op, Number type, const BinaryCall& call,
                                  cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case BinaryOp::NAME:    \
    return VisitFloating(type, Runs<BinaryOp::NAME>(call, stream))
    TROUPE_CASE(kAtan2);
    TROUPE_CASE(kMulNoNan);
    TROUPE_CASE(kXdivy);
    TROUPE_CASE(kXlog1py);
    TROUPE_CASE(kXlogy);
#undef TROUPE_CASE
    case BinaryOp::kNextAfter:
      return VisitFloatAndDouble(type, Runs<BinaryOp::kNextAfter>(call, stream));
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda

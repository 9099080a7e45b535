// Inverse and hyperbolic functions of one floating-point number.
#include "kernels/cuda/floating.cuh"

namespace troupe::cuda {
namespace {

template <UnaryOp kOp>
struct Function {
  template <typename W>
  __device__ W operator()(W x) const {
    if constexpr (kOp == UnaryOp::kAcos) return acos(x);
    if constexpr (kOp == UnaryOp::kAcosh) return acosh(x);
    if constexpr (kOp == UnaryOp::kAsin) return asin(x);
    if constexpr (kOp == UnaryOp::kAsinh) return asinh(x);
    if constexpr (kOp == UnaryOp::kAtan) return atan(x);
    if constexpr (kOp == UnaryOp::kAtanh) return atanh(x);
    if constexpr (kOp == UnaryOp::kCosh) return cosh(x);
    if constexpr (kOp == UnaryOp::kErfc) return erfc(x);
    if constexpr (kOp == UnaryOp::kSinh) return sinh(x);
  }
};

}  // namespace

cudaError_t LaunchInverseFloating(UnaryOp op, Number type, const void* x, void* y, int64_t n,
                                  cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case UnaryOp::NAME:     \
    return MapFloating<Function<UnaryOp::NAME>>(type, x, y, n, stream)
    TROUPE_CASE(kAcos);
    TROUPE_CASE(kAcosh);
    TROUPE_CASE(kAsin);
    TROUPE_CASE(kAsinh);
    TROUPE_CASE(kAtan);
    TROUPE_CASE(kAtanh);
    TROUPE_CASE(kCosh);
    TROUPE_CASE(kErfc);
    TROUPE_CASE(kSinh);
#undef TROUPE_CASE
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace troupe::cuda

// Special functions of two and three numbers, by the CPU's own formulas. Zeta, Polygamma and
// Betainc are computed in double there and here.
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/special.h"
#include "kernels/math/incomplete_beta.h"
#include "kernels/math/special_functions.h"

namespace troupe::cuda {
namespace {

template <SpecialBinaryOp kOp>
struct Function {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (kOp == SpecialBinaryOp::kIgamma) return Eigen::numext::igamma(a, b);
    if constexpr (kOp == SpecialBinaryOp::kIgammaGradA) return Eigen::numext::igamma_der_a(a, b);
    if constexpr (kOp == SpecialBinaryOp::kIgammac) return Eigen::numext::igammac(a, b);
    if constexpr (kOp == SpecialBinaryOp::kPolygamma) return static_cast<T>(Polygamma(a, b));
    if constexpr (kOp == SpecialBinaryOp::kRandomGammaGrad) {
      return Eigen::numext::gamma_sample_der_alpha(a, b);
    }
    if constexpr (kOp == SpecialBinaryOp::kZeta) return static_cast<T>(HurwitzZeta(a, b));
  }
};

struct Betainc {
  template <typename T>
  __device__ T operator()(T a, T b, T x) const {
    return static_cast<T>(IncompleteBeta(a, b, x));
  }
};

}  // namespace

cudaError_t LaunchSpecialBinary(SpecialBinaryOp op, Number type, const BinaryCall& call,
                                cudaStream_t stream) {
  const auto run = [&](auto fn) {
    return VisitFloatAndDouble(type, [&call, stream, fn](auto tag) {
      using T = typename decltype(tag)::Type;
      return MapStrided(fn, call.broadcast, call.n, stream, static_cast<T*>(call.out),
                        static_cast<const T*>(call.a), static_cast<const T*>(call.b));
    });
  };
  switch (op) {
#define TROUPE_CASE(NAME)     \
  case SpecialBinaryOp::NAME: \
    return run(Function<SpecialBinaryOp::NAME>())
    TROUPE_CASE(kIgamma);
    TROUPE_CASE(kIgammaGradA);
    TROUPE_CASE(kIgammac);
    TROUPE_CASE(kPolygamma);
    TROUPE_CASE(kRandomGammaGrad);
    TROUPE_CASE(kZeta);
#undef TROUPE_CASE
  }
  return cudaErrorNotSupported;
}

cudaError_t LaunchBetainc(Number type, const BetaincCall& call, cudaStream_t stream) {
  return VisitFloatAndDouble(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    FlatWalk walk;
    std::copy_n(call.steps, 3, walk.steps);
    return MapFlat(Betainc(), walk, call.n, stream, static_cast<T*>(call.out),
                   static_cast<const T*>(call.operands[0]), static_cast<const T*>(call.operands[1]),
                   static_cast<const T*>(call.operands[2]));
  });
}

}  // namespace troupe::cuda

// Special functions of one number. Those that the CPU computes in double are computed so here.
#include "kernels/cuda/special.h"

#include "kernels/cuda/complex.cuh"
#include "kernels/cuda/floating.cuh"
#include "kernels/cuda/map.cuh"
#include "kernels/math/special_functions.h"

namespace troupe::cuda {
namespace {

/// Ei(x) for x of (0, 40]: log(x / x0) and the power series, both about the root x0, which is
/// `kRoot` and `kRest` together. All terms have the sign of x - x0, so that none is lost.
__device__ double ExpintNearRoot(double x) {
  constexpr double kRoot = 0.37250741078136663, kRest = 1.31401834143860282e-17;
  const double distance = (x - kRoot) - kRest, ratio = distance / kRoot;
  const double log_ratio = fabs(ratio) < 0.5 ? log1p(ratio) : log(x / kRoot);
  // (x^k - x0^k) / (x - x0) is `difference`; `scale` is 1 / k!.
  double difference = 1, root_power = 1, scale = 1, sum = 1;
  for (int k = 2; k <= 160; ++k) {
    root_power *= kRoot;
    difference = x * difference + root_power;
    scale /= k;
    const double term = difference * scale / k;
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return log_ratio + distance * sum;
}

/// Ei(x); NaN below 0 and at infinity, as on the CPU.
__device__ double Expint(double x) {
  if (!(x >= 0) || isinf(x)) return NAN;
  if (x == 0) return -INFINITY;
  if (x <= 40) return ExpintNearRoot(x);
  // The asymptotic series, up to its least term.
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && term > 1e-17; ++k) sum += term *= k / x;
  const double half = exp(x / 2);  // exp(x) may be too large.
  return half / x * sum * half;
}

template <SpecialOp kOp>
struct Function {
  template <typename W>
  __device__ W operator()(W x) const {
    if constexpr (kOp == SpecialOp::kDigamma) return Eigen::numext::digamma(x);
    if constexpr (kOp == SpecialOp::kErfinv) return erfinv(x);
    if constexpr (kOp == SpecialOp::kNdtri) return normcdfinv(x);
    if constexpr (kInDouble) return static_cast<W>(InDouble(x));
  }

 private:
  static constexpr bool kInDouble =
      kOp != SpecialOp::kDigamma && kOp != SpecialOp::kErfinv && kOp != SpecialOp::kNdtri;
  static __device__ double InDouble(double x) {
    if constexpr (kOp == SpecialOp::kDawsn) return Dawson(x);
    if constexpr (kOp == SpecialOp::kExpint) return Expint(x);
    if constexpr (kOp == SpecialOp::kFresnelCos) return Fresnel(x).cosine;
    if constexpr (kOp == SpecialOp::kFresnelSin) return Fresnel(x).sine;
    if constexpr (kOp == SpecialOp::kLgamma) return lgamma(x);
    if constexpr (kOp == SpecialOp::kSpence) return Spence(x);
  }
};

template <SpecialOp kOp>
auto Runs(const void* x, void* y, int64_t n, cudaStream_t stream) {
  return [=](auto tag) {
    using T = typename decltype(tag)::Type;
    return MapFlat(Widened<Function<kOp>, T>(), FlatWalk(), n, stream, static_cast<T*>(y),
                   static_cast<const T*>(x));
  };
}

}  // namespace

cudaError_t LaunchSpecial(SpecialOp op, Number type, const void* x, void* y, int64_t n,
                          cudaStream_t stream) {
  switch (op) {
#define TROUPE_CASE(NAME) \
  case SpecialOp::NAME:   \
    return VisitFloatAndDouble(type, Runs<SpecialOp::NAME>(x, y, n, stream))
#define TROUPE_CASE_OF_HALF(NAME)                                                                \
  case SpecialOp::NAME:                                                                          \
    if (type == Number::kHalf) return Runs<SpecialOp::NAME>(x, y, n, stream)(TypeTag<__half>()); \
    return VisitFloatAndDouble(type, Runs<SpecialOp::NAME>(x, y, n, stream))
    TROUPE_CASE(kDawsn);
    TROUPE_CASE_OF_HALF(kDigamma);
    TROUPE_CASE(kErfinv);
    TROUPE_CASE(kExpint);
    TROUPE_CASE(kFresnelCos);
    TROUPE_CASE(kFresnelSin);
    TROUPE_CASE_OF_HALF(kLgamma);
    TROUPE_CASE(kNdtri);
    TROUPE_CASE(kSpence);
#undef TROUPE_CASE
#undef TROUPE_CASE_OF_HALF
  }
  return cudaErrorNotSupported;
}

}  // namespace troupe::cuda

// Special functions of mathematics of one and two numbers.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/math/map_kernels.h"
#include "kernels/math/special_functions.h"
#include "kernels/simd/special.h"

namespace troupe {
namespace {

constexpr auto kDigamma = [](auto x) { return Eigen::numext::digamma(x); };
constexpr auto kLgamma = [](auto x) {
  int sign;  // lgamma keeps it in a global variable.
  return ::lgamma_r(static_cast<double>(x), &sign);
};
constexpr auto kDawsn = [](double x) { return Dawson(x); };
constexpr auto kErfinv = [](double x) { return InverseErf(x); };
constexpr auto kExpint = [](double x) { return ExponentialIntegral(x); };
constexpr auto kFresnelCos = [](double x) { return Fresnel(x).cosine; };
constexpr auto kFresnelSin = [](double x) { return Fresnel(x).sine; };
constexpr auto kNdtri = [](double x) { return NormalQuantile(x); };
constexpr auto kSpence = [](double x) { return Spence(x); };

constexpr auto kIgamma = [](auto a, auto x) { return Eigen::numext::igamma(a, x); };
constexpr auto kIgammaGradA = [](auto a, auto x) { return Eigen::numext::igamma_der_a(a, x); };
constexpr auto kIgammac = [](auto a, auto x) { return Eigen::numext::igammac(a, x); };
constexpr auto kPolygamma = [](double n, double x) { return Polygamma(n, x); };
constexpr auto kZeta = [](double x, double q) { return HurwitzZeta(x, q); };

constexpr int kSpecialCost = 50;

/// Functions of float in wide registers.
template <auto kMember>
void FloatLoop(const void* in, void* out, int64_t n) {
  (Special().*kMember)(static_cast<const float*>(in), static_cast<float*>(out), n);
}
template <auto kMember>
bool RegisterFloat(const char* op) {
  KernelRegistry::Global()->Register(
      KernelSpec(op).Types("T", {ElementType::kFloat}), [](KernelConstruction&) {
        return absl::StatusOr<std::unique_ptr<Kernel>>(
            std::make_unique<UnaryKernel>(FloatLoop<kMember>, ElementType::kFloat, 3));
      });
  return true;
}

/// Zeta(x, q), or the polygamma function of order x at q, of floats, in double.
template <bool kPolygamma, int kStepX, int kStepQ>
uint32_t ZetaLoop(const void* orders, const void* places, void* out, int64_t n) {
  const float* x = static_cast<const float*>(orders);
  const float* q = static_cast<const float*>(places);
  float* to = static_cast<float*>(out);
  constexpr int64_t kBlock = 256;
  double wide_x[kBlock], wide_q[kBlock], y[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < m; ++i) {
      wide_x[i] = static_cast<double>(x[(begin + i) * kStepX]) + (kPolygamma ? 1 : 0);
      wide_q[i] = q[(begin + i) * kStepQ];
    }
    Special().zeta(wide_x, wide_q, y, m);
    for (int64_t i = 0; i < m; ++i) {
      const double order = x[(begin + i) * kStepX];
      if (!ZetaIsPlain(wide_x[i], wide_q[i]) || (kPolygamma && order != std::floor(order))) {
        y[i] = kPolygamma ? Polygamma(order, wide_q[i]) : HurwitzZeta(order, wide_q[i]);
      } else if (kPolygamma) {
        double factor = std::fmod(order, 2) == 0 ? -1 : 1;
        for (int k = 2; k <= static_cast<int>(order); ++k) factor *= k;
        y[i] *= factor;
      }
      to[begin + i] = static_cast<float>(y[i]);
    }
  }
  return 0;
}
template <bool kPolygamma>
bool RegisterZeta(const char* op) {
  KernelRegistry::Global()->Register(
      KernelSpec(op).Types("T", {ElementType::kFloat}), [](KernelConstruction&) {
        constexpr simd::BinaryFns kForms = {ZetaLoop<kPolygamma, 1, 1>, ZetaLoop<kPolygamma, 0, 1>,
                                            ZetaLoop<kPolygamma, 1, 0>};
        return absl::StatusOr<std::unique_ptr<Kernel>>(std::make_unique<BinaryKernel>(
            kForms, ElementType::kFloat, ElementType::kFloat, kSpecialCost, BinaryError::kNone,
            /*unequal_shapes=*/-1));
      });
  return true;
}

template <auto kFunction, typename... More>
bool RegisterSpecial(const char* op) {
  return RegisterUnaryMaps<kFunction, kSpecialCost, float, double, More...>(op);
}
template <auto kFunction>
bool RegisterSpecialBinary(const char* op) {
  return RegisterBinaryMaps<kFunction, 2 * kSpecialCost, float, double>(op);
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterSpecial<kDawsn>("Dawsn"),
    RegisterSpecial<kDigamma, half>("Digamma"),
    RegisterFloat<&SpecialFunctions::inverse_erf>("Erfinv"),
    RegisterUnaryMaps<kErfinv, kSpecialCost, double>("Erfinv"),
    RegisterSpecial<kExpint>("Expint"),
    RegisterSpecial<kFresnelCos>("FresnelCos"),
    RegisterSpecial<kFresnelSin>("FresnelSin"),
    RegisterSpecial<kLgamma, half>("Lgamma"),
    RegisterFloat<&SpecialFunctions::normal_quantile>("Ndtri"),
    RegisterUnaryMaps<kNdtri, kSpecialCost, double>("Ndtri"),
    RegisterSpecial<kSpence>("Spence"),
    RegisterSpecialBinary<kIgamma>("Igamma"),
    RegisterSpecialBinary<kIgammaGradA>("IgammaGradA"),
    RegisterSpecialBinary<kIgammac>("Igammac"),
    RegisterBinaryMaps<kPolygamma, 2 * kSpecialCost, double>("Polygamma"),
    RegisterBinaryMaps<kZeta, 2 * kSpecialCost, double>("Zeta"),
    RegisterZeta<true>("Polygamma"),
    RegisterZeta<false>("Zeta"),
};

}  // namespace
}  // namespace troupe

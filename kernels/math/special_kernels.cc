// Special functions of mathematics of one and two numbers.
#include <cmath>
#include <unsupported/Eigen/SpecialFunctions>

#include "kernels/math/map_kernels.h"
#include "kernels/math/special_functions.h"

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
    RegisterSpecial<kErfinv>("Erfinv"),
    RegisterSpecial<kExpint>("Expint"),
    RegisterSpecial<kFresnelCos>("FresnelCos"),
    RegisterSpecial<kFresnelSin>("FresnelSin"),
    RegisterSpecial<kLgamma, half>("Lgamma"),
    RegisterSpecial<kNdtri>("Ndtri"),
    RegisterSpecial<kSpence>("Spence"),
    RegisterSpecialBinary<kIgamma>("Igamma"),
    RegisterSpecialBinary<kIgammaGradA>("IgammaGradA"),
    RegisterSpecialBinary<kIgammac>("Igammac"),
    RegisterSpecialBinary<kPolygamma>("Polygamma"),
    RegisterSpecialBinary<kZeta>("Zeta"),
};

}  // namespace
}  // namespace troupe

// Inverse and hyperbolic functions, products and quotients that are 0 where one operand is.
#include <cmath>
#include <complex>

#include "kernels/math/map_kernels.h"

namespace troupe {
namespace {

constexpr auto kAcos = [](auto x) { return std::acos(x); };
constexpr auto kAcosh = [](auto x) { return std::acosh(x); };
constexpr auto kAsin = [](auto x) { return std::asin(x); };
constexpr auto kAsinh = [](auto x) { return std::asinh(x); };
constexpr auto kAtan = [](auto x) { return std::atan(x); };
constexpr auto kAtanh = [](auto x) { return std::atanh(x); };
constexpr auto kCosh = [](auto x) { return std::cosh(x); };
constexpr auto kSinh = [](auto x) { return std::sinh(x); };

constexpr auto kNextAfter = [](auto from, auto to) { return std::nextafter(from, to); };

constexpr auto kMulNoNan = []<typename T>(T x, T y) { return y == T(0) ? T(0) : x * y; };
constexpr auto kXdivy = []<typename T>(T x, T y) { return x == T(0) ? T(0) : x / y; };
constexpr auto kXlogy = []<typename T>(T x, T y) { return x == T(0) ? T(0) : x * std::log(y); };
constexpr auto kXlog1py = []<typename T>(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x == T(0) ? T(0) : x * std::log1p(y);
  } else {
    return x == T(0) ? T(0) : x * std::log(T(1) + y);
  }
};

constexpr int kTranscendentalCost = 10;

// The real ones of these are in elementwise_kernels.cc.
template <auto kFunction>
bool RegisterComplex(const char* op) {
  return RegisterUnaryMaps<kFunction, kTranscendentalCost, complex64, complex128>(op);
}
template <auto kFunction>
bool RegisterInverse(const char* op) {
  return RegisterUnaryMaps<kFunction, kTranscendentalCost, float, double, half, bfloat16, complex64,
                           complex128>(op);
}
template <auto kFunction, int kCost>
bool RegisterProduct(const char* op) {
  return RegisterBinaryMaps<kFunction, kCost, float, double, half, bfloat16, complex64, complex128>(
      op);
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterComplex<kAcos>("Acos"),
    RegisterInverse<kAcosh>("Acosh"),
    RegisterComplex<kAsin>("Asin"),
    RegisterInverse<kAsinh>("Asinh"),
    RegisterComplex<kAtan>("Atan"),
    RegisterComplex<kAtanh>("Atanh"),
    RegisterInverse<kCosh>("Cosh"),
    RegisterInverse<kSinh>("Sinh"),
    RegisterProduct<kMulNoNan, 1>("MulNoNan"),
    RegisterProduct<kXdivy, 1>("Xdivy"),
    RegisterProduct<kXlogy, kTranscendentalCost>("Xlogy"),
    RegisterProduct<kXlog1py, kTranscendentalCost>("Xlog1py"),
    RegisterBinaryMaps<kNextAfter, 3, float, double>("NextAfter"),
};

}  // namespace
}  // namespace troupe

// Angle, Complex, ComplexAbs, Imag, Real.
#include <cmath>
#include <complex>

#include "kernels/math/map_kernels.h"

namespace troupe {
namespace {

constexpr auto kAngle = [](auto x) { return std::arg(x); };
constexpr auto kComplexAbs = [](auto x) { return std::abs(x); };
constexpr auto kImag = [](auto x) { return x.imag(); };
constexpr auto kReal = [](auto x) { return x.real(); };
constexpr auto kComplex = []<typename T>(T real, T imag) { return std::complex<T>(real, imag); };

KernelSpec Spec(const char* op, ElementType from, ElementType to) {
  return KernelSpec(op).Types("T", {from}).Types("Tout", {to});
}

template <auto kFunction, int kCost>
bool RegisterPart(const char* op) {
  KernelRegistry* const registry = KernelRegistry::Global();
  registry->Register(Spec(op, ElementType::kComplex64, ElementType::kFloat),
                     MakeUnaryMap<complex64, float, kFunction, kCost>);
  registry->Register(Spec(op, ElementType::kComplex128, ElementType::kDouble),
                     MakeUnaryMap<complex128, double, kFunction, kCost>);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterPart<kAngle, 10>("Angle"),
    RegisterPart<kComplexAbs, 5>("ComplexAbs"),
    RegisterPart<kImag, 1>("Imag"),
    RegisterPart<kReal, 1>("Real"),
};

REGISTER_KERNEL(Spec("Complex", ElementType::kFloat, ElementType::kComplex64),
                (MakeBinaryMap<float, complex64, kComplex, 1>));
REGISTER_KERNEL(Spec("Complex", ElementType::kDouble, ElementType::kComplex128),
                (MakeBinaryMap<double, complex128, kComplex, 1>));

}  // namespace
}  // namespace troupe

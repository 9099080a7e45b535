// Inverse and hyperbolic functions, products and quotients that are 0 where one operand is.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <type_traits>

#include "kernels/math/cast.h"
#include "kernels/math/loops.h"
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

// x times or over something of y, but 0 where one of them is.
enum class Product { kMulNoNan, kXdivy, kXlogy, kXlog1py };

// `n` elements from `in` on, or the first one as often, as numbers of C: in `space` unless they are
// so where they lie.
template <typename T, typename C, int kStep>
const C* Numbers(const T* in, int64_t n, C* space) {
  if constexpr (kStep == 0) {
    std::fill_n(space, n, static_cast<C>(*in));
    return space;
  } else if constexpr (std::is_same_v<T, C>) {
    return in;
  } else {
    static const simd::UnaryFn widen = FindCast(kElementType<T>, kElementType<C>);
    widen(in, space, n);
    return space;
  }
}

template <typename T, Product kProduct, int kStepA, int kStepB>
uint32_t ProductLoop(const void* a, const void* b, void* out, int64_t n) {
  using C = ComputeType<T>;
  constexpr bool kIsReal = std::is_floating_point_v<C>;
  static const simd::UnaryFn log = FindUnary(
      kProduct == Product::kXlog1py && kIsReal ? simd::kLog1p : simd::kLog, kElementType<C>);
  static const simd::BinaryFn join =
      FindBinary(kProduct == Product::kXdivy ? simd::kDiv : simd::kMul, kElementType<C>).aa;
  static const simd::UnaryFn narrow = FindCast(kElementType<C>, kElementType<T>);
  constexpr int64_t kBlock = 256;
  C x[kBlock], y[kBlock], z[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = std::min(kBlock, n - begin);
    const C* from_x = Numbers<T, C, kStepA>(static_cast<const T*>(a) + begin * kStepA, m, x);
    const C* from_y = Numbers<T, C, kStepB>(static_cast<const T*>(b) + begin * kStepB, m, y);
    if constexpr (kProduct == Product::kXlog1py && !kIsReal) {
      for (int64_t i = 0; i < m; ++i) y[i] = from_y[i] + C(1);
      from_y = y;
    }
    if constexpr (kProduct == Product::kXlogy || kProduct == Product::kXlog1py) {
      log(from_y, y, m);
      from_y = y;
    }
    join(from_x, from_y, z, m);
    const C* zero = kProduct == Product::kMulNoNan ? from_y : from_x;
    for (int64_t i = 0; i < m; ++i) z[i] = zero[i] == C(0) ? C(0) : z[i];
    if constexpr (std::is_same_v<T, C>) {
      std::copy_n(z, m, static_cast<T*>(out) + begin);
    } else {
      narrow(z, static_cast<T*>(out) + begin, m);
    }
  }
  return 0;
}

template <typename T, Product kProduct, int kCost>
absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(KernelConstruction&) {
  constexpr simd::BinaryFns kForms = {ProductLoop<T, kProduct, 1, 1>,
                                      ProductLoop<T, kProduct, 0, 1>,
                                      ProductLoop<T, kProduct, 1, 0>};
  return std::make_unique<BinaryKernel>(kForms, kElementType<T>, kElementType<T>, kCost,
                                        BinaryError::kNone, /*unequal_shapes=*/-1);
}

constexpr int kTranscendentalCost = 10;

// The real ones of these are in elementwise_kernels.cc.
template <auto kFunction>
bool RegisterComplex(const char* op) {
  return RegisterUnaryMaps<kFunction, kTranscendentalCost, complex64, complex128>(op);
}
template <Product kProduct, int kCost, typename... Types>
bool RegisterProducts(const char* op) {
  (KernelRegistry::Global()->Register(KernelSpec(op).Types("T", {kElementType<Types>}),
                                      MakeProduct<Types, kProduct, kCost>),
   ...);
  return true;
}
template <Product kProduct, int kCost>
bool RegisterProduct(const char* op) {
  return RegisterProducts<kProduct, kCost, float, double, half, bfloat16, complex64, complex128>(
      op);
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterComplex<kAcos>("Acos"),
    RegisterComplex<kAcosh>("Acosh"),
    RegisterComplex<kAsin>("Asin"),
    RegisterComplex<kAsinh>("Asinh"),
    RegisterComplex<kAtan>("Atan"),
    RegisterComplex<kAtanh>("Atanh"),
    RegisterComplex<kCosh>("Cosh"),
    RegisterComplex<kSinh>("Sinh"),
    RegisterProduct<Product::kMulNoNan, 1>("MulNoNan"),
    RegisterProduct<Product::kXdivy, 1>("Xdivy"),
    RegisterProduct<Product::kXlogy, 3>("Xlogy"),
    RegisterProduct<Product::kXlog1py, 3>("Xlog1py"),
    RegisterBinaryMaps<kNextAfter, 3, float, double>("NextAfter"),
};

}  // namespace
}  // namespace troupe

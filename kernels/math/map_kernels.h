/// Element-wise kernels that are made of a function of one or two numbers, for functions without
/// code of their own per instruction set.
#ifndef TROUPE_KERNELS_MATH_MAP_KERNELS_H_
#define TROUPE_KERNELS_MATH_MAP_KERNELS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "devices/half.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/elementwise.h"

namespace troupe {

/// What functions of T compute with: float for half and bfloat16.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

template <typename T, typename R, auto kFunction>
void UnaryMapLoop(const void* in, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in);
  R* y = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<R>(kFunction(static_cast<ComputeType<T>>(x[i])));
  }
}

template <typename T, typename R, auto kFunction, int kStepA, int kStepB>
uint32_t BinaryMapLoop(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) {
    z[i] = static_cast<R>(kFunction(static_cast<ComputeType<T>>(x[i * kStepA]),
                                    static_cast<ComputeType<T>>(y[i * kStepB])));
  }
  return 0;
}

/// A factory for kernels that give R(kFunction(x)) for each x of type T. A call of the function
/// costs about `kCost` nanoseconds.
template <typename T, typename R, auto kFunction, int kCost>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnaryMap(KernelConstruction&) {
  return std::make_unique<UnaryKernel>(UnaryMapLoop<T, R, kFunction>, kElementType<R>, kCost);
}

/// The same for R(kFunction(x, y)); the operands are broadcast.
template <typename T, typename R, auto kFunction, int kCost>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBinaryMap(KernelConstruction&) {
  constexpr simd::BinaryFns kForms = {BinaryMapLoop<T, R, kFunction, 1, 1>,
                                      BinaryMapLoop<T, R, kFunction, 0, 1>,
                                      BinaryMapLoop<T, R, kFunction, 1, 0>};
  return std::make_unique<BinaryKernel>(kForms, kElementType<T>, kElementType<R>, kCost,
                                        BinaryError::kNone, /*unequal_shapes=*/-1);
}

/// Registers the kernels of `op` for each of the types, which is also that of the results.
template <auto kFunction, int kCost, typename... Types>
bool RegisterUnaryMaps(const char* op) {
  (KernelRegistry::Global()->Register(KernelSpec(op).Types("T", {kElementType<Types>}),
                                      MakeUnaryMap<Types, Types, kFunction, kCost>),
   ...);
  return true;
}
template <auto kFunction, int kCost, typename... Types>
bool RegisterBinaryMaps(const char* op) {
  (KernelRegistry::Global()->Register(KernelSpec(op).Types("T", {kElementType<Types>}),
                                      MakeBinaryMap<Types, Types, kFunction, kCost>),
   ...);
  return true;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_MATH_MAP_KERNELS_H_

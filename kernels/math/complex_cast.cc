#include "kernels/kernel.h"
#include "kernels/math/cast.h"
#include "kernels/math/cast_loop.h"
#include "kernels/type_switch.h"

namespace troupe::internal {
namespace {

template <typename F>
absl::Status ForEveryType(ElementType type, F&& f) {
  return SwitchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                    uint16_t, uint32_t, uint64_t, bool, complex64, complex128>(type, f);
}

template <typename C>
simd::UnaryFn ToComplex(ElementType from) {
  simd::UnaryFn fn = nullptr;
  ForEveryType(from, [&]<typename T>() {
    fn = CastLoop<T, C>;
    return absl::OkStatus();
  }).IgnoreError();
  return fn;
}

template <typename C>
simd::UnaryFn FromComplex(ElementType to) {
  simd::UnaryFn fn = nullptr;
  ForEveryType(to, [&]<typename T>() {
    fn = CastLoop<C, T>;
    return absl::OkStatus();
  }).IgnoreError();
  return fn;
}

}  // namespace

simd::UnaryFn ComplexCast(ElementType from, ElementType to) {
  if (to == ElementType::kComplex64) return ToComplex<complex64>(from);
  if (to == ElementType::kComplex128) return ToComplex<complex128>(from);
  if (from == ElementType::kComplex64) return FromComplex<complex64>(to);
  return FromComplex<complex128>(to);
}

}  // namespace troupe::internal

#include "kernels/common/switch_number.h"
#include "kernels/kernel.h"
#include "kernels/math/cast.h"
#include "kernels/math/cast_loop.h"

namespace troupe::internal {
namespace {

template <typename C>
simd::UnaryFn Find(ElementType other, bool to_complex) {
  simd::UnaryFn fn = nullptr;
  SwitchNumber<bool>(other, [&]<typename T>() {
    fn = to_complex ? CastLoop<T, C> : CastLoop<C, T>;
    return absl::OkStatus();
  }).IgnoreError();
  return fn;
}

}  // namespace

simd::UnaryFn ComplexCast(ElementType from, ElementType to) {
  if (to == ElementType::kComplex64) return Find<complex64>(from, true);
  if (to == ElementType::kComplex128) return Find<complex128>(from, true);
  if (from == ElementType::kComplex64) return Find<complex64>(to, false);
  return Find<complex128>(to, false);
}

}  // namespace troupe::internal

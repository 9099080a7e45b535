#include "kernels/reduce/segment_rule.h"

#include <complex>
#include <limits>
#include <type_traits>

#include "devices/status_macros.h"
#include "kernels/common/switch_number.h"
#include "kernels/math/loops.h"

namespace troupe {
namespace {

/// The largest finite number.
template <typename T>
T Largest() {
  if constexpr (std::is_same_v<T, half>) return half(65504.0f);
  if constexpr (std::is_same_v<T, bfloat16>) return bfloat16(0x1.FEp127f);
  return std::numeric_limits<T>::max();
}
template <typename T>
T Smallest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  return T(-Largest<T>());
}

}  // namespace

absl::StatusOr<simd::BinaryFn> FindSegmentJoin(SegmentRule rule, ElementType type) {
  static constexpr simd::BinaryOp kOps[] = {
      // In the order of `SegmentRule`.
      simd::kAdd, simd::kAdd, simd::kMul, simd::kMinimum, simd::kMaximum};
  const simd::BinaryFn join = FindBinary(kOps[static_cast<int>(rule)], type).aa;
  if (join != nullptr) return join;
  return absl::UnimplementedError(
      StrCat("segments of ", ElementTypeName(type), " cannot be reduced like this"));
}

absl::StatusOr<Tensor> SegmentIdentity(SegmentRule rule, ElementType type) {
  Tensor identity = Tensor::Uninitialized(type, Shape());
  TROUPE_RETURN_IF_ERROR(SwitchNumber(type, [&]<typename T>() {
    T& value = *identity.mutable_data<T>();
    value = T(rule == SegmentRule::kProd ? 1.0f : 0.0f);
    if constexpr (!std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>) {
      if (rule == SegmentRule::kMin) value = Largest<T>();
      if (rule == SegmentRule::kMax) value = Smallest<T>();
    }
    return absl::OkStatus();
  }));
  return identity;
}

}  // namespace troupe

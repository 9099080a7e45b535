/// SwitchType for the usual lists of element types.
#ifndef TROUPE_KERNELS_COMMON_SWITCH_NUMBER_H_
#define TROUPE_KERNELS_COMMON_SWITCH_NUMBER_H_

#include <utility>

#include "kernels/type_switch.h"  // IWYU pragma: export

namespace troupe {

/// For `RealNumberTypes()` and `More`.
template <typename... More, typename F>
absl::Status SwitchReal(ElementType type, F&& f) {
  return SwitchType<float, double, half, bfloat16, int32_t, int64_t, int8_t, int16_t, uint8_t,
                    uint16_t, uint32_t, uint64_t, More...>(type, std::forward<F>(f));
}

/// For `NumberTypes()` and `More`.
template <typename... More, typename F>
absl::Status SwitchNumber(ElementType type, F&& f) {
  return SwitchReal<complex64, complex128, More...>(type, std::forward<F>(f));
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_SWITCH_NUMBER_H_

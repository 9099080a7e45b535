/// The types of values that the command line reads and prints.
#ifndef TROUPE_API_CLI_VALUE_TYPES_H_
#define TROUPE_API_CLI_VALUE_TYPES_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "devices/half.h"
#include "devices/narrow_types.h"
#include "devices/quantized.h"
#include "kernels/type_switch.h"

namespace troupe::cli {

/// Calls `f.template operator()<T>()` for the type; Unimplemented for resources and variants.
template <typename F>
absl::Status SwitchValueType(ElementType type, F&& f) {
  return SwitchType<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                    uint64_t, half, bfloat16, complex64, complex128, bool, std::string, qint8,
                    qint16, qint32, quint8, quint16, float8_e5m2, float8_e4m3fn, int4, uint4>(
      type, std::forward<F>(f));
}

}  // namespace troupe::cli

#endif  // TROUPE_API_CLI_VALUE_TYPES_H_

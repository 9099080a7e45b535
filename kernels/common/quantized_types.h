/// Quantized types in the lists of registrations, and their C++ types.
#ifndef TROUPE_KERNELS_COMMON_QUANTIZED_TYPES_H_
#define TROUPE_KERNELS_COMMON_QUANTIZED_TYPES_H_

#include <iterator>
#include <utility>
#include <vector>

#include "devices/quantized.h"
#include "kernels/type_switch.h"

namespace troupe {

inline std::vector<ElementType> QuantizedTypes() {
  return {std::begin(kQuantizedTypes), std::end(kQuantizedTypes)};
}
inline std::vector<ElementType> WithQuantized(std::vector<ElementType> types) {
  types.insert(types.end(), std::begin(kQuantizedTypes), std::end(kQuantizedTypes));
  return types;
}

/// SwitchType for all quantized types.
template <typename F>
absl::Status SwitchQuantized(ElementType type, F&& f) {
  return SwitchType<qint8, qint16, qint32, quint8, quint16>(type, std::forward<F>(f));
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_QUANTIZED_TYPES_H_

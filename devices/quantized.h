/// The C++ types of quantized elements: integers that stand for real numbers.
///
/// Which numbers, a pair of floats beside the tensor says, the range: what the smallest and the
/// largest integer stand for. An integer of its own type is not taken for one by mistake, and no
/// arithmetic is defined on it.
#ifndef TROUPE_DEVICES_QUANTIZED_H_
#define TROUPE_DEVICES_QUANTIZED_H_

#include <cstdint>

#include "devices/element_type.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// An element of a quantized type: `Int` and nothing else, in memory too.
template <typename Int>
struct Quantized {
  using Storage = Int;

  Quantized() = default;
  constexpr explicit Quantized(Int v) : value(v) {}
  friend bool operator==(Quantized a, Quantized b) = default;

  Int value;
};

using qint8 = Quantized<int8_t>;
using qint16 = Quantized<int16_t>;
using qint32 = Quantized<int32_t>;
using quint8 = Quantized<uint8_t>;
using quint16 = Quantized<uint16_t>;

#define TROUPE_QUANTIZED_TYPE(CPP, ENUM)                    \
  template <>                                               \
  struct ElementTypeOf<CPP> {                               \
    static constexpr ElementType value = ElementType::ENUM; \
  };
TROUPE_QUANTIZED_TYPE(qint8, kQint8)
TROUPE_QUANTIZED_TYPE(qint16, kQint16)
TROUPE_QUANTIZED_TYPE(qint32, kQint32)
TROUPE_QUANTIZED_TYPE(quint8, kQuint8)
TROUPE_QUANTIZED_TYPE(quint16, kQuint16)
#undef TROUPE_QUANTIZED_TYPE

static_assert(sizeof(qint8) == 1 && sizeof(quint16) == 2 && sizeof(qint32) == 4);

inline constexpr ElementType kQuantizedTypes[] = {ElementType::kQint8, ElementType::kQint16,
                                                  ElementType::kQint32, ElementType::kQuint8,
                                                  ElementType::kQuint16};

/// The integers of a quantized type; any other type is its own.
constexpr ElementType StorageType(ElementType type) {
  switch (type) {
    case ElementType::kQint8:
      return ElementType::kInt8;
    case ElementType::kQint16:
      return ElementType::kInt16;
    case ElementType::kQint32:
      return ElementType::kInt32;
    case ElementType::kQuint8:
      return ElementType::kUint8;
    case ElementType::kQuint16:
      return ElementType::kUint16;
    default:
      return type;
  }
}

constexpr bool IsQuantized(ElementType type) { return StorageType(type) != type; }

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_QUANTIZED_H_

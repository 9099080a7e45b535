/// Element types of tensors: the enumeration, its C++ types and their properties.
///
/// Numbers and names are those of TensorFlow's `DataType`, so that a value can be written to and
/// read from a graph file as it is. Everything here is immutable and thread-safe.
#ifndef TROUPE_DEVICES_ELEMENT_TYPE_H_
#define TROUPE_DEVICES_ELEMENT_TYPE_H_

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "devices/export.h"
#include "devices/half.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class ResourceHandle;
class Variant;

/// The type of a tensor's elements. Those after kFloat8E4m3fn, but for kInt4 and kUint4, can be
/// named in op definitions and imported, but hold no tensors. Add `kRefOffset` for a reference
/// type. More C++ types are in `devices/quantized.h` and `devices/narrow_types.h`.
enum class ElementType : uint8_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5m2 = 24,
  kFloat8E4m3fn = 25,
  kFloat8E4m3fnuz = 26,
  kFloat8E4m3b11fnuz = 27,
  kFloat8E5m2fnuz = 28,
  kInt4 = 29,
  kUint4 = 30,
  kInt2 = 31,
  kUint2 = 32,
  kFloat4E2m1fn = 33,
};

/// Distance between a type and its reference type, as in `DT_FLOAT_REF = DT_FLOAT + 100`.
inline constexpr int kRefOffset = 100;

constexpr bool IsRefType(ElementType type) { return static_cast<int>(type) > kRefOffset; }
constexpr ElementType MakeRefType(ElementType type) {
  return IsRefType(type) ? type : static_cast<ElementType>(static_cast<int>(type) + kRefOffset);
}
constexpr ElementType RemoveRef(ElementType type) {
  return IsRefType(type) ? static_cast<ElementType>(static_cast<int>(type) - kRefOffset) : type;
}

/// Bytes that one element takes in a tensor's buffer (for strings, resources and variants the size
/// of the C++ object); 0 for types that hold no tensors.
size_t ElementSize(ElementType type);

/// "float", "int32", "string", "float_ref": TensorFlow's lower-case names.
std::string ElementTypeName(ElementType type);

/// Accepts "float", "DT_FLOAT", "float32", "int32_ref". False if there is no such type.
bool ParseElementType(std::string_view name, ElementType* type);

/// True for types whose elements are plain bytes (all but string, resource and variant).
constexpr bool IsPlain(ElementType type) {
  return type != ElementType::kString && type != ElementType::kResource &&
         type != ElementType::kVariant;
}
constexpr bool IsFloating(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kDouble ||
         type == ElementType::kHalf || type == ElementType::kBfloat16;
}
constexpr bool IsComplex(ElementType type) {
  return type == ElementType::kComplex64 || type == ElementType::kComplex128;
}
bool IsInteger(ElementType type);  ///< Signed and unsigned, quantized types excluded.

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

/// `ElementTypeOf<float>::value == ElementType::kFloat`, for every C++ type that tensors hold.
template <typename T>
struct ElementTypeOf;

#define TROUPE_ELEMENT_TYPE(CPP, ENUM)                      \
  template <>                                               \
  struct ElementTypeOf<CPP> {                               \
    static constexpr ElementType value = ElementType::ENUM; \
  };
TROUPE_ELEMENT_TYPE(float, kFloat)
TROUPE_ELEMENT_TYPE(double, kDouble)
TROUPE_ELEMENT_TYPE(int8_t, kInt8)
TROUPE_ELEMENT_TYPE(int16_t, kInt16)
TROUPE_ELEMENT_TYPE(int32_t, kInt32)
TROUPE_ELEMENT_TYPE(int64_t, kInt64)
TROUPE_ELEMENT_TYPE(uint8_t, kUint8)
TROUPE_ELEMENT_TYPE(uint16_t, kUint16)
TROUPE_ELEMENT_TYPE(uint32_t, kUint32)
TROUPE_ELEMENT_TYPE(uint64_t, kUint64)
TROUPE_ELEMENT_TYPE(half, kHalf)
TROUPE_ELEMENT_TYPE(bfloat16, kBfloat16)
TROUPE_ELEMENT_TYPE(complex64, kComplex64)
TROUPE_ELEMENT_TYPE(complex128, kComplex128)
TROUPE_ELEMENT_TYPE(bool, kBool)
TROUPE_ELEMENT_TYPE(std::string, kString)
TROUPE_ELEMENT_TYPE(ResourceHandle, kResource)
TROUPE_ELEMENT_TYPE(Variant, kVariant)
#undef TROUPE_ELEMENT_TYPE

template <typename T>
inline constexpr ElementType kElementType = ElementTypeOf<std::remove_cv_t<T>>::value;

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_ELEMENT_TYPE_H_

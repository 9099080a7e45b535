#include "devices/element_type.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "devices/match_type.h"
#include "devices/narrow_types.h"
#include "devices/quantized.h"
#include "devices/resource_handle.h"

namespace troupe {
namespace {

struct TypeInfo {
  const char* name;
  const char* proto_name;
  uint8_t size;
};

constexpr TypeInfo kTypes[] = {
    {"INVALID", "DT_INVALID", 0},
    {"float", "DT_FLOAT", sizeof(float)},
    {"double", "DT_DOUBLE", sizeof(double)},
    {"int32", "DT_INT32", sizeof(int32_t)},
    {"uint8", "DT_UINT8", sizeof(uint8_t)},
    {"int16", "DT_INT16", sizeof(int16_t)},
    {"int8", "DT_INT8", sizeof(int8_t)},
    {"string", "DT_STRING", sizeof(std::string)},
    {"complex64", "DT_COMPLEX64", sizeof(complex64)},
    {"int64", "DT_INT64", sizeof(int64_t)},
    {"bool", "DT_BOOL", sizeof(bool)},
    {"qint8", "DT_QINT8", sizeof(qint8)},
    {"quint8", "DT_QUINT8", sizeof(quint8)},
    {"qint32", "DT_QINT32", sizeof(qint32)},
    {"bfloat16", "DT_BFLOAT16", sizeof(bfloat16)},
    {"qint16", "DT_QINT16", sizeof(qint16)},
    {"quint16", "DT_QUINT16", sizeof(quint16)},
    {"uint16", "DT_UINT16", sizeof(uint16_t)},
    {"complex128", "DT_COMPLEX128", sizeof(complex128)},
    {"half", "DT_HALF", sizeof(half)},
    {"resource", "DT_RESOURCE", sizeof(ResourceHandle)},
    {"variant", "DT_VARIANT", sizeof(Variant)},
    {"uint32", "DT_UINT32", sizeof(uint32_t)},
    {"uint64", "DT_UINT64", sizeof(uint64_t)},
    {"float8_e5m2", "DT_FLOAT8_E5M2", sizeof(float8_e5m2)},
    {"float8_e4m3fn", "DT_FLOAT8_E4M3FN", sizeof(float8_e4m3fn)},
    {"float8_e4m3fnuz", "DT_FLOAT8_E4M3FNUZ", 0},
    {"float8_e4m3b11fnuz", "DT_FLOAT8_E4M3B11FNUZ", 0},
    {"float8_e5m2fnuz", "DT_FLOAT8_E5M2FNUZ", 0},
    {"int4", "DT_INT4", sizeof(int4)},
    {"uint4", "DT_UINT4", sizeof(uint4)},
    {"int2", "DT_INT2", 0},
    {"uint2", "DT_UINT2", 0},
    {"float4_e2m1fn", "DT_FLOAT4_E2M1FN", 0},
};

}  // namespace

size_t ElementSize(ElementType type) {
  const size_t index = static_cast<size_t>(type);
  return index < std::size(kTypes) ? kTypes[index].size : 0;
}

std::string ElementTypeName(ElementType type) {
  const size_t index = static_cast<size_t>(RemoveRef(type));
  if (index >= std::size(kTypes)) return absl::StrCat("unknown type ", static_cast<int>(type));
  return absl::StrCat(kTypes[index].name, IsRefType(type) ? "_ref" : "");
}

bool ParseElementType(std::string_view name, ElementType* type) {
  bool ref = false;
  for (std::string_view suffix : {"_ref", "_REF"}) {
    if (name.ends_with(suffix)) {
      ref = true;
      name.remove_suffix(suffix.size());
      break;
    }
  }
  if (name == "float32") name = "float";
  if (name == "float64") name = "double";
  if (name == "float16") name = "half";
  for (size_t i = 1; i < std::size(kTypes); ++i) {
    if (name != kTypes[i].name && name != kTypes[i].proto_name) continue;
    *type = static_cast<ElementType>(i);
    if (ref) *type = MakeRefType(*type);
    return true;
  }
  return false;
}

bool IsInteger(ElementType type) {
  return MatchType<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      type, false, []<typename T>() { return true; });
}

}  // namespace troupe

/// From an element type known at run time to a C++ type.
#ifndef TROUPE_KERNELS_TYPE_SWITCH_H_
#define TROUPE_KERNELS_TYPE_SWITCH_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "devices/element_type.h"
#include "devices/export.h"
#include "devices/resource_handle.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Calls `f.template operator()<T>()` for the first T of `Types` that is `type`:
///
///     return SwitchType<float, double>(type, [&]<typename T>() -> absl::Status { ... });
///
/// Unimplemented if there is none.
template <typename... Types, typename F>
absl::Status SwitchType(ElementType type, F&& f) {
  absl::Status result;
  const bool found =
      ((type == kElementType<Types> ? (result = f.template operator()<Types>(), true) : false) ||
       ...);
  if (!found) {
    return absl::UnimplementedError(
        absl::StrCat("no implementation for element type ", ElementTypeName(type)));
  }
  return result;
}

/// For kernels that only move elements: an unsigned integer of the element's size stands for all
/// plain types of that size (complex128 by a struct of 16 bytes), so that code is compiled once per
/// size.
struct Bytes16 {
  uint64_t low, high;
};
template <typename F>
absl::Status SwitchBySize(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kString:
      return f.template operator()<std::string>();
    case ElementType::kResource:
      return f.template operator()<ResourceHandle>();
    case ElementType::kVariant:
      return f.template operator()<Variant>();
    default:
      break;
  }
  switch (ElementSize(type)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bytes16>();
  }
  return absl::UnimplementedError(
      absl::StrCat("no implementation for element type ", ElementTypeName(type)));
}

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_TYPE_SWITCH_H_

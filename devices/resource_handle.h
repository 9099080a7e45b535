/// Elements of tensors of types resource and variant.
#ifndef TROUPE_DEVICES_RESOURCE_HANDLE_H_
#define TROUPE_DEVICES_RESOURCE_HANDLE_H_

#include <any>
#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "devices/element_type.h"
#include "devices/export.h"
#include "devices/ref_counted.h"
#include "devices/shape.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Something stateful that handles refer to: a variable, a queue, a table.
class Resource : public RefCounted {
 public:
  /// "Variable[float,[2,3]]": what it is, for messages.
  virtual std::string DebugString() const = 0;
};

/// What an op that makes a resource puts out, and ops that use it take: an address, and in the
/// process that owns the resource the resource itself, so that no look-up is needed. A value.
class ResourceHandle {
 public:
  std::string device;     ///< Complete name of the owner.
  std::string container;  ///< Name of the container, "" is the default one.
  std::string name;       ///< Name within the container.
  std::string type_name;  ///< "Variable", "FIFOQueue", ...
  uint64_t hash_code = 0;
  std::vector<std::pair<ElementType, PartialShape>> types_and_shapes;
  RefPtr<Resource> resource;  ///< Null in other processes.
};

/// A value of any copyable type, for tensor lists and optionals. A copy copies the value, so hold
/// large things by shared pointer.
class Variant {
 public:
  Variant() = default;
  template <typename T>
  requires(!std::is_same_v<std::decay_t<T>, Variant>) explicit Variant(T&& value)
      : value_(std::forward<T>(value)) {}
  /// nullptr if empty or of another type.
  template <typename T>
  const T* get() const {
    return std::any_cast<T>(&value_);
  }
  template <typename T>
  T* get() {
    return std::any_cast<T>(&value_);
  }
  bool empty() const { return !value_.has_value(); }
  const std::type_info& type() const { return value_.type(); }

 private:
  std::any value_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_RESOURCE_HANDLE_H_

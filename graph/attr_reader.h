/// Typed access to the attributes of a node.
#ifndef TROUPE_GRAPH_ATTR_READER_H_
#define TROUPE_GRAPH_ATTR_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/element_type.h"
#include "devices/export.h"
#include "devices/shape.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class AttrValue;
class NameAttrList;
class NodeDef;

/// Reads the attributes of one NodeDef, which must outlive it. Every `Get` gives NotFound if there
/// is no such attribute and InvalidArgument if it is of another kind; both name node and attribute.
/// Thread-compatible.
class AttrReader {
 public:
  explicit AttrReader(const NodeDef* def) : def_(def) {}

  const NodeDef& def() const { return *def_; }
  /// nullptr if there is none.
  const AttrValue* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }

  absl::Status Get(std::string_view name, std::string* value) const;
  absl::Status Get(std::string_view name, int64_t* value) const;
  absl::Status Get(std::string_view name, int32_t* value) const;  ///< InvalidArgument past 32 bits.
  absl::Status Get(std::string_view name, float* value) const;
  absl::Status Get(std::string_view name, bool* value) const;
  absl::Status Get(std::string_view name, ElementType* value) const;
  absl::Status Get(std::string_view name, PartialShape* value) const;
  absl::Status Get(std::string_view name, Tensor* value) const;
  absl::Status Get(std::string_view name, const NameAttrList** value) const;
  absl::Status Get(std::string_view name, std::vector<std::string>* value) const;
  absl::Status Get(std::string_view name, std::vector<int64_t>* value) const;
  absl::Status Get(std::string_view name, std::vector<int32_t>* value) const;
  absl::Status Get(std::string_view name, std::vector<float>* value) const;
  absl::Status Get(std::string_view name, std::vector<bool>* value) const;
  absl::Status Get(std::string_view name, std::vector<ElementType>* value) const;
  absl::Status Get(std::string_view name, std::vector<PartialShape>* value) const;

  template <typename T>
  absl::StatusOr<T> Get(std::string_view name) const {
    T value{};
    absl::Status status = Get(name, &value);
    if (!status.ok()) return status;
    return value;
  }
  /// `fallback` if the attribute is absent or of another kind.
  template <typename T>
  T GetOr(std::string_view name, T fallback) const {
    T value{};
    return Get(name, &value).ok() ? value : fallback;
  }

 private:
  const NodeDef* def_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_ATTR_READER_H_

/// The parts of a serialized `Example` or `SequenceExample` (graph/protos/example.proto), found
/// where they lie. Bytes are a stranger's: nothing is allocated here. Thread-safe.
#ifndef TROUPE_KERNELS_IO_EXAMPLE_BYTES_H_
#define TROUPE_KERNELS_IO_EXAMPLE_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "devices/element_type.h"
#include "kernels/io/field_reader.h"

namespace troupe {

/// Field of both messages that holds features by name, and of the second one that holds lists.
inline constexpr uint32_t kFeaturesField = 1, kFeatureListsField = 2;

/// The values of a `Feature`.
struct FeatureBytes {
  /// kString, kFloat or kInt64; kInvalid: it has no values of any kind, not even none.
  ElementType type = ElementType::kInvalid;
  /// The feature's fields from the first that holds values of that kind on.
  std::string_view fields;
};

/// False if the bytes are no `Feature`. Of several kinds the last one counts.
bool FindValues(std::string_view feature, FeatureBytes* values);

/// How many values there are, packed or not; -1 if the bytes are wrong.
int64_t CountValues(const FeatureBytes& values);

/// Copies the first `room` values, which are of type T (std::string, float, int64_t). How many
/// there are; -1 if the bytes are wrong.
template <typename T>
int64_t CopyValues(const FeatureBytes& values, T* to, int64_t room);

/// The key and the value of a map's entry; empty where they are absent.
bool ReadMapEntry(std::string_view entry, std::string_view* key, std::string_view* value);

/// Calls `visit(key, value)` for each entry of the map in `field` of `message`, in their order: the
/// last one of a key counts. False if the bytes are wrong or `visit` says so.
template <typename Visit>
bool ForEachMapEntry(std::string_view message, uint32_t field, Visit visit) {
  for (FieldReader outer(message); !outer.done();) {
    uint32_t tag = 0;
    if (!outer.ReadTag(&tag)) return false;
    if (tag != BytesTag(field)) {
      if (!outer.Skip(tag)) return false;
      continue;
    }
    std::string_view map;
    if (!outer.ReadBytes(&map)) return false;
    for (FieldReader inner(map); !inner.done();) {
      if (!inner.ReadTag(&tag)) return false;
      if (tag != BytesTag(1)) {
        if (!inner.Skip(tag)) return false;
        continue;
      }
      std::string_view entry, key, value;
      if (!inner.ReadBytes(&entry) || !ReadMapEntry(entry, &key, &value)) return false;
      if (!visit(key, value)) return false;
    }
  }
  return true;
}

/// Calls `visit(feature)` for each feature of a `FeatureList`, in their order. False as above.
template <typename Visit>
bool ForEachFeature(std::string_view list, Visit visit) {
  for (FieldReader reader(list); !reader.done();) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return false;
    if (tag != BytesTag(1)) {
      if (!reader.Skip(tag)) return false;
      continue;
    }
    std::string_view feature;
    if (!reader.ReadBytes(&feature) || !visit(feature)) return false;
  }
  return true;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_EXAMPLE_BYTES_H_

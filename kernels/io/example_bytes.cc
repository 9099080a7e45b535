#include "kernels/io/example_bytes.h"

#include <algorithm>

namespace troupe {
namespace {

/// The kind of values in a field of a `Feature`; kInvalid for fields that nobody knows.
ElementType TypeOfField(uint32_t tag) {
  switch (tag) {
    case BytesTag(1):
      return ElementType::kString;
    case BytesTag(2):
      return ElementType::kFloat;
    case BytesTag(3):
      return ElementType::kInt64;
    default:
      return ElementType::kInvalid;
  }
}

/// Calls `visit(list)` for each `BytesList`, `FloatList` or `Int64List`: usually for one.
template <typename Visit>
bool ForEachList(const FeatureBytes& values, Visit visit) {
  for (FieldReader reader(values.fields); !reader.done();) {
    uint32_t tag = 0;
    std::string_view list;
    if (!reader.ReadTag(&tag)) return false;
    if (TypeOfField(tag) != values.type) {
      if (!reader.Skip(tag)) return false;
      continue;
    }
    if (!reader.ReadBytes(&list) || !visit(list)) return false;
  }
  return true;
}

/// Calls `value(reader)` for each field that holds one value, and `packed(bytes)` for those that
/// hold several.
template <typename Value, typename Packed>
bool ForEachField(std::string_view list, uint32_t value_tag, Value value, Packed packed) {
  for (FieldReader reader(list); !reader.done();) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return false;
    if (tag == value_tag) {
      if (!value(&reader)) return false;
    } else if (tag == BytesTag(1)) {
      std::string_view bytes;
      if (!reader.ReadBytes(&bytes) || !packed(bytes)) return false;
    } else if (!reader.Skip(tag)) {
      return false;
    }
  }
  return true;
}

/// Varints in a packed field: as many as bytes that end one.
int64_t CountVarints(std::string_view bytes) {
  int64_t count = 0;
  for (const char byte : bytes) count += static_cast<uint8_t>(byte) < 0x80;
  return count;
}

bool Copy(std::string_view list, std::string* to, int64_t room, int64_t* count) {
  for (FieldReader reader(list); !reader.done();) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return false;
    if (tag != BytesTag(1)) {
      if (!reader.Skip(tag)) return false;
      continue;
    }
    std::string_view bytes;
    if (!reader.ReadBytes(&bytes)) return false;
    if (*count < room) to[*count].assign(bytes);
    ++*count;
  }
  return true;
}

bool Copy(std::string_view list, float* to, int64_t room, int64_t* count) {
  return ForEachField(
      list, Fixed32Tag(1),
      [&](FieldReader* reader) {
        float value = 0;
        if (!reader->ReadFixed(&value)) return false;
        if (*count < room) to[*count] = value;
        ++*count;
        return true;
      },
      [&](std::string_view bytes) {
        if (bytes.size() % sizeof(float) != 0) return false;
        const auto values = static_cast<int64_t>(bytes.size() / sizeof(float));
        const int64_t taken = std::clamp<int64_t>(room - *count, 0, values);
        if (taken > 0) std::memcpy(to + *count, bytes.data(), taken * sizeof(float));
        *count += values;
        return true;
      });
}

bool Copy(std::string_view list, int64_t* to, int64_t room, int64_t* count) {
  const auto one = [&](FieldReader* reader) {
    uint64_t value = 0;
    if (!reader->ReadVarint(&value)) return false;
    if (*count < room) to[*count] = static_cast<int64_t>(value);
    ++*count;
    return true;
  };
  return ForEachField(list, VarintTag(1), one, [&](std::string_view bytes) {
    for (FieldReader packed(bytes); !packed.done();) {
      if (!one(&packed)) return false;
    }
    return true;
  });
}

}  // namespace

bool FindValues(std::string_view feature, FeatureBytes* values) {
  values->type = ElementType::kInvalid;
  for (FieldReader reader(feature); !reader.done();) {
    const std::string_view here = reader.rest();
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag) || !reader.Skip(tag)) return false;
    const ElementType type = TypeOfField(tag);
    if (type == ElementType::kInvalid || type == values->type) continue;
    values->type = type;
    values->fields = here;
  }
  return true;
}

bool ReadMapEntry(std::string_view entry, std::string_view* key, std::string_view* value) {
  for (FieldReader reader(entry); !reader.done();) {
    uint32_t tag = 0;
    if (!reader.ReadTag(&tag)) return false;
    if (tag == BytesTag(1)) {
      if (!reader.ReadBytes(key)) return false;
    } else if (tag == BytesTag(2)) {
      if (!reader.ReadBytes(value)) return false;
    } else if (!reader.Skip(tag)) {
      return false;
    }
  }
  return true;
}

int64_t CountValues(const FeatureBytes& values) {
  if (values.type == ElementType::kInvalid) return 0;
  if (values.type == ElementType::kString) {
    return CopyValues<std::string>(values, nullptr, 0);
  }
  if (values.type == ElementType::kFloat) return CopyValues<float>(values, nullptr, 0);
  int64_t count = 0;
  const bool right = ForEachList(values, [&](std::string_view list) {
    return ForEachField(
        list, VarintTag(1),
        [&](FieldReader* reader) {
          uint64_t value = 0;
          ++count;
          return reader->ReadVarint(&value);
        },
        [&](std::string_view bytes) {
          count += CountVarints(bytes);
          return bytes.empty() || static_cast<uint8_t>(bytes.back()) < 0x80;
        });
  });
  return right ? count : -1;
}

template <typename T>
int64_t CopyValues(const FeatureBytes& values, T* to, int64_t room) {
  if (values.type == ElementType::kInvalid) return 0;
  int64_t count = 0;
  const bool right =
      ForEachList(values, [&](std::string_view list) { return Copy(list, to, room, &count); });
  return right ? count : -1;
}
template int64_t CopyValues(const FeatureBytes& values, std::string* to, int64_t room);
template int64_t CopyValues(const FeatureBytes& values, float* to, int64_t room);
template int64_t CopyValues(const FeatureBytes& values, int64_t* to, int64_t room);

}  // namespace troupe

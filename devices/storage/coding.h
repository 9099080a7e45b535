/// Numbers in files: little-endian ones of fixed width, and varints (7 bits a byte, the lowest
/// first, the top bit says that more follow; protobuf's and leveldb's). Thread-safe.
#ifndef TROUPE_DEVICES_STORAGE_CODING_H_
#define TROUPE_DEVICES_STORAGE_CODING_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace troupe {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian; a big-endian machine would have to swap");

template <typename T>
void AppendFixed(T value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// The number that begins at `bytes`, which has sizeof(T) of them.
template <typename T>
T DecodeFixed(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

/// Takes a varint from the front. False if it is cut off or exceeds 64 bits.
inline bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < 10 && i < bytes->size(); ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    if (i == 9 && byte > 1) return false;
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_CODING_H_

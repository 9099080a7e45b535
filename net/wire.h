/// Reading and writing the fields of messages: little-endian, lengths checked.
#ifndef TROUPE_NET_WIRE_H_
#define TROUPE_NET_WIRE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace troupe {

static_assert(std::endian::native == std::endian::little,
              "tensors travel as little-endian bytes; a big-endian machine would have to swap");

/// Appends fields to a string. Thread-compatible.
class WireWriter {
 public:
  explicit WireWriter(std::string* out) : out_(out) {}

  template <typename T>
  void Number(T value) {
    out_->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  /// Seven bits a byte, low ones first, the top bit set on all but the last.
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_->push_back(static_cast<char>(value | 0x80));
    out_->push_back(static_cast<char>(value));
  }
  void Raw(std::string_view bytes) { out_->append(bytes); }
  void String(std::string_view bytes) {
    Varint(bytes.size());
    Raw(bytes);
  }

 private:
  std::string* out_;
};

/// Takes fields from the front of a string. Each function returns false, and takes nothing more,
/// when the bytes end too early. Thread-compatible.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  bool Number(T* value) {
    std::string_view bytes;
    if (!Raw(sizeof(T), &bytes)) return false;
    std::memcpy(value, bytes.data(), sizeof(T));
    return true;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(bytes_.front());
      if (shift == 63 && byte > 1) return false;
      bytes_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Raw(uint64_t size, std::string_view* bytes) {
    if (size > bytes_.size()) return false;
    *bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }
  bool String(std::string* value, size_t max_size) {
    uint64_t size = 0;
    std::string_view bytes;
    if (!Varint(&size) || size > max_size || !Raw(size, &bytes)) return false;
    value->assign(bytes);
    return true;
  }
  bool done() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

}  // namespace troupe

#endif  // TROUPE_NET_WIRE_H_

/// Protobuf's wire format, read in place: nothing is copied or allocated.
#ifndef TROUPE_KERNELS_IO_FIELD_READER_H_
#define TROUPE_KERNELS_IO_FIELD_READER_H_

#include <cstdint>
#include <cstring>
#include <string_view>

#include "devices/storage/coding.h"

namespace troupe {

/// A tag is a field's number and the form of its value.
inline constexpr uint32_t VarintTag(uint32_t field) { return field << 3; }
inline constexpr uint32_t BytesTag(uint32_t field) { return field << 3 | 2; }
inline constexpr uint32_t Fixed32Tag(uint32_t field) { return field << 3 | 5; }

/// Reads the fields of one message. Every function returns false, and nothing is to be read any
/// more, if the bytes are no message. Never reads outside of them. Thread-compatible.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  /// What has not been read.
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  /// Of more than 64 bits the lower ones, as protobuf has it.
  bool ReadVarint(uint64_t* value) {
    if (at_ == end_) return false;
    uint64_t byte = static_cast<uint8_t>(*at_++);
    *value = byte & 0x7f;
    for (int shift = 7; byte >= 0x80; shift += 7) {
      if (at_ == end_ || shift > 63) return false;
      byte = static_cast<uint8_t>(*at_++);
      *value |= (byte & 0x7f) << shift;
    }
    return true;
  }
  bool ReadTag(uint32_t* tag) {
    uint64_t value = 0;
    if (!ReadVarint(&value) || value > UINT32_MAX || value < 8) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }
  bool ReadBytes(std::string_view* bytes) {
    uint64_t size = 0;
    if (!ReadVarint(&size) || size > static_cast<uint64_t>(end_ - at_)) return false;
    *bytes = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }
  template <typename T>
  bool ReadFixed(T* value) {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return false;
    *value = DecodeFixed<T>(at_);
    at_ += sizeof(T);
    return true;
  }
  /// The value after a tag that nobody knows. Groups are refused.
  bool Skip(uint32_t tag) {
    uint64_t number = 0;
    uint32_t word = 0;
    std::string_view bytes;
    switch (tag & 7) {
      case 0:
        return ReadVarint(&number);
      case 1:
        return ReadFixed(&number);
      case 2:
        return ReadBytes(&bytes);
      case 5:
        return ReadFixed(&word);
      default:
        return false;
    }
  }

 private:
  const char* at_;
  const char* const end_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_FIELD_READER_H_

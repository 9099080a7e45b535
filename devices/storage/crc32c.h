/// CRC-32C, the checksum of TensorFlow's files (RFC 3720, appendix B.4), by the processor's
/// instructions where it has them. Thread-safe.
#ifndef TROUPE_DEVICES_STORAGE_CRC32C_H_
#define TROUPE_DEVICES_STORAGE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace troupe {

/// The checksum of what had the checksum `crc`, followed by `bytes`. Of nothing it is 0.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes);

inline uint32_t Crc32c(std::string_view bytes) { return ExtendCrc32c(0, bytes); }

/// Files hold checksums in this form, so that the checksum of bytes that contain a checksum stays
/// of use (leveldb, util/crc32c.h): rotated right by 15 bits, plus a constant.
constexpr uint32_t kCrcMaskDelta = 0xa282ead8;
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + kCrcMaskDelta; }
constexpr uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - kCrcMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace troupe

#endif  // TROUPE_DEVICES_STORAGE_CRC32C_H_

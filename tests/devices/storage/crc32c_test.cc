#include "devices/storage/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Crc32c, IsThatOfTheStandard) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aa);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising.push_back(static_cast<char>(i));
    falling.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(Crc32c(rising), 0x46dd794e);
  EXPECT_EQ(Crc32c(falling), 0x113fdb5c);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283);
  EXPECT_EQ(Crc32c(""), 0u);
}

// A bit at a time.
uint32_t Slow(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, IsTheSameForAllLengthsAndPlacesAndInParts) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes.push_back(static_cast<char>(i * i >> 3));
  for (size_t begin : {0, 1, 3, 7}) {
    for (size_t size = 0; size < 300; ++size) {
      const std::string_view part = std::string_view(bytes).substr(begin, size);
      ASSERT_EQ(Crc32c(part), Slow(part)) << begin << " " << size;
    }
  }
  EXPECT_EQ(Crc32c(bytes), Slow(bytes));
  for (size_t at = 0; at <= bytes.size(); at += 97) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(bytes.substr(0, at)), bytes.substr(at)), Crc32c(bytes));
  }
}

TEST(Crc32c, IsMasked) {
  // leveldb's formula, of the checksum of "foo".
  const uint32_t crc = Crc32c("foo");
  EXPECT_EQ(MaskCrc32c(crc), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
  EXPECT_NE(MaskCrc32c(crc), crc);
  for (const uint32_t value : {0u, 1u, crc, 0xffffffffu, 0xa282ead8u}) {
    EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(value)), value);
  }
}

}  // namespace
}  // namespace troupe

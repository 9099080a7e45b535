/// Characters of UTF-8, found by their first bytes: what is no UTF-8 does no harm.
#ifndef TROUPE_KERNELS_STRINGS_UTF8_H_
#define TROUPE_KERNELS_STRINGS_UTF8_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// True for the bytes of a character after its first one.
inline bool IsTrailByte(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

inline int64_t NumCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return !IsTrailByte(byte); });
}

/// Where the character `count` characters after the one at `at` begins; the end if there are fewer.
inline size_t SkipCharacters(std::string_view text, size_t at, int64_t count) {
  for (; count > 0 && at < text.size(); --count) {
    do {
      ++at;
    } while (at < text.size() && IsTrailByte(text[at]));
  }
  return at;
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_STRINGS_UTF8_H_

#include "devices/storage/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace troupe {

uint32_t ExtendCrc32c(uint32_t crc, std::string_view bytes) {
  constexpr size_t kMaxBlock = size_t{1} << 30;  // the library takes an int
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kMaxBlock);
    // The library only reads, though it does not say so.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(n), state);
    bytes.remove_prefix(n);
  }
  return ~state;
}

}  // namespace troupe

// Tables whose checksums are right: what the input says is a block of data, then, as the index or
// as another block, the rest. The first byte chooses, the next two are the length of the first
// block.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/table_reader.h"
#include "tests/devices/storage/simulated_disk.h"

namespace {

struct Table {
  // Appends a block; the handle that points to it.
  std::string Add(const std::string& block, char compression) {
    std::string handle;
    troupe::AppendVarint(bytes.size(), &handle);
    troupe::AppendVarint(block.size(), &handle);
    const std::string content = block + compression;
    bytes += content;
    troupe::AppendFixed(troupe::MaskCrc32c(troupe::Crc32c(content)), &bytes);
    return handle;
  }

  std::string bytes;
};

// A block with one entry, "\xff", that points to another block.
std::string IndexOf(const std::string& handle) {
  std::string block("\0\1", 2);
  block += static_cast<char>(handle.size());
  block += '\xff' + handle;
  troupe::AppendFixed(uint32_t{0}, &block);
  troupe::AppendFixed(uint32_t{1}, &block);
  return block;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 3, size - 3);
  const size_t first_size = std::min<size_t>(data[1] | data[2] << 8, bytes.size());
  Table table;
  const std::string first = table.Add(bytes.substr(0, first_size), static_cast<char>(data[0] & 1));
  const std::string rest = bytes.substr(first_size);
  const std::string index =
      table.Add((data[0] & 2) != 0 ? rest : IndexOf(first), static_cast<char>(data[0] >> 2 & 1));
  std::string footer(2, '\0');
  footer += index;
  footer.resize(40);
  troupe::AppendFixed(uint64_t{0xdb4775248b80fb57}, &footer);

  troupe::SimulatedDisk disk;
  disk.Put("/d/t", table.bytes + footer);
  const auto reader = troupe::TableReader::Open(&disk, "/d/t");
  if (!reader.ok()) return 0;
  const absl::Status status = (*reader)->ForEach([&](std::string_view key, std::string_view value) {
    // Whatever is listed is found.
    const auto found = (*reader)->Get(key);
    if (!found.ok() || !found->has_value() || **found != value) std::abort();
    return absl::OkStatus();
  });
  status.IgnoreError();
  return 0;
}

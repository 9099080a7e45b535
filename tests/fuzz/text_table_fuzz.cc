// Text files of tables: whatever the bytes, an error or a table, with no more keys than lines.
#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/tables/text_table.h"
#include "tests/kernels/tables/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using troupe::ElementType;
  if (size < 4) return 0;
  // The first bytes choose types and columns.
  constexpr ElementType kKeys[] = {ElementType::kString, ElementType::kInt64, ElementType::kInt32};
  constexpr ElementType kValues[] = {ElementType::kInt64, ElementType::kString,
                                     ElementType::kFloat, ElementType::kDouble,
                                     ElementType::kInt32, ElementType::kBool};
  troupe::TableOptions table;
  table.kind = troupe::TableOptions::Kind::kImmutable;
  table.key_type = kKeys[data[0] % 3];
  table.value_type = kValues[data[0] / 3 % 6];
  troupe::TextTableOptions text;
  text.key_index = static_cast<int64_t>(data[1] % 8) - 3;
  text.value_index = static_cast<int64_t>(data[1] / 8 % 8) - 3;
  text.vocab_size = static_cast<int64_t>(data[2]) - 1;
  text.delimiter = std::string(data[3] % 3, static_cast<char>(data[3]));
  const std::string bytes(reinterpret_cast<const char*>(data) + 4, size - 4);
  const auto store = troupe::ReadTextTable(troupe::testing::BytesFile(bytes), "fuzz", table, text,
                                           [] { return false; });
  if (!store.ok()) return 0;
  const auto lines = static_cast<int64_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1;
  if ((*store)->size() > lines || (*store)->size() == 0) __builtin_trap();
  return 0;
}

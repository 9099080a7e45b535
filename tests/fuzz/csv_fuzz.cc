// Lines of CSV: whatever the bytes and the columns, an error or a value for each column.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/io/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using troupe::ElementType;
  if (size < 3) return 0;
  // The first bytes choose columns and how lines are split.
  constexpr ElementType kTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32,
                                    ElementType::kInt64, ElementType::kString};
  troupe::CsvOptions options;
  options.delimiter = static_cast<char>(data[0] % 4 == 0 ? data[1] : ',');
  options.quotes = data[0] / 4 % 2 == 0;
  if (data[0] / 8 % 2 == 0) options.missing = "NA";
  const size_t count = data[0] / 16 % 4 + 1;
  std::vector<troupe::Tensor> defaults, columns;
  for (size_t i = 0; i < count; ++i) {
    const ElementType type = kTypes[(data[2] >> i) % 5];
    columns.push_back(troupe::Tensor::Uninitialized(type, troupe::Shape({1})));
    defaults.push_back(troupe::Tensor::Uninitialized(type, troupe::Shape({0})));
    if (data[0] / 64 % 2 == 0) options.columns.push_back(static_cast<int64_t>(i) * 2);
  }
  const std::string record(reinterpret_cast<const char*>(data) + 3, size - 3);
  troupe::ParseCsv({&record, 1}, defaults, options, nullptr, absl::MakeSpan(columns)).IgnoreError();

  // Without quotes a line is its fields, put together again.
  if (options.quotes || !options.columns.empty()) return 0;
  troupe::CsvSplitter splitter(options, size);
  if (!splitter.Split(record).ok() || splitter.count() == 0) return 0;
  std::string joined(splitter.field(0));
  for (size_t i = 1; i < splitter.count(); ++i) {
    joined += options.delimiter;
    joined.append(splitter.field(i));
  }
  const auto without_ends = [](std::string_view text) {
    std::string kept;
    for (const char byte : text) {
      if (byte != '\n' && byte != '\r') kept += byte;
    }
    return kept;
  };
  if (options.delimiter != '\n' && options.delimiter != '\r' &&
      without_ends(joined) != without_ends(record)) {
    __builtin_trap();
  }
  return 0;
}

// A CSV file from outside as a dataset: the same rows and the same error however many are read at a
// time, and from a saved position on.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "api/dataset.h"
#include "tests/devices/storage/scheme_disk.h"

namespace {

using troupe::DatasetIterator;
using troupe::ElementType;
using troupe::Tensor;

constexpr const char* kFile = "csv://d/rows";

std::unique_ptr<DatasetIterator> Begin(const troupe::Dataset& dataset) {
  troupe::DatasetIteratorOptions options;
  options.threads = 1;
  return *dataset.MakeIterator(options);
}

/// Rows as text, and how they end.
std::vector<std::string> Rest(DatasetIterator& iterator, size_t most = SIZE_MAX) {
  std::vector<std::string> rows;
  troupe::Tensors element;
  while (rows.size() < most) {
    const absl::StatusOr<bool> more = iterator.Next(&element);
    if (!more.ok()) rows.push_back(std::string(more.status().message()));
    if (!more.ok() || !*more) break;
    std::string& row = rows.emplace_back();
    for (const Tensor& tensor : element) row += tensor.ToString(1) + ";";
  }
  return rows;
}

Tensor Fallback(int kind) {
  switch (kind % 5) {
    case 0:
      return Tensor::Scalar<float>(1.5f);
    case 1:
      return Tensor::Scalar<double>(2.5);
    case 2:
      return Tensor::Scalar<int32_t>(3);
    case 3:
      return Tensor::Scalar<int64_t>(4);
    default:
      return Tensor::Scalar(std::string("none"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static troupe::SchemeDisk* const disk = troupe::SchemeDisk::Register("csv");
  if (size < 3) return 0;
  // The first bytes choose columns and delimiter.
  troupe::DatasetCsvOptions options;
  const int columns = data[0] % 4 + 1;
  for (int i = 0; i < columns; ++i) {
    options.columns.push_back(Fallback(data[1] >> i));
    if ((data[0] >> (4 + i) & 1) != 0) options.required.push_back(i);
  }
  options.header = data[0] / 4 % 2 != 0;
  if (data[0] / 8 % 2 != 0) options.select = {columns - 1, 0};
  if (data[2] % 4 == 0) options.delimiter = ';';
  disk->Put(kFile, std::string(reinterpret_cast<const char*>(data) + 3, size - 3));
  const troupe::Dataset rows = troupe::Dataset::Csv({kFile, kFile}, options);
  if (!rows.status().ok()) return 0;
  const std::vector<std::string> all = Rest(*Begin(rows));

  const auto ahead = Begin(rows.Prefetch(7));
  // The error's text begins with the stages that it has come through.
  if (Rest(*ahead).size() != all.size()) std::abort();

  const size_t half = all.size() / 2;
  const auto first = Begin(rows);
  Rest(*first, half);
  const absl::StatusOr<std::string> position = first->Save();
  if (!position.ok()) std::abort();
  const auto second = Begin(rows);
  if (!second->Restore(*position).ok()) std::abort();
  if (Rest(*second) !=
      std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(half), all.end())) {
    std::abort();
  }
  return 0;
}

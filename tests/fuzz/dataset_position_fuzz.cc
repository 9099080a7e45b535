// A saved position from outside: it is refused, or leads to some elements or an error; what was
// restored can be saved and restored again, and gives the same elements.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "api/dataset.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "tests/devices/storage/scheme_disk.h"

namespace {

using troupe::Dataset;
using troupe::DatasetIterator;
using troupe::Tensor;
using troupe::Tensors;

/// Elements of a position may be anything.
absl::StatusOr<int64_t> NumberOf(const Tensors& element) {
  if (element.empty()) return absl::InvalidArgumentError("no number");
  return element[0].scalar<int64_t>();
}

absl::StatusOr<Tensors> ToVector(const Tensors& element) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t n, NumberOf(element));
  return Tensors{Tensor::Vector<int64_t>(std::vector<int64_t>(static_cast<size_t>(n & 7), n))};
}

/// All stages but those that make up for a position by as many calls (Generate), and those that ask
/// other processes.
std::vector<Dataset> Pipelines() {
  troupe::SchemeDisk* const disk = troupe::SchemeDisk::Register("position");
  const std::string lines = "position://d/lines", rows = "position://d/rows";
  disk->Put(lines, "one\ntwo\r\n\nfour");
  disk->Put(rows, "a,1\n\"b\nc\",2\n,\n");
  troupe::DatasetCsvOptions csv;
  csv.columns = {Tensor::Scalar(std::string()), Tensor::Scalar<int64_t>(0)};
  troupe::DatasetBucketOptions bucket;
  bucket.length = [](const Tensors& element) -> absl::StatusOr<int64_t> {
    return element.empty() ? 0 : element[0].num_elements();
  };
  bucket.boundaries = {3, 5};
  bucket.batch_sizes = {2};
  const Dataset numbers = Dataset::Range(0, 40);
  return {
      numbers.Shuffle({.window = 4, .seed = 5})
          .Repeat(3)
          .Interleave(
              [](const Tensors& element) -> absl::StatusOr<Dataset> {
                TROUPE_ASSIGN_OR_RETURN(const int64_t n, NumberOf(element));
                return Dataset::Range(0, n & 3).Enumerate();
              },
              {.cycle = 2, .parallel = true, .ahead = 3})
          .Map([](Tensors element) { return element; }, {.parallel = 2})
          .Filter([](const Tensors&) -> absl::StatusOr<bool> { return true; })
          .Batch(3)
          .Prefetch(2),
      numbers.Map(ToVector).Bucket(bucket),
      numbers.Skip(1).Shard(1, 2).Map(ToVector).PaddedBatch(3).Take(5),
      Dataset::Zip(
          {Dataset::TextLines({lines, lines}), numbers, numbers.Take(3).Cache().Repeat(2)}),
      Dataset::Csv({rows}, csv).Repeat(),
      Dataset::FromTensors({Tensor::Vector<float>({1, 2, 3, 4})}).Cache().Repeat(2).Enumerate(),
  };
}

std::unique_ptr<DatasetIterator> Begin(const Dataset& dataset) {
  troupe::DatasetIteratorOptions options;
  options.threads = 1;
  return *dataset.MakeIterator(options);
}

std::vector<std::string> Some(DatasetIterator& iterator) {
  std::vector<std::string> texts;
  Tensors element;
  while (texts.size() < 5) {
    const absl::StatusOr<bool> more = iterator.Next(&element);
    if (!more.ok()) texts.push_back(std::string(more.status().message()));
    if (!more.ok() || !*more) break;
    std::string& text = texts.emplace_back();
    for (const Tensor& tensor : element) text += tensor.ToString(100) + ";";
  }
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const pipelines = new std::vector<Dataset>(Pipelines());
  if (size == 0) return 0;
  // The first byte chooses the pipeline; the checksum is made right.
  const Dataset& dataset = (*pipelines)[data[0] % pipelines->size()];
  std::string position(reinterpret_cast<const char*>(data) + 1, size - 1);
  troupe::AppendFixed(troupe::MaskCrc32c(troupe::Crc32c(position)), &position);
  const auto restored = Begin(dataset);
  if (!restored->Restore(position).ok()) return 0;
  const absl::StatusOr<std::string> saved = restored->Save();
  if (!saved.ok()) return 0;
  const auto again = Begin(dataset);
  if (!again->Restore(*saved).ok()) std::abort();
  if (Some(*restored) != Some(*again)) std::abort();
  return 0;
}

// Memory of the process while many records go by.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "api/dataset.h"
#include "tests/api/dataset/dataset_test_util.h"
#include "tests/how_many.h"
#include "tests/resident_memory.h"

namespace troupe {
namespace {

using testing::Begin;
using testing::TempFolder;

/// One file again and again: TROUPE_RECORDS says how many records in all.
TEST(DatasetMemoryTest, StaysFlat) {
  constexpr int64_t kRecords = 100'000, kBatch = 1000;
  const int64_t batches = HowMany("TROUPE_RECORDS", 3'000'000, 10) / kBatch;
  const TempFolder folder;
  const std::string file =
      folder.WriteRecords("r", std::vector<std::string>(kRecords, std::string(100, 'x')));
  const auto iterator = Begin(Dataset::Records({file})
                                  .Repeat()
                                  .Shuffle({.window = 10'000, .seed = 1})
                                  .Map([](Tensors e) { return e; }, {.parallel = kAuto})
                                  .Batch(kBatch)
                                  .Prefetch());
  Tensors element;
  int64_t begin = 0, most = 0;
  for (int64_t i = 0; i < batches; ++i) {
    ASSERT_TRUE(*iterator->Next(&element));
    ASSERT_EQ(element[0].num_elements(), kBatch);
    if (i % 100 != 0) continue;
    // By a third everything has its size.
    if (i <= std::min<int64_t>(batches / 3, 1000)) begin = std::max(begin, ResidentBytes());
    most = std::max(most, ResidentBytes());
  }
  RecordProperty("resident_bytes", std::to_string(most));
  EXPECT_LE(most, begin + kKeptBytes + (int64_t{8} << 20))
      << "after " << batches * kBatch << " records";
}

}  // namespace
}  // namespace troupe

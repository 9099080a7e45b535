#include <snappy.h>

#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "devices/storage/table_reader.h"
#include "devices/storage/table_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Entries = std::map<std::string, std::string>;

// What is in a table; the first error.
absl::StatusOr<Entries> ReadAll(const std::string& bytes) {
  SimulatedDisk disk;
  disk.Put("/d/table", bytes);
  auto table = TableReader::Open(&disk, "/d/table");
  if (!table.ok()) return table.status();
  Entries entries;
  const absl::Status status = (*table)->ForEach([&](std::string_view key, std::string_view value) {
    entries.emplace(key, value);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return entries;
}

Entries Many(int n) {
  Entries entries;
  for (int i = 0; i < n; ++i) {
    entries[absl::StrFormat("layer_%d/kernel_%d", i % 17, i)] = std::string(i % 50, 'v');
  }
  entries[""] = "header";
  entries[std::string("\0\xff", 2)] = std::string(10000, 'l');
  return entries;
}

TEST(Table, HoldsWhatWasAdded) {
  for (const Entries& entries : {Entries{}, Entries{{"", ""}}, Entries{{"a", "1"}}, Many(2000)}) {
    const std::string bytes = TableBytes(entries);
    const absl::StatusOr<Entries> back = ReadAll(bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, entries);
    SimulatedDisk disk;
    disk.Put("/d/table", bytes);
    const auto table = TableReader::Open(&disk, "/d/table");
    for (const auto& [key, value] : entries) EXPECT_EQ((*table)->Get(key)->value(), value);
    for (const char* key : {"layer_", "layer_3/kernel_3x", "zzz", "\x01"}) {
      EXPECT_EQ(*(*table)->Get(key), std::nullopt) << key;
    }
  }
}

TEST(Table, TakesKeysInOrderOnly) {
  SimulatedDisk disk;
  const auto file = disk.Create("/table");
  TableWriter writer(file->get());
  EXPECT_TRUE(writer.Add("b", "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Add("a", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Add("b", "")));
  EXPECT_TRUE(writer.Add("c", "").ok());
  EXPECT_TRUE(writer.Finish().ok());
  EXPECT_EQ(ReadAll(disk.Contents("/table"))->size(), 2u);
}

TEST(Table, PassesTheFilesErrorOn) {
  const Entries entries = Many(500);
  for (int64_t at = 1;; ++at) {
    SimulatedDisk disk;
    disk.SetFault(SimulatedDisk::Fault::kDiskFull, at);
    const auto file = disk.Create("/table");
    TableWriter writer(file->get());
    absl::Status status;
    for (const auto& [key, value] : entries) status.Update(writer.Add(key, value));
    status.Update(writer.Finish());
    EXPECT_EQ(absl::IsResourceExhausted(status), disk.failed()) << status;
    if (!disk.failed()) break;
  }
}

TEST(Table, IsRefusedWhenItIsDamaged) {
  const Entries entries = {{"", "header"}, {"a", "1"}, {"ab", std::string(20, '2')}};
  const std::string bytes = TableBytes(entries);
  int same = 0;
  ForEachDamage(bytes, [&](const std::string& damaged, const std::string& what) {
    const absl::StatusOr<Entries> back = ReadAll(damaged);
    if (back.ok()) {
      ++same;
      EXPECT_EQ(*back, entries) << what;
    } else {
      EXPECT_EQ(back.status().code(), absl::StatusCode::kDataLoss) << what;
      EXPECT_THAT(std::string(back.status().message()), HasSubstr("/d/table")) << what;
    }
  });
  EXPECT_GT(same, 0) << "the footer has bytes that mean nothing";
  EXPECT_LT(same, 250) << "and few of them";
}

// Tables that no writer makes, with checksums that are right.
class HostileTable {
 public:
  void Block(std::string block, char compression = 0) {
    last_offset_ = bytes_.size();
    last_size_ = block.size();
    block.push_back(compression);
    const uint32_t crc = MaskCrc32c(Crc32c(block));
    bytes_ += block;
    AppendFixed(crc, &bytes_);
  }
  static std::string Entry(uint64_t shared, uint64_t unshared, uint64_t size,
                           const std::string& rest) {
    std::string entry;
    AppendVarint(shared, &entry);
    AppendVarint(unshared, &entry);
    AppendVarint(size, &entry);
    return entry + rest;
  }
  static std::string Restarts(uint32_t count = 1) {
    std::string restarts;
    AppendFixed(uint32_t{0}, &restarts);
    AppendFixed(count, &restarts);
    return restarts;
  }
  std::string Handle() const {
    std::string handle;
    AppendVarint(last_offset_, &handle);
    AppendVarint(last_size_, &handle);
    return handle;
  }
  // An index that points to the last block, and the footer.
  std::string Finish() { return Finish(Handle()); }
  std::string Finish(const std::string& handle) {
    Block(Entry(0, 1, handle.size(), "z" + handle) + Restarts());
    return Footer(Handle());
  }
  std::string Footer(const std::string& index) {
    std::string footer(2, '\0');
    footer += index;
    footer.resize(40);
    AppendFixed(uint64_t{0xdb4775248b80fb57}, &footer);
    return bytes_ + footer;
  }

 private:
  std::string bytes_;
  uint64_t last_offset_ = 0, last_size_ = 0;
};

std::string TableOfBlock(const std::string& block, char compression = 0) {
  HostileTable table;
  table.Block(block, compression);
  return table.Finish();
}

TEST(Table, ReadsCompressedBlocks) {
  const std::string block =
      HostileTable::Entry(0, 1, 1000, "a" + std::string(1000, 'x')) + HostileTable::Restarts();
  std::string compressed;
  snappy::Compress(block.data(), block.size(), &compressed);
  const auto back = ReadAll(TableOfBlock(compressed, 1));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, (Entries{{"a", std::string(1000, 'x')}}));
}

TEST(Table, RefusesHostileOnes) {
  const auto entry = HostileTable::Entry;
  const std::string restarts = HostileTable::Restarts();
  ASSERT_TRUE(ReadAll(TableOfBlock(entry(0, 1, 1, "a1") + restarts)).ok()) << "a good one";
  std::string long_keys = entry(0, 30000, 0, std::string(30000, 'k'));
  for (int i = 0; i < 30000; ++i) long_keys += entry(30000 + i, 1, 0, "k");
  std::string bomb;  // snappy's length, of 4 GB
  AppendVarint(0xffffffff, &bomb);
  const auto handle = [](uint64_t offset, uint64_t size) {
    std::string bytes;
    AppendVarint(offset, &bytes);
    AppendVarint(size, &bytes);
    return bytes;
  };
  HostileTable far, huge, overflow, inner;
  for (HostileTable* table : {&far, &huge, &overflow, &inner}) {
    table->Block(entry(0, 1, 1, "a1") + restarts);
  }
  const std::string kBad[] = {
      // leveldb's reader adds the two lengths in 32 bits.
      TableOfBlock(entry(0, 0xffffffff, 1, "a1") + restarts),
      TableOfBlock(entry(0, 0xffffffffffffffff, 1, "a1") + restarts),
      TableOfBlock(entry(0, 1, 0xffffffffffffffff, "a1") + restarts),
      TableOfBlock(entry(1, 1, 1, "a1") + restarts),
      TableOfBlock(entry(0, 1, 1, "b1") + entry(0, 1, 1, "a1") + restarts),
      TableOfBlock(entry(0, 1, 1, "a1") + entry(0, 1, 1, "a2") + restarts),
      TableOfBlock(entry(0, 3, 1, "zzz1") + restarts),  // after the key in the index
      TableOfBlock("\x80" + restarts),
      TableOfBlock(HostileTable::Restarts(1000)),
      TableOfBlock(HostileTable::Restarts(0xffffffff)),
      TableOfBlock("abc"),
      TableOfBlock(""),
      TableOfBlock(entry(0, 1, 1, "a1") + restarts, 7),
      TableOfBlock(bomb, 1),
      TableOfBlock("no snappy", 1),
      TableOfBlock(long_keys + restarts),
      far.Finish(handle(uint64_t{1} << 62, 5)),
      huge.Finish(handle(0, uint64_t{1} << 62)),
      overflow.Finish(handle(10, UINT64_MAX - 5)),
      inner.Footer(inner.Handle() + "x").replace(0, 0, "x"),
  };
  for (size_t i = 0; i < std::size(kBad); ++i) {
    const absl::Status status = ReadAll(kBad[i]).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << i << " " << status;
  }
  // A footer may not make a block of data the index.
  HostileTable two;
  two.Block(entry(0, 1, 2, std::string("a\0\5", 3)) + restarts);
  const std::string first = two.Handle();
  two.Block(entry(0, 1, 1, "b1") + restarts);
  EXPECT_EQ(ReadAll(two.Footer(first)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace troupe

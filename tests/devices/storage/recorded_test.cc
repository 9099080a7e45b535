// Files that TensorFlow 2.21 has written (scripts/golden/record_storage.py) are read bit for bit.

#include <map>
#include <string>
#include <vector>

#include "devices/narrow_types.h"
#include "devices/status_macros.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/checkpoint_state.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "devices/storage/record_reader.h"
#include "devices/tensor_proto.h"
#include "graph/protos/summary.pb.h"
#include "graph/protos/tensor.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

// By checkpoint, then by name.
std::map<std::string, TensorsByName> Expected(FileSystem* files) {
  std::map<std::string, TensorsByName> expected;
  const auto reader = RecordReader::Open(files, TestData("expected.tfrecord"));
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::string record;
  while (*(*reader)->Next(&record)) {
    NamedTensorProto named;
    EXPECT_TRUE(named.ParseFromString(record));
    const size_t colon = named.name().find(':');
    expected[named.name().substr(0, colon)][named.name().substr(colon + 1)] =
        *TensorFromProto(named.tensor());
  }
  return expected;
}

TEST(Recorded, CheckpointsAreRead) {
  const auto files = NewLocalFileSystem();
  std::map<std::string, TensorsByName> expected = Expected(files.get());
  ASSERT_EQ(expected.size(), 5u);
  // Names with parts, types, and how many tensors there are at least.
  const std::map<std::string, size_t> kCounts = {
      {"v2", 32}, {"sharded", 6}, {"foreign", 1}, {"v1", 21}, {"v1-*-of-00002", 3}};
  for (auto& [prefix, tensors] : expected) {
    EXPECT_EQ(tensors.size(), kCounts.at(prefix)) << prefix;
    const auto reader = OpenCheckpoint(files.get(), TestData(prefix));
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_TRUE((*reader)->Verify().ok()) << (*reader)->Verify();
    if (prefix == "foreign") {
      EXPECT_EQ((*(*reader)->Find("float8"))->type, ElementType::kFloat8E5m2);
      EXPECT_EQ((*(*reader)->Find("float8"))->shape, Shape({2}));
      const auto float8 = (*reader)->Read("float8");
      ASSERT_TRUE(float8.ok()) << float8.status();
      EXPECT_EQ(static_cast<float>(float8->unchecked_data<float8_e5m2>()[0]), 1);
      EXPECT_EQ(static_cast<float>(float8->unchecked_data<float8_e5m2>()[1]), 2);
      EXPECT_EQ(Difference(*(*reader)->Read("float"), tensors["float"]), "");
    } else {
      EXPECT_EQ(Difference(**reader, tensors), "") << prefix;
    }
  }
}

TEST(Recorded, SlicesAreRead) {
  const auto files = NewLocalFileSystem();
  std::map<std::string, TensorsByName> expected = Expected(files.get());
  for (const std::string prefix : {"sharded", "v1-*-of-00002"}) {
    const auto reader = OpenCheckpoint(files.get(), TestData(prefix));
    EXPECT_GT((*(*reader)->Find("rows"))->slices.size(), 1u);
    const auto rows = (*reader)->ReadSlice("rows", *TensorSlice::Parse("3,5:-"));
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(Difference(*rows, expected[prefix]["rows"].Slice(3, 8)), "");
  }
}

TEST(Recorded, RecordFilesAreRead) {
  const auto files = NewLocalFileSystem();
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes.push_back(static_cast<char>(i));
  const std::vector<std::string> want = {"", "a record", all_bytes, std::string(2000, 'z')};
  const std::map<std::string, FileCompression> kFiles = {{"records", FileCompression::kNone},
                                                         {"records.zlib", FileCompression::kZlib},
                                                         {"records.gzip", FileCompression::kGzip}};
  for (const auto& [name, compression] : kFiles) {
    const auto reader = RecordReader::Open(files.get(), TestData(name), {compression});
    std::string record;
    for (const std::string& expected : want) {
      const auto next = (*reader)->Next(&record);
      ASSERT_TRUE(next.ok() && *next) << next.status();
      EXPECT_EQ(record, expected);
    }
    const auto end = (*reader)->Next(&record);
    EXPECT_TRUE(end.ok() && !*end) << end.status();
  }
}

TEST(Recorded, EventsAreRead) {
  const auto files = NewLocalFileSystem();
  const auto reader =
      EventFileReader::Open(files.get(), TestData("events.out.tfevents.1700000000.host"));
  Event event;
  ASSERT_TRUE(*(*reader)->Next(&event));
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(*(*reader)->Next(&event));
    EXPECT_EQ(event.step(), step);
    EXPECT_GT(event.wall_time(), 1700000000);
    EXPECT_EQ(event.summary().value(0).tag(), "loss");
    EXPECT_EQ(event.summary().value(0).simple_value(), 0.5F / static_cast<float>(step + 1));
  }
  ASSERT_TRUE(*(*reader)->Next(&event));
  EXPECT_EQ(event.session_log().status(), SessionLog::STOP);
  EXPECT_FALSE(*(*reader)->Next(&event));
}

TEST(Recorded, TheListOfCheckpointsIsRead) {
  const auto files = NewLocalFileSystem();
  const auto history = ReadCheckpointState(files.get(), TestData(""));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->latest, TestData("model-20"));
  ASSERT_EQ(history->all.size(), 3u);
  EXPECT_EQ(history->all[0], TestData("../other/model-5"));
  EXPECT_EQ(history->timestamps, (std::vector<double>{1700000000.25, 1700000100.5, 1700000200.75}));
  EXPECT_EQ(history->last_preserved, 1699999999.0);
}

}  // namespace
}  // namespace troupe

#include "devices/storage/event_file.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/protos/summary.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EventFile, HoldsEvents) {
  SimulatedDisk disk;
  const absl::Time now = absl::FromUnixMillis(1700000000250);
  const auto writer = EventFileWriter::Create(&disk, "/logs/run", now, "host", ".v2");
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ((*writer)->path(), "/logs/run/events.out.tfevents.1700000000.host.v2");
  EXPECT_THAT(disk.Files(), ElementsAre((*writer)->path()));
  const auto reader = EventFileReader::Open(&disk, (*writer)->path());
  ASSERT_TRUE(reader.ok()) << reader.status();
  Event event;
  ASSERT_TRUE(*(*reader)->Next(&event)) << "it is there at once";
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  EXPECT_EQ(event.wall_time(), 1700000000.25);
  EXPECT_FALSE(*(*reader)->Next(&event));

  Event step;
  step.set_wall_time(1700000001.5);
  step.set_step(7);
  Summary::Value* value = step.mutable_summary()->add_value();
  value->set_tag("loss");
  value->set_simple_value(0.5F);
  ASSERT_TRUE((*writer)->Write(step).ok());
  ASSERT_TRUE((*writer)->Flush().ok());
  ASSERT_TRUE(*(*reader)->Next(&event)) << "a reader goes on where it was";
  EXPECT_EQ(event.SerializeAsString(), step.SerializeAsString());
  EXPECT_TRUE((*writer)->Sync().ok());
  EXPECT_TRUE((*writer)->Close().ok());
}

// Checkpoints are written to the same folder, which is there by then.
TEST(EventFile, MakesAFolderThatLasts) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedDisk disk;
    ASSERT_TRUE(EventFileWriter::Create(&disk, "/logs/run", absl::Now(), "host").ok());
    disk.Restart(seed);
    EXPECT_TRUE(disk.Exists("/logs/run").ok()) << seed;
  }
}

TEST(EventFile, HasANameThatSortsByTime) {
  EXPECT_EQ(EventFileName(absl::FromUnixSeconds(12), "h"), "events.out.tfevents.0000000012.h");
  EXPECT_EQ(EventFileName(absl::FromUnixSeconds(12345678901), "h"),
            "events.out.tfevents.12345678901.h");
}

TEST(EventFile, RefusesRecordsThatAreNoEvents) {
  SimulatedDisk disk;
  {
    const auto records = RecordWriter::Create(&disk, "/r");
    ASSERT_TRUE((*records)->Write("\xff\xff").ok());
    ASSERT_TRUE((*records)->Write("").ok());
    ASSERT_TRUE((*records)->Close().ok());
  }
  const auto reader = EventFileReader::Open(&disk, "/r");
  Event event;
  const absl::Status status = (*reader)->Next(&event).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/r, record at byte 0"));
  EXPECT_TRUE(*(*reader)->Next(&event)) << "and goes on behind them";
  EXPECT_FALSE(*(*reader)->Next(&event));
}

TEST(EventFile, PassesTheFilesErrorOn) {
  SimulatedDisk disk;
  disk.SetFault(SimulatedDisk::Fault::kReadOnly, 0);
  const absl::Time now = absl::UnixEpoch();
  EXPECT_TRUE(absl::IsFailedPrecondition(EventFileWriter::Create(&disk, "/l", now, "h").status()));
  EXPECT_TRUE(absl::IsNotFound(EventFileReader::Open(&disk, "/none").status()));
}

}  // namespace
}  // namespace troupe

#include "devices/storage/checkpoint_state.h"

#include <string>

#include "devices/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckpointState, IsWrittenAndRead) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.CreateDirectories("/d").ok());
  CheckpointHistory history;
  history.latest = "/d/model-2";
  history.all = {"/elsewhere/model-0", "/d/model-1", "/d/model-2"};
  history.timestamps = {1700000000.125, 1700000001, 1700000002.75};
  history.last_preserved = 1699999999.5;
  ASSERT_TRUE(WriteCheckpointState(&disk, "/d", history).ok());
  EXPECT_THAT(disk.Contents("/d/checkpoint"), HasSubstr("model_checkpoint_path: \"/d/model-2\"\n"));
  CheckpointStateOptions relative;
  relative.relative_paths = true;
  relative.file_name = "latest";
  ASSERT_TRUE(WriteCheckpointState(&disk, "/d", history, relative).ok());
  EXPECT_THAT(disk.Contents("/d/latest"), HasSubstr("model_checkpoint_path: \"model-2\"\n"));
  for (const char* file : {"checkpoint", "latest"}) {
    const auto back = ReadCheckpointState(&disk, "/d", file);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->latest, history.latest);
    EXPECT_EQ(back->all, history.all);
    EXPECT_EQ(back->timestamps, history.timestamps);
    EXPECT_EQ(back->last_preserved, history.last_preserved);
  }
  // A folder that was moved.
  disk.Put("/moved/latest", disk.Contents("/d/latest"));
  EXPECT_EQ(ReadCheckpointState(&disk, "/moved", "latest")->latest, "/moved/model-2");
}

// What TensorFlow's saver writes for a folder that is named from the working directory.
TEST(CheckpointState, OfAFolderThatIsNotAbsolute) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.CreateDirectories("runs/1").ok());
  CheckpointHistory history;
  history.latest = "runs/1/model-2";
  history.all = {"runs/0/model-9", "/d/model", "runs/1/model-2"};
  ASSERT_TRUE(WriteCheckpointState(&disk, "runs/1", history).ok());
  EXPECT_EQ(disk.Contents("runs/1/checkpoint"),
            "model_checkpoint_path: \"model-2\"\n"
            "all_model_checkpoint_paths: \"../0/model-9\"\n"
            "all_model_checkpoint_paths: \"/d/model\"\n"
            "all_model_checkpoint_paths: \"model-2\"\n");
  EXPECT_EQ(ReadCheckpointState(&disk, "runs/1")->latest, "runs/1/model-2");
}

TEST(CheckpointState, AddsTheLatest) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.CreateDirectories("/d").ok());
  CheckpointHistory history;
  history.latest = "/d/b";
  history.all = {"/d/a"};
  ASSERT_TRUE(WriteCheckpointState(&disk, "/d", history).ok());
  EXPECT_THAT(ReadCheckpointState(&disk, "/d")->all, ElementsAre("/d/a", "/d/b"));
  history.timestamps = {1, 2};
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpointState(&disk, "/d", history)));
}

TEST(CheckpointState, IsRefusedWhenItIsDamaged) {
  SimulatedDisk disk;
  EXPECT_TRUE(absl::IsNotFound(ReadCheckpointState(&disk, "/d").status()));
  for (const char* text : {"", "model_checkpoint_path: 5", "model_checkpoint_path: \"a",
                           "all_model_checkpoint_paths: \"a\"", "\xff\xff", "other: 1"}) {
    disk.Put("/d/checkpoint", text);
    const absl::Status status = ReadCheckpointState(&disk, "/d").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/d/checkpoint")) << text;
  }
  EXPECT_THAT(std::string(ReadCheckpointState(&disk, "/d").status().message()),
              HasSubstr("line 1, column 6"));
}

}  // namespace
}  // namespace troupe

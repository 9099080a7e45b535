// Saves during which the disk fails, at each of its events: what was complete before restores.

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "devices/status_macros.h"
#include "devices/storage/bundle_writer.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/checkpoint_state.h"
#include "devices/storage/merge_bundles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"
#include "tests/devices/storage/storage_test_util.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

using Fault = SimulatedDisk::Fault;
constexpr Fault kFaults[] = {Fault::kPowerBefore, Fault::kPowerMiddle, Fault::kPowerAfter,
                             Fault::kDiskFull, Fault::kReadOnly};

// What was saved in a step.
TensorsByName Values(int step) {
  return {{"weights", RandomTensor(ElementType::kFloat, Shape({40, 10}), step)},
          {"names", RandomTensor(ElementType::kString, Shape({9}), step)},
          {"step", Tensor::Scalar(int64_t{step})}};
}

// Ways to save a step under a prefix.
absl::Status SaveWhole(FileSystem* disk, const std::string& prefix, int step) {
  return WriteBundle(disk, prefix, Values(step));
}
absl::Status SaveInParts(FileSystem* disk, const std::string& prefix, int step) {
  std::vector<std::string> parts;
  for (const auto& [name, tensor] : Values(step)) {
    parts.push_back(StrCat(prefix, "_temp/part-", parts.size()));
    TROUPE_RETURN_IF_ERROR(WriteBundle(disk, parts.back(), {{name, tensor}}));
  }
  MergeOptions options;
  options.temporary_suffix = "test";
  options.remove_directories = true;
  return MergeBundles(disk, parts, prefix, options);
}
using Save = absl::Status (*)(FileSystem* disk, const std::string& prefix, int step);

// As a saver does: a checkpoint, then the list of checkpoints.
absl::Status SaveAndList(FileSystem* disk, Save save, const std::string& prefix, int step) {
  TROUPE_RETURN_IF_ERROR(save(disk, prefix, step));
  CheckpointHistory history;
  history.latest = prefix;
  return WriteCheckpointState(disk, "/d/train", history);
}

// The step that the list of checkpoints leads to, all of which must be there; or what is wrong.
absl::StatusOr<int> Restore(FileSystem* disk) {
  TROUPE_ASSIGN_OR_RETURN(const CheckpointHistory history, ReadCheckpointState(disk, "/d/train"));
  TROUPE_ASSIGN_OR_RETURN(const auto reader, OpenCheckpoint(disk, history.latest));
  TROUPE_ASSIGN_OR_RETURN(const Tensor step, reader->Read("step"));
  const int result = static_cast<int>(step.unchecked_scalar<int64_t>());
  const std::string difference = Difference(*reader, Values(result));
  if (!difference.empty()) return absl::DataLossError(difference);
  return result;
}

// Saves step 1, then step 2 with a fault at each event in turn.
void CutEverywhere(Save save, const std::string& first, const std::string& second) {
  const int seeds = HowMany("TROUPE_SEEDS", 6, /*one_in=*/3);
  int ones = 0, twos = 0;
  for (const Fault fault : kFaults) {
    for (int64_t at = 0;; ++at) {
      bool failed = false;
      for (int seed = 0; seed < seeds; ++seed) {
        SimulatedDisk disk;
        ASSERT_TRUE(SaveAndList(&disk, save, first, 1).ok());
        disk.SetFault(fault, at);
        const absl::Status status = SaveAndList(&disk, save, second, 2);
        failed = disk.failed();
        EXPECT_TRUE(failed || status.ok()) << status;
        // A disk that is full or read-only still restores before the machine is started again.
        if (fault == Fault::kDiskFull || fault == Fault::kReadOnly) {
          const absl::StatusOr<int> now = Restore(&disk);
          ASSERT_TRUE(now.ok()) << "event " << at << ": " << now.status();
        }
        disk.Restart(seed);
        const absl::StatusOr<int> step = Restore(&disk);
        ASSERT_TRUE(step.ok()) << "event " << at << ", seed " << seed << ": " << step.status();
        if (status.ok()) {
          EXPECT_EQ(*step, 2) << "a save that is done stays";
        }
        ++(*step == 1 ? ones : twos);
        // The next save is none the worse for what was left.
        const absl::Status again = SaveAndList(&disk, save, second, 3);
        ASSERT_TRUE(again.ok()) << again;
        EXPECT_EQ(*Restore(&disk), 3);
      }
      if (!failed) break;
    }
  }
  EXPECT_GT(ones, 16 * seeds);
  EXPECT_GT(twos, 5 * seeds);
}

TEST(PowerCut, LeavesTheLastCheckpoint) {
  CutEverywhere(SaveWhole, "/d/train/model-1", "/d/train/model-2");
}
TEST(PowerCut, LeavesTheLastCheckpointOfParts) {
  CutEverywhere(SaveInParts, "/d/train/model-1", "/d/train/model-2");
}
TEST(PowerCut, LeavesACheckpointThatIsBeingReplaced) {
  CutEverywhere(SaveWhole, "/d/train/model", "/d/train/model");
}
TEST(PowerCut, LeavesACheckpointThatIsBeingReplacedByParts) {
  CutEverywhere(SaveInParts, "/d/train/model", "/d/train/model");
}

TEST(PowerCut, IsFoundOutWhenNothingWasSynced) {
  // Without sync, a power cut may leave anything; a reader never gets other values.
  int whole = 0, refused = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimulatedDisk disk;
    const auto writer = BundleWriter::Create(&disk, "/model", {false, "test"});
    ASSERT_TRUE(writer.ok());
    for (const auto& [name, tensor] : Values(1)) ASSERT_TRUE((*writer)->Add(name, tensor).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    disk.Restart(seed);
    const auto reader = OpenCheckpoint(&disk, "/model");
    if (reader.ok() && (*reader)->Verify().ok()) {
      ++whole;
      EXPECT_EQ(Difference(**reader, Values(1)), "");
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

/// Refuses to sync folders, or to rename indexes, from a moment on.
class DiskThatRefuses : public SimulatedDisk {
 public:
  bool syncs = true, renames = true;
  bool tells_lies = false;  ///< What is refused is done.

  absl::Status SyncDirectory(const std::string& directory) override {
    return syncs ? SimulatedDisk::SyncDirectory(directory) : absl::UnavailableError("no sync");
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const bool refused = !renames && to.ends_with(".index");
    if (!refused || tells_lies) {
      absl::Status status = SimulatedDisk::Rename(from, to);
      if (!refused) return status;
    }
    return absl::UnavailableError("no rename");
  }
};

TEST(FailedSave, LeavesNoDataBehind) {
  for (const bool syncs : {false, true}) {
    DiskThatRefuses disk;
    ASSERT_TRUE(SaveAndList(&disk, SaveWhole, "/d/train/model", 1).ok());
    const size_t before = disk.Files().size();
    disk.syncs = syncs;
    disk.renames = false;
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = SaveWhole(&disk, "/d/train/model", 2);
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_EQ(disk.Files().size(), before);
      EXPECT_EQ(*Restore(&disk), 1);
    }
    disk.syncs = disk.renames = true;
    ASSERT_TRUE(SaveAndList(&disk, SaveWhole, "/d/train/model", 3).ok());
    EXPECT_EQ(*Restore(&disk), 3);
    EXPECT_EQ(disk.Files().size(), before);
  }
}

TEST(FailedSave, LeavesThePartsForAnotherTry) {
  DiskThatRefuses disk;
  ASSERT_TRUE(SaveAndList(&disk, SaveWhole, "/d/train/model", 1).ok());
  ASSERT_TRUE(WriteBundle(&disk, "/d/parts/a", {{"x", Tensor::Scalar(1)}}).ok());
  ASSERT_TRUE(WriteBundle(&disk, "/d/parts/b", {{"y", Tensor::Scalar(2)}}).ok());
  const auto merge = [&] {
    MergeOptions options;
    options.temporary_suffix = "test";
    return MergeBundles(&disk, {"/d/parts/a", "/d/parts/b"}, "/d/train/model", options);
  };
  disk.renames = false;
  EXPECT_TRUE(absl::IsUnavailable(merge()));
  EXPECT_EQ(*Restore(&disk), 1);
  disk.renames = true;
  const absl::Status merged = merge();
  ASSERT_TRUE(merged.ok()) << merged;
  EXPECT_EQ(Difference(**OpenCheckpoint(&disk, "/d/train/model"),
                       {{"x", Tensor::Scalar(1)}, {"y", Tensor::Scalar(2)}}),
            "");
}

/// A file system across a network may tell an error of what it has done.
TEST(FailedSave, KeepsTheDataOfAnIndexThatWasRenamed) {
  DiskThatRefuses disk;
  ASSERT_TRUE(SaveAndList(&disk, SaveWhole, "/d/train/model", 1).ok());
  disk.renames = false;
  disk.tells_lies = true;
  EXPECT_TRUE(absl::IsUnavailable(SaveWhole(&disk, "/d/train/model", 2)));
  EXPECT_EQ(*Restore(&disk), 2);
}

TEST(TwoWriters, OfOneFolderDoNotMeet) {
  SimulatedDisk disk;
  const auto a = BundleWriter::Create(&disk, "/d/model");
  const auto b = BundleWriter::Create(&disk, "/d/model");
  ASSERT_TRUE((*a)->Add("x", Tensor::Scalar(1)).ok());
  ASSERT_TRUE((*b)->Add("x", Tensor::Scalar(2)).ok());
  ASSERT_TRUE((*a)->Finish().ok());
  EXPECT_EQ(Difference(**OpenCheckpoint(&disk, "/d/model"), {{"x", Tensor::Scalar(1)}}), "");
  ASSERT_TRUE((*b)->Finish().ok());
  EXPECT_EQ(Difference(**OpenCheckpoint(&disk, "/d/model"), {{"x", Tensor::Scalar(2)}}), "");
}

/// Two threads change files in turns, which the seed chooses: after most changes the same one goes
/// on, so that one may save several times while the other does not go on. The checkpoint is whole
/// after each change.
class DiskInTurns : public SimulatedDisk {
 public:
  explicit DiskInTurns(uint64_t seed) : random_(seed) {}

  void Write(int writer, const std::function<void()>& write) {
    writer_ = writer;
    write();
    writer_ = 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(writers_, writer);
    Choose();
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    WaitForTurn();
    return SimulatedDisk::Create(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    WaitForTurn();
    return SimulatedDisk::List(directory);
  }
  absl::Status Remove(const std::string& path) override {
    WaitForTurn();
    return SimulatedDisk::Remove(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    WaitForTurn();
    return SimulatedDisk::Rename(from, to);
  }
  absl::Status RenameNew(const std::string& from, const std::string& to) override {
    WaitForTurn();
    return SimulatedDisk::RenameNew(from, to);
  }
  absl::Status SyncDirectory(const std::string& directory) override {
    WaitForTurn();
    return SimulatedDisk::SyncDirectory(directory);
  }

 private:
  void WaitForTurn() {
    const int writer = writer_;
    if (writer == 0) return;
    std::unique_lock<std::mutex> lock(mutex_);
    Choose();
    changed_.wait(lock, [&] { return next_ == writer; });
    writer_ = 0;
    const absl::StatusOr<int> step = Restore(this);
    EXPECT_TRUE(step.ok()) << step.status();
    writer_ = writer;
  }
  void Choose() {
    const bool ended = std::find(writers_.begin(), writers_.end(), next_) == writers_.end();
    if (!writers_.empty() && (ended || random_() % 8 == 0)) {
      next_ = writers_[random_() % writers_.size()];
    }
    changed_.notify_all();
  }

  static thread_local int writer_;  // 0: it does not take turns.
  std::mutex mutex_;                // Guards what follows.
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::vector<int> writers_ = {1, 2};
  int next_ = 1;
};
thread_local int DiskInTurns::writer_ = 0;

TEST(TwoWriters, OfOnePrefixLeaveTheCheckpointOfOne) {
  constexpr int kSaves = 4;
  for (const bool in_parts : {false, true}) {
    const int seeds = HowMany("TROUPE_SEEDS", 300, /*one_in=*/3);
    int ones = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      DiskInTurns disk(static_cast<uint64_t>(seed));
      ASSERT_TRUE(SaveAndList(&disk, SaveWhole, "/d/train/model", 3).ok());
      std::vector<std::thread> threads;
      for (int writer : {1, 2}) {
        threads.emplace_back([&, writer] {
          disk.Write(writer, [&] {
            const std::string merged = "/d/train/model", suffix = StrCat(writer);
            const std::string prefix = in_parts ? StrCat("/d/", writer, "/part") : merged;
            for (int save = 0; save < kSaves; ++save) {
              const auto bundle = BundleWriter::Create(&disk, prefix, {true, suffix});
              absl::Status status = bundle.status();
              for (const auto& [name, tensor] : Values(10 * save + writer)) {
                if (status.ok()) status = (*bundle)->Add(name, tensor);
              }
              if (status.ok()) status = (*bundle)->Finish();
              MergeOptions options;
              options.temporary_suffix = suffix;
              if (in_parts && status.ok()) status = MergeBundles(&disk, {prefix}, merged, options);
              EXPECT_TRUE(status.ok()) << status;
            }
          });
        });
      }
      for (std::thread& thread : threads) thread.join();
      const absl::StatusOr<int> step = Restore(&disk);
      ASSERT_TRUE(step.ok()) << "seed " << seed << ": " << step.status();
      ASSERT_THAT(*step, testing::AnyOf(10 * (kSaves - 1) + 1, 10 * (kSaves - 1) + 2));
      ones += *step % 10 == 1 ? 1 : 0;
      if (HasFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_GT(ones, seeds / 10);
    EXPECT_LT(ones, seeds - seeds / 10);
  }
}

}  // namespace
}  // namespace troupe

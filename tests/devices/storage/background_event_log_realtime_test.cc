#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "absl/time/clock.h"
#include "devices/storage/background_event_log.h"
#include "devices/storage/event_file.h"
#include "devices/storage/file_system_registry.h"
#include "graph/protos/summary.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {
namespace {

/// A disk that hangs in every append while it is told to.
class HangingDisk final : public SimulatedDisk {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = SimulatedDisk::Create(path);
    if (!file.ok()) return file.status();
    return std::unique_ptr<WritableFile>(new File(this, *std::move(file)));
  }
  void Hang(bool hangs) {
    std::lock_guard<std::mutex> lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }

 private:
  class File final : public WritableFile {
   public:
    File(HangingDisk* disk, std::unique_ptr<WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    absl::Status Append(std::string_view bytes) override {
      std::unique_lock<std::mutex> lock(disk_->mutex_);
      disk_->changed_.wait(lock, [this] { return !disk_->hangs_; });
      return file_->Append(bytes);
    }
    absl::Status Flush() override { return file_->Flush(); }
    absl::Status Sync() override { return file_->Sync(); }
    absl::Status Close() override { return file_->Close(); }

   private:
    HangingDisk* const disk_;
    const std::unique_ptr<WritableFile> file_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
};

TEST(BackgroundEventLog, NobodyWaitsForADiskForEver) {
  auto made = std::make_unique<HangingDisk>();
  HangingDisk* const disk = made.get();
  ASSERT_TRUE(FileSystems().Register("hanging", std::move(made)).ok());
  auto log = BackgroundEventLog::Create("hanging://a",
                                        {.max_queue = 3, .patience = absl::Milliseconds(50)});
  ASSERT_TRUE(log.ok()) << log.status();
  disk->Hang(true);
  absl::Status status;
  int added = 0;
  while (status.ok() && added < 10) {
    status = (*log)->Add(Event());
    if (status.ok()) ++added;
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_GE(added, 3);
  EXPECT_LE(added, 6) << "what is being written, and what waits";
  EXPECT_TRUE(absl::IsDeadlineExceeded((*log)->Flush()));
  const std::string path = (*log)->path();
  const absl::Time begin = absl::Now();
  log->reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  // The disk is back: what waited is written after all.
  disk->Hang(false);
  int events = 0;
  while (events != added + 1 && absl::Now() - begin < absl::Seconds(20)) {
    events = 0;
    const auto reader = EventFileReader::Open(disk, path);
    for (Event event; (*reader)->Next(&event).value_or(false);) ++events;
  }
  EXPECT_EQ(events, added + 1);
}

TEST(BackgroundEventLog, FlushesByItself) {
  // Local files keep what is appended in memory until they are flushed.
  const std::string folder = testing::TempDir() + "troupe_flushing_log";
  auto log = BackgroundEventLog::Create(folder, {.flush_interval = absl::Milliseconds(300)});
  ASSERT_TRUE(log.ok()) << log.status();
  const auto events = [&] {
    int count = 0;
    const auto reader = EventFileReader::Open(*FileSystems().Find(folder), (*log)->path());
    for (Event event; (*reader)->Next(&event).value_or(false);) ++count;
    return count;
  };
  const absl::Time begin = absl::Now();
  ASSERT_TRUE((*log)->Add(Event()).ok());
  while (events() < 2 && absl::Now() - begin < absl::Seconds(20)) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(events(), 2);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(300));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe

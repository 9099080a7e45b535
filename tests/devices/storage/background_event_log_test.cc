#include "devices/storage/background_event_log.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "devices/storage/event_file.h"
#include "devices/storage/file_system_registry.h"
#include "gmock/gmock.h"
#include "graph/protos/summary.pb.h"
#include "gtest/gtest.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {
namespace {

/// The disk of this program's paths "log://...".
SimulatedDisk* Disk() {
  static SimulatedDisk* const disk = [] {
    auto made = std::make_unique<SimulatedDisk>();
    SimulatedDisk* known = made.get();
    EXPECT_TRUE(FileSystems().Register("log", std::move(made)).ok());
    return known;
  }();
  return disk;
}

Event AtStep(int64_t step) {
  Event event;
  event.set_step(step);
  event.set_wall_time(1);
  return event;
}

/// Steps of the events of a file, without the first one, which says what file it is.
std::vector<int64_t> Steps(const std::string& path) {
  std::vector<int64_t> steps;
  const auto reader = EventFileReader::Open(Disk(), path);
  if (!reader.ok()) return {-1};
  for (Event event; (*reader)->Next(&event).value_or(false);) steps.push_back(event.step());
  if (!steps.empty()) steps.erase(steps.begin());
  return steps;
}

TEST(BackgroundEventLog, WritesInOrder) {
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
  auto log = BackgroundEventLog::Create("log://a/order", {.max_queue = 2, .suffix = "end"});
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT((*log)->path(), testing::MatchesRegex("log://a/order/events.out.tfevents."
                                                    "[0-9]{10}\\..+\\.[0-9]+\\.[0-9]+\\.end"));
  std::vector<int64_t> wanted;
  for (int64_t i = 1; i <= 200; ++i) {
    ASSERT_TRUE((*log)->Add(AtStep(i)).ok());
    wanted.push_back(i);
  }
  ASSERT_TRUE((*log)->Flush().ok());
  EXPECT_EQ(Steps((*log)->path()), wanted);
  EXPECT_TRUE((*log)->Close().ok());
  EXPECT_TRUE((*log)->Close().ok());
  EXPECT_TRUE((*log)->Flush().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*log)->Add(AtStep(1))));
}

TEST(BackgroundEventLog, ManyThreadsAdd) {
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
  auto log = BackgroundEventLog::Create("log://a/threads", {.max_queue = 1});
  ASSERT_TRUE(log.ok()) << log.status();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE((*log)->Add(AtStep(t * 50 + i)).ok());
      EXPECT_TRUE((*log)->Flush().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string path = (*log)->path();
  log->reset();
  std::vector<int64_t> steps = Steps(path);
  std::sort(steps.begin(), steps.end());
  ASSERT_EQ(steps.size(), 200u);
  EXPECT_EQ(steps.back(), 199);
}

TEST(BackgroundEventLog, TwoLogsHaveTwoFiles) {
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
  auto one = BackgroundEventLog::Create("log://a/two"),
       other = BackgroundEventLog::Create("log://a/two");
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE((*one)->path(), (*other)->path());
}

TEST(BackgroundEventLog, TellsOfAFullDisk) {
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
  auto log = BackgroundEventLog::Create("log://a/full");
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Add(AtStep(1)).ok());
  ASSERT_TRUE((*log)->Flush().ok());
  Disk()->SetFault(SimulatedDisk::Fault::kDiskFull, 0);
  ASSERT_TRUE((*log)->Add(AtStep(2)).ok());
  const absl::Status full = (*log)->Flush();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  // And goes on telling.
  EXPECT_EQ((*log)->Add(AtStep(3)), full);
  EXPECT_EQ((*log)->status(), full);
  EXPECT_EQ((*log)->Close(), full);
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
  EXPECT_EQ(Steps((*log)->path()), std::vector<int64_t>({1})) << "what was there stays";
}

TEST(BackgroundEventLog, BadInput) {
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(
      BackgroundEventLog::Create("log://a/none", {.max_queue = 0}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(BackgroundEventLog::Create("nobodys://a").status()));
  Disk()->SetFault(SimulatedDisk::Fault::kReadOnly, 0);
  EXPECT_FALSE(BackgroundEventLog::Create("log://a/read_only").ok());
  Disk()->SetFault(SimulatedDisk::Fault::kNone, 0);
}

}  // namespace
}  // namespace troupe

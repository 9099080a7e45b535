#include "api/training/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Coordinator, StopsAllWhenOneAsks) {
  Coordinator coordinator;
  std::atomic<int> ended{0};
  for (int i = 0; i < 4; ++i) {
    coordinator.StartThread("waiter", [&] {
      coordinator.WaitForStop();
      ++ended;
      return absl::OkStatus();
    });
  }
  EXPECT_FALSE(coordinator.should_stop());
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_EQ(ended, 4);
  EXPECT_THAT(coordinator.members(), ElementsAre());
}

TEST(Coordinator, JoinGivesTheFirstError) {
  Coordinator coordinator;
  coordinator.StartThread("breaks", [] { return absl::DataLossError("a torn record"); });
  coordinator.StartThread("follows", [&] {
    coordinator.WaitForStop();
    return absl::CancelledError("as the other one broke");
  });
  const absl::Status status = coordinator.Join();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("breaks: a torn record"));
}

TEST(Coordinator, AnExceptionIsAnError) {
  Coordinator coordinator;
  coordinator.StartThread("throws", []() -> absl::Status { throw std::runtime_error("oops"); });
  const absl::Status status = coordinator.Join();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("oops"));
}

TEST(Coordinator, TheEndOfInputIsNoFailure) {
  Coordinator coordinator;
  coordinator.StartThread("reader", [] { return absl::OutOfRangeError("no more"); });
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_TRUE(coordinator.should_stop());

  Coordinator strict({.clean_stop = {}});
  strict.RequestStop(absl::OutOfRangeError("no more"));
  EXPECT_TRUE(absl::IsOutOfRange(strict.Join()));
}

TEST(Coordinator, JoinReturnsWhenAllHaveEnded) {
  Coordinator coordinator;
  coordinator.StartThread("short", [] { return absl::OkStatus(); });
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_FALSE(coordinator.should_stop());
}

TEST(Coordinator, NamesStragglers) {
  Coordinator coordinator;
  Coordinator::Member slow = coordinator.Register("slow"), copy = slow;
  coordinator.Register("gone");
  coordinator.RequestStop();
  const absl::Status status = coordinator.Join(absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(": slow"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("gone")));
  EXPECT_TRUE(coordinator.Join(absl::ZeroDuration(), /*ignore_stragglers=*/true).ok());
  slow = {};
  EXPECT_THAT(coordinator.members(), ElementsAre("slow"));
  copy = {};
  EXPECT_TRUE(coordinator.Join(absl::ZeroDuration()).ok());
}

TEST(Coordinator, TellsOfAStopOnce) {
  Coordinator coordinator;
  int told = 0;
  coordinator.OnStop([&] { ++told; });
  coordinator.RequestStop();
  coordinator.RequestStop(absl::InternalError("too late to be of interest"));
  EXPECT_EQ(told, 1);
  coordinator.OnStop([&] { ++told; });
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(coordinator.Join().ok());
}

TEST(Coordinator, BeginsAnew) {
  Coordinator coordinator;
  coordinator.RequestStop(absl::InternalError("broken"));
  EXPECT_FALSE(coordinator.Join().ok());
  coordinator.ClearStop();
  EXPECT_FALSE(coordinator.should_stop());
  EXPECT_FALSE(coordinator.WaitForStop(absl::Milliseconds(1)));
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
}

TEST(Coordinator, LoopsUntilItStops) {
  Coordinator coordinator;
  std::atomic<int> rounds{0};
  coordinator.StartLoop("loop", absl::ZeroDuration(), [&] {
    if (++rounds == 100) coordinator.RequestStop();
    return absl::OkStatus();
  });
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_EQ(rounds, 100);
}

TEST(Coordinator, MembersMayOutliveIt) {
  Coordinator::Member member;
  {
    Coordinator coordinator;
    member = coordinator.Register("outlives");
    EXPECT_FALSE(member.should_stop());
  }
  EXPECT_TRUE(member.should_stop());
  member.RequestStop(absl::InternalError("nobody listens"));
}

TEST(Coordinator, TheEndWaitsForThreadsThatThreadsStart) {
  std::atomic<int> ended{0};
  {
    Coordinator coordinator;
    coordinator.StartThread("first", [&] {
      coordinator.WaitForStop();
      coordinator.StartThread("second", [&] {
        ++ended;
        return absl::OkStatus();
      });
      ++ended;
      return absl::OkStatus();
    });
  }
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace troupe

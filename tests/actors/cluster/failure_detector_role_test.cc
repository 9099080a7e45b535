#include "actors/cluster/failure_detector_role.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using Change = FailureDetectorRole::Change;
using Health = FailureDetectorRole::Health;

std::vector<Change> Changes(const std::vector<FailureDetectorRole::Event>& events) {
  std::vector<Change> changes;
  for (const auto& event : events) {
    if (event.change != Change::kPing) changes.push_back(event.change);
  }
  return changes;
}

class FailureDetectorRoleTest : public testing::Test {
 protected:
  FailureDetectorRoleTest() : detector_({}) { detector_.Add(1, now_); }
  /// Ticks every 100 ms, and gives what changes.
  std::vector<Change> Pass(ClusterTime time) {
    std::vector<Change> all;
    for (const ClusterTime end = now_ + time; now_ < end;) {
      now_ += 100000;
      for (Change change : Changes(detector_.Tick(now_))) all.push_back(change);
    }
    return all;
  }

  ClusterTime now_ = 10 * kSecond;
  FailureDetectorRole detector_;
};

TEST_F(FailureDetectorRoleTest, WhoIsHeardIsUp) {
  EXPECT_EQ(detector_.health(1), Health::kUnknown);
  EXPECT_EQ(Changes(detector_.Heard(1, 7, now_)), std::vector<Change>{Change::kUp});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Pass(kSecond), std::vector<Change>());
    EXPECT_EQ(Changes(detector_.Heard(1, 7, now_)), std::vector<Change>());
  }
  EXPECT_EQ(detector_.incarnation(1), 7u);
}

TEST_F(FailureDetectorRoleTest, SilenceIsSuspectThenLost) {
  detector_.Heard(1, 7, now_);
  EXPECT_EQ(Pass(2 * kSecond), std::vector<Change>());
  EXPECT_EQ(Pass(kSecond), std::vector<Change>{Change::kSuspected});
  EXPECT_TRUE(detector_.alive(1));
  EXPECT_EQ(Pass(2 * kSecond), std::vector<Change>{Change::kLost});
  EXPECT_FALSE(detector_.alive(1));
  EXPECT_EQ(Changes(detector_.Heard(1, 7, now_)), std::vector<Change>{Change::kUp});
}

TEST_F(FailureDetectorRoleTest, BrokenLinkIsLostAtOnce) {
  detector_.Heard(1, 7, now_);
  EXPECT_EQ(Changes(detector_.LinkDown(1, now_)), std::vector<Change>{Change::kLost});
  EXPECT_EQ(Changes(detector_.LinkDown(1, now_)), std::vector<Change>());
}

TEST_F(FailureDetectorRoleTest, NewLifeEndsTheOldOne) {
  detector_.Heard(1, 7, now_);
  EXPECT_EQ(Changes(detector_.Heard(1, 8, now_)),
            (std::vector<Change>{Change::kLost, Change::kUp}));
  EXPECT_TRUE(detector_.IsEarlierLife(1, 7));
  EXPECT_EQ(Changes(detector_.Heard(1, 7, now_)), std::vector<Change>());
  EXPECT_EQ(detector_.incarnation(1), 8u);
}

TEST_F(FailureDetectorRoleTest, OvertakenMessageOfAnOldLifeIsGotOver) {
  detector_.Heard(1, 8, now_);
  detector_.Heard(1, 7, now_);  // Sent before life 8 began.
  Pass(6 * kSecond);
  EXPECT_EQ(Changes(detector_.Heard(1, 8, now_)), std::vector<Change>{Change::kUp});
}

TEST_F(FailureDetectorRoleTest, WhoStoodStillBlamesNobody) {
  detector_.Heard(1, 7, now_);
  Pass(kSecond);
  now_ += 60 * kSecond;  // Stopped for a minute.
  EXPECT_EQ(Pass(2 * kSecond), std::vector<Change>{Change::kSuspected});
  EXPECT_TRUE(detector_.alive(1));
}

TEST_F(FailureDetectorRoleTest, PingsEverySecondAndMissingOnesMoreOften) {
  auto pings = [&](ClusterTime time) {
    int count = 0;
    for (const ClusterTime end = now_ + time; now_ < end;) {
      now_ += 50000;
      for (const auto& event : detector_.Tick(now_)) count += event.change == Change::kPing;
      if (detector_.alive(1)) detector_.Heard(1, 7, now_);
    }
    return count;
  };
  const int missing = pings(10 * kSecond);
  EXPECT_GE(missing, 35);
  EXPECT_LE(missing, 45);
  detector_.Heard(1, 7, now_);
  const int alive = pings(10 * kSecond);
  EXPECT_GE(alive, 9);
  EXPECT_LE(alive, 11);
}

}  // namespace
}  // namespace troupe

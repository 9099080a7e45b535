#include "devices/log_limiter.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::seconds;

const LogLimiter::Time kStart{seconds(1000)};

bool Admit(LogLimiter* limiter, LogTopic topic, const std::string& text,
           LogLimiter::Time now = kStart) {
  return limiter->Admit(LogLevel::kInfo, "/job:ps/task:0", topic, text, now);
}

TEST(LogLimiter, AdmitsTenOfATopicAndCountsTheOthers) {
  LogLimiter limiter;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Admit(&limiter, {"refused", "a"}, StrCat(i)));
  for (int i = 10; i < 17; ++i) EXPECT_FALSE(Admit(&limiter, {"refused", "a"}, StrCat(i)));
  EXPECT_TRUE(Admit(&limiter, {"refused", "b"}, "another subject"));
  EXPECT_TRUE(Admit(&limiter, {"lost", "a"}, "another event"));
  EXPECT_TRUE(limiter.Admit(LogLevel::kInfo, "/job:ps/task:1", {"refused", "a"}, "0", kStart));

  EXPECT_EQ(limiter.due(), kStart + seconds(10));
  EXPECT_TRUE(limiter.TakeHeldBack(kStart + seconds(9)).empty());
  const auto held_back = limiter.TakeHeldBack(kStart + seconds(10));
  ASSERT_EQ(held_back.size(), 1u);
  EXPECT_EQ(held_back[0].count, 7u);
  EXPECT_EQ(held_back[0].last, "16");
  EXPECT_EQ(held_back[0].task, "/job:ps/task:0");
  EXPECT_EQ(held_back[0].level, LogLevel::kInfo);
  EXPECT_EQ(limiter.due(), LogLimiter::Time::max());
  EXPECT_TRUE(Admit(&limiter, {"refused", "a"}, "anew", kStart + seconds(10)));
}

TEST(LogLimiter, AdmitsNoTextTwice) {
  LogLimiter limiter;
  EXPECT_TRUE(Admit(&limiter, {"refused", "a"}, "again"));
  EXPECT_FALSE(Admit(&limiter, {"refused", "a"}, "again"));
  EXPECT_TRUE(Admit(&limiter, {"refused", "a"}, "something else"));
  const auto held_back = limiter.TakeHeldBack(kStart + seconds(11));
  ASSERT_EQ(held_back.size(), 1u);
  EXPECT_EQ(held_back[0].count, 1u);
  EXPECT_EQ(held_back[0].last, "again");
}

TEST(LogLimiter, ManyTopicsShareOne) {
  LogLimiter limiter;
  size_t admitted = 0;
  for (int i = 0; i < 100000; ++i) {
    admitted += Admit(&limiter, {"refused", StrCat(i)}, StrCat(i)) ? 1 : 0;
  }
  EXPECT_EQ(admitted, LogLimiter::kMostTopics + LogLimiter::kMost);
  const auto held_back = limiter.TakeHeldBack(kStart + seconds(10));
  ASSERT_EQ(held_back.size(), 1u);
  EXPECT_EQ(held_back[0].count, 100000 - admitted);
}

}  // namespace
}  // namespace troupe

#include "devices/cpu/deadline_timer.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe {
namespace {

TEST(ScopedDeadlineTest, ExpiresUnlessItIsCleared) {
  DeadlineTimer timer;
  std::latch first(1), second(1);
  ScopedDeadline soon, now, never, far, cleared;
  soon.Set(&timer, absl::Milliseconds(1), [&] { first.count_down(); });
  now.Set(&timer, absl::ZeroDuration(), [&] { second.count_down(); });
  EXPECT_TRUE(second.try_wait()) << "at once, on this thread";
  never.Set(&timer, absl::InfiniteDuration(), [] { FAIL(); });
  // Past what the clock can say.
  far.Set(&timer, absl::Hours(24 * 365) * 100000, [] { FAIL(); });
  cleared.Set(&timer, absl::Milliseconds(1), [] {});
  cleared.Clear();
  first.wait();
  soon.Clear();
}

TEST(ScopedDeadlineTest, WhatHasExpiredMayDestroyIt) {
  DeadlineTimer timer;
  std::latch over(1);
  auto deadline = std::make_unique<ScopedDeadline>();
  std::latch set(1);
  deadline->Set(&timer, absl::Milliseconds(1), [&] {
    set.wait();
    deadline.reset();
    over.count_down();
  });
  set.count_down();
  over.wait();
}

TEST(WaitWithinTest, UntilItIsOverOrPatienceIs) {
  DeadlineTimer timer;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  const auto over = [&] { return is_over; };
  EXPECT_FALSE(WaitWithin(&timer, absl::ZeroDuration(), &mutex, &changed, over));
  EXPECT_FALSE(WaitWithin(&timer, absl::Milliseconds(1), &mutex, &changed, over));
  std::latch looked(1);
  std::thread other([&] {
    looked.wait();
    std::lock_guard<std::mutex> lock(mutex);
    is_over = true;
    changed.notify_all();
  });
  int looks = 0;
  EXPECT_TRUE(WaitWithin(&timer, absl::InfiniteDuration(), &mutex, &changed, [&] {
    if (++looks == 1) looked.count_down();
    return is_over;
  }));
  other.join();
  EXPECT_TRUE(WaitWithin(&timer, absl::ZeroDuration(), &mutex, &changed, over));
}

}  // namespace
}  // namespace troupe

#include "devices/cpu/deadline_timer.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>

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

}  // namespace
}  // namespace troupe

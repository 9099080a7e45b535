#include "devices/cpu/flush_denormals.h"

#include <atomic>
#include <thread>

#include "devices/cpu/compute_pool.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

/// Whether this thread computes with denormal numbers. The compiler must not know the operands.
bool HasDenormals() {
  volatile float tiny = 1e-40f;
  volatile float one = 1.0f;
  return tiny * one != 0.0f;
}

TEST(FlushDenormalsTest, LastsAsLongAsTheObjectAndNests) {
  ASSERT_TRUE(HasDenormals());
  {
    const ScopedFlushDenormals outer;
    EXPECT_FALSE(HasDenormals());
    {
      const ScopedFlushDenormals inner;
      EXPECT_FALSE(HasDenormals());
    }
    EXPECT_FALSE(HasDenormals());
  }
  EXPECT_TRUE(HasDenormals());
}

TEST(FlushDenormalsTest, LeavesNormalNumbersAlone) {
  const ScopedFlushDenormals flush;
  volatile double smallest = 2.2250738585072014e-308;
  EXPECT_NE(smallest * 1.0, 0.0);
  EXPECT_EQ(smallest * 0.5, 0.0);
}

struct Task : PoolTask {
  std::atomic<int> denormals{-1};
  void Run() noexcept override {
    denormals.store(HasDenormals());
    denormals.notify_all();
  }
};

/// A caller that waits for a step helps with tasks and with pieces of loops.
TEST(FlushDenormalsTest, WhoHelpsThePoolFlushes) {
  ComputePool pool(/*threads=*/1);
  Task task;
  pool.Submit(&task);
  ASSERT_TRUE(pool.RunOne());
  EXPECT_EQ(task.denormals.load(), 0);

  ComputePool two(/*threads=*/2);
  std::atomic<bool> helped{false};
  std::atomic<int> with_denormals{0};
  const std::thread::id helper = std::this_thread::get_id();
  std::thread owner([&] {
    const ScopedFlushDenormals flush;
    while (!helped) {
      two.ParallelFor(64, 1, [&](int64_t, int64_t) {
        if (HasDenormals()) ++with_denormals;
        if (std::this_thread::get_id() == helper) helped = true;
        std::this_thread::yield();
      });
    }
  });
  while (!helped) two.RunOne();
  owner.join();
  EXPECT_EQ(with_denormals, 0);
  EXPECT_TRUE(HasDenormals());
}

TEST(FlushDenormalsTest, ThreadsOfThePoolFlush) {
  ComputePool pool(/*threads=*/2);
  Task task;
  pool.Submit(&task);
  task.denormals.wait(-1);
  EXPECT_EQ(task.denormals.load(), 0);
}

}  // namespace
}  // namespace troupe

#include "devices/cpu/flush_denormals.h"

#include <atomic>
#include <cmath>

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

TEST(FlushDenormalsTest, ThreadsOfThePoolFlush) {
  struct Task : PoolTask {
    std::atomic<int> denormals{-1};
    void Run() noexcept override {
      denormals.store(HasDenormals());
      denormals.notify_all();
    }
  };
  ComputePool pool(/*threads=*/2);
  Task task;
  pool.Submit(&task);
  task.denormals.wait(-1);
  EXPECT_EQ(task.denormals.load(), 0);
}

}  // namespace
}  // namespace troupe

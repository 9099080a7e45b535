#include "devices/cpu/compute_pool.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

struct CountTask : PoolTask {
  std::atomic<int>* count = nullptr;
  void Run() noexcept override { count->fetch_add(1); }
};

void WaitFor(ComputePool* pool, const std::atomic<int>& count, int wanted) {
  while (count.load() < wanted) {
    if (!pool->RunOne()) std::this_thread::yield();
  }
}

TEST(ComputePool, SignalsGoToThreadsOfTheProgram) {
  struct MaskTask : PoolTask {
    void Run() noexcept override {
      pthread_sigmask(SIG_BLOCK, nullptr, &mask);
      done.count_down();
    }
    sigset_t mask;
    std::latch done{1};
  } task;
  ComputePool pool(2);
  pool.Submit(&task);
  task.done.wait();
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) {
    EXPECT_EQ(sigismember(&task.mask, number), 1) << number;
  }
  for (const int number : {SIGSEGV, SIGFPE, SIGABRT, SIGPROF}) {
    EXPECT_EQ(sigismember(&task.mask, number), 0) << number;
  }
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

TEST(ComputePool, WithoutWorkersTasksWaitForRunOne) {
  ComputePool pool(1);
  EXPECT_EQ(pool.threads(), 1);
  std::atomic<int> count{0};
  std::vector<CountTask> tasks(3);
  for (CountTask& task : tasks) {
    task.count = &count;
    pool.Submit(&task);
  }
  EXPECT_EQ(pool.queued(), 3);
  EXPECT_TRUE(pool.RunOne());
  EXPECT_EQ(count.load(), 1);
  EXPECT_TRUE(pool.RunOne());
  EXPECT_TRUE(pool.RunOne());
  EXPECT_FALSE(pool.RunOne());
}

TEST(ComputePool, WorkersRunEveryTaskOnce) {
  for (int threads : {2, 4}) {
    for (int spin : {0, 30}) {
      ComputePool pool(threads, spin);
      std::atomic<int> count{0};
      std::vector<CountTask> tasks(2000);
      int submitted = 0;
      for (CountTask& task : tasks) {
        task.count = &count;
        pool.Submit(&task);
        // Every so often the workers run dry and fall asleep.
        if (++submitted % 100 == 0) WaitFor(&pool, count, submitted);
      }
      WaitFor(&pool, count, 2000);
      EXPECT_EQ(count.load(), 2000);
    }
  }
}

TEST(ComputePool, SleepingWorkersWakeUp) {
  ComputePool pool(2, 0);
  std::atomic<int> count{0};
  for (int i = 1; i <= 200; ++i) {
    CountTask task;
    task.count = &count;
    pool.Submit(&task);
    while (count.load() < i) std::this_thread::yield();  // only the worker can run it
  }
}

TEST(ComputePool, DestructionRunsWhatIsQueued) {
  std::atomic<int> count{0};
  std::vector<CountTask> tasks(100);
  {
    ComputePool pool(3);
    for (CountTask& task : tasks) {
      task.count = &count;
      pool.Submit(&task);
    }
  }
  EXPECT_EQ(count.load(), 100);
}

TEST(ParallelFor, RangesDependOnTotalAndGrainOnly) {
  const struct {
    int64_t total, grain;
  } kCases[] = {{0, 5},   {-3, 5},   {1, 1},    {10, 3}, {10, 0},
                {10, -2}, {10, 100}, {1000, 7}, {64, 64}};
  for (const auto& c : kCases) {
    std::set<std::pair<int64_t, int64_t>> ranges[3];
    int at = 0;
    for (int threads : {1, 2, 4}) {
      ComputePool pool(threads);
      std::mutex mutex;
      pool.ParallelFor(c.total, c.grain, [&](int64_t begin, int64_t end) {
        std::lock_guard lock(mutex);
        EXPECT_TRUE(ranges[at].insert({begin, end}).second);
      });
      ++at;
    }
    EXPECT_EQ(ranges[0], ranges[1]);
    EXPECT_EQ(ranges[0], ranges[2]);
    int64_t next = 0;
    for (auto [begin, end] : ranges[0]) {
      EXPECT_EQ(begin, next);
      EXPECT_GT(end, begin);
      next = end;
    }
    EXPECT_EQ(next, std::max<int64_t>(c.total, 0));
  }
}

TEST(ParallelFor, HugeTotalsDoNotOverflow) {
  ComputePool pool(2);
  std::atomic<int> calls{0};
  pool.ParallelFor(INT64_MAX, INT64_MAX / 2 + 1, [&](int64_t begin, int64_t end) {
    EXPECT_LT(begin, end);
    ++calls;
  });
  EXPECT_EQ(calls.load(), 2);
}

TEST(ParallelFor, Nests) {
  ComputePool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(8, 1, [&](int64_t i, int64_t) {
      pool.ParallelFor(8, 1, [&](int64_t j, int64_t) {
        pool.ParallelFor(4, 1, [&](int64_t k, int64_t) { sum += i * 100 + j * 10 + k; });
      });
    });
    EXPECT_EQ(sum.load(), 100 * 28 * 32 + 10 * 28 * 32 + 6 * 64);
  }
}

TEST(ParallelFor, FromManyThreadsAndFromTasks) {
  ComputePool pool(3);
  struct LoopTask : PoolTask {
    ComputePool* pool = nullptr;
    std::atomic<int>* count = nullptr;
    std::atomic<int>* done = nullptr;
    void Run() noexcept override {
      pool->ParallelFor(50, 3, [this](int64_t begin, int64_t end) { *count += int(end - begin); });
      ++*done;
    }
  };
  std::atomic<int> count{0}, done{0};
  std::vector<LoopTask> tasks(100);
  for (LoopTask& task : tasks) {
    task.pool = &pool;
    task.count = &count;
    task.done = &done;
    pool.Submit(&task);
  }
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        std::atomic<int> mine{0};
        pool.ParallelFor(40, 7, [&](int64_t begin, int64_t end) { mine += int(end - begin); });
        EXPECT_EQ(mine.load(), 40);
      }
    });
  }
  WaitFor(&pool, done, 100);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(count.load(), 5000);
}

TEST(ComputePool, AnExceptionReachesTheCaller) {
  for (int threads : {1, 2, 4}) {
    ComputePool pool(threads);
    for (int64_t bad : {0, 7, 99}) {
      std::atomic<int> inside{0};
      const auto loop = [&] {
        pool.ParallelFor(100, 1, [&](int64_t begin, int64_t) {
          inside.fetch_add(1);
          // Others are at work when it is thrown.
          std::this_thread::sleep_for(std::chrono::microseconds(20));
          inside.fetch_sub(1);
          if (begin == bad) throw std::runtime_error(std::to_string(begin));
        });
      };
      try {
        loop();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), std::to_string(bad));
      }
      EXPECT_EQ(inside.load(), 0) << "the loop is over";
      // All may throw at once; nested loops pass it on.
      EXPECT_THROW(pool.ParallelFor(4, 1,
                                    [&](int64_t, int64_t) {
                                      pool.ParallelFor(
                                          8, 1, [](int64_t, int64_t) { throw std::bad_alloc(); });
                                    }),
                   std::bad_alloc);
      std::atomic<int64_t> sum{0};
      pool.ParallelFor(100, 3, [&](int64_t begin, int64_t end) { sum.fetch_add(end - begin); });
      EXPECT_EQ(sum.load(), 100) << "the pool works as before";
    }
  }
}

struct LongTask : PoolTask {
  explicit LongTask(std::function<void()> j) : job(std::move(j)) {}
  void Run() noexcept override { job(); }
  std::function<void()> job;
};

TEST(ComputePool, LongTasksAreWorkersOnly) {
  for (int threads : {1, 2, 4}) {
    ComputePool pool(threads);
    EXPECT_FALSE(pool.OnWorker());
    std::latch go(1), begun(1), over(3);
    LongTask first([&] {
      EXPECT_TRUE(pool.OnWorker());
      begun.count_down();
      go.wait();
      over.count_down();
    });
    LongTask others[] = {LongTask([&] { over.count_down(); }),
                         LongTask([&] { over.count_down(); })};
    pool.SubmitLong(&first);
    begun.wait();
    for (LongTask& task : others) pool.SubmitLong(&task);
    EXPECT_FALSE(pool.RunOne()) << "whoever waits for something else takes none";
    go.count_down();
    over.wait();
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(100, 3, [&](int64_t begin, int64_t end) { sum.fetch_add(end - begin); });
    EXPECT_EQ(sum.load(), 100);
  }
}

TEST(ComputePool, AWorkerMayLetGoOfThePool) {
  for (int threads : {1, 3}) {
    auto pool = std::make_unique<ComputePool>(threads);
    std::latch over(1);
    LongTask last([&] {
      pool.reset();
      over.count_down();
    });
    ComputePool* const raw = pool.get();
    raw->SubmitLong(&last);
    over.wait();
    EXPECT_EQ(pool, nullptr);
  }
}

}  // namespace
}  // namespace troupe

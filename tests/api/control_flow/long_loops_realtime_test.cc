// Loops that run long or never end: memory, deadlines, cancellation.
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "tests/api/control_flow/flow_test_util.h"
#include "tests/resident_memory.h"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class LongLoopsTest : public FlowTest {
 protected:
  /// A loop that never ends.
  Output Endless() {
    Outputs end = WhileLoop(
        s_.WithOpName("endless"), {0},
        [](const Scope& s, Variables v) { return ops::Less(s, v[0], 1 << 30); },
        [](const Scope& s, Variables v) {
          return Outputs{ops::Minimum(s, ops::Add(s, v[0], 1), 9)};
        });
    EXPECT_TRUE(s_.ok()) << s_.status();
    return end.empty() ? Output() : end[0];
  }
};
INSTANTIATE_TEST_SUITE_P(Optimize, LongLoopsTest, testing::Bool());

TEST_P(LongLoopsTest, AMillionIterationsNeedNoMemory) {
  Output n = Placeholder(ElementType::kInt32);
  Output state = Const(s_, Tensor::Vector<float>(std::vector<float>(1000, 1.0f)));
  Outputs end = WhileLoop(
      s_, {0, state}, [&](const Scope& s, Variables v) { return ops::Less(s, v[0], n); },
      [](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], 1.0f)};
      });
  auto session = NewSession();
  auto run = [&](int32_t count) {
    auto values = session->Run({{n, Tensor::Scalar(count)}}, end);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<int32_t>(), count);
    EXPECT_EQ((*values)[1].unchecked_data<float>()[999], static_cast<float>(count + 1));
  };
  run(10'000);
  const int64_t before = ResidentBytes();
  run(1'000'000);
  EXPECT_LT(ResidentBytes() - before, kKeptBytes + (4 << 20)) << "bytes more than before";
}

TEST_P(LongLoopsTest, AThousandConcurrentStepsLeaveNothingBehind) {
  Output n = Placeholder(ElementType::kInt32);
  Output total = Sum(s_, n, [&](const Scope& s, Output i) {
    return Sum(s, 10, [&](const Scope&, Output) { return i; });
  });
  auto session = NewSession();
  auto wave = [&](int steps) {
    std::atomic<int> running = steps, wrong = 0;
    for (int i = 0; i < steps; ++i) {
      const int32_t count = 20 + i % 7;
      session->RunAsync({{n.name(), Tensor::Scalar(count)}}, {total.name()}, {},
                        [&, count](absl::StatusOr<std::vector<Tensor>> values) {
                          const int32_t want = 10 * count * (count - 1) / 2;
                          if (!values.ok() || (*values)[0].unchecked_scalar<int32_t>() != want)
                            ++wrong;
                          --running;
                        });
    }
    while (running > 0) std::this_thread::yield();
    EXPECT_EQ(wrong, 0);
  };
  // What the allocator keeps grows for a while; what is left behind, for ever.
  constexpr int64_t kMost = kKeptBytes + (8 << 20);
  int64_t more = INT64_MAX;
  for (int i = 0; i < 5 && more >= kMost; ++i) {
    const int64_t before = ResidentBytes();
    for (int j = 0; j < 5; ++j) wave(1000);
    more = ResidentBytes() - before;
  }
  EXPECT_LT(more, kMost) << "bytes more than before";
}

TEST_P(LongLoopsTest, ADeadlineEndsAnEndlessLoop) {
  Output endless = Endless();
  auto session = NewSession();
  RunOptions options;
  options.timeout = absl::Milliseconds(200);
  const Clock::time_point begin = Clock::now();
  auto result = session->Run({}, {endless}, {}, options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
  EXPECT_GE(MillisecondsSince(begin), 190);
  EXPECT_LT(MillisecondsSince(begin), 300);
}

TEST_P(LongLoopsTest, ADeadlineEndsAnEndlessNest) {
  Output total = Sum(s_, 1, [&](const Scope& s, Output i) {
    return WhileLoop(
        s, {i}, [](const Scope& t, Variables v) { return ops::Less(t, v[0], 100); },
        [](const Scope& t, Variables v) { return Outputs{ops::Minimum(t, v[0], 5)}; })[0];
  });
  auto session = NewSession();
  RunOptions options;
  options.timeout = absl::Milliseconds(100);
  const Clock::time_point begin = Clock::now();
  auto result = session->Run({}, {total}, {}, options);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
  EXPECT_LT(MillisecondsSince(begin), 200);
}

TEST_P(LongLoopsTest, ClosingTheSessionEndsEndlessLoops) {
  Output endless = Endless();
  auto session = NewSession();
  std::vector<std::thread> threads;
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto result = session->Run({endless});
      if (result.status().code() == absl::StatusCode::kCancelled) ++cancelled;
    });
  }
  // All loops are to be running; a session does not tell.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(session->Close().ok());
  EXPECT_LT(MillisecondsSince(begin), 100);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(MillisecondsSince(begin), 150);
  EXPECT_EQ(cancelled, 4);
}

}  // namespace
}  // namespace troupe

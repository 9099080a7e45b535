// Runs that no thread waits with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <latch>
#include <stdexcept>

#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "graph/protos/config.pb.h"

namespace troupe {
namespace {

using Values = absl::StatusOr<std::vector<Tensor>>;

constexpr absl::Duration kSoon = absl::Seconds(60);  // Of what would otherwise never come.

bool Comes(std::latch* latch) {
  const absl::Time limit = absl::Now() + kSoon;
  while (!latch->try_wait() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(1));
  return latch->try_wait();
}

int NumThreads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<int>(std::distance(begin(threads), end(threads)));
}

/// A queue for one element: to put one in waits until the one before has been taken.
class RunAsyncTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    Output queue = ops::FIFOQueueV2(s_, {ElementType::kInt32}, {.capacity = 1});
    value_ = ops::Placeholder(s_.WithOpName("value"), ElementType::kInt32);
    put_ = ops::QueueEnqueueV2(s_.WithOpName("put"), queue, {value_});
    take_ = ops::QueueDequeueV2(s_.WithOpName("take"), queue, {ElementType::kInt32})[0];
    size_ = ops::QueueSizeV2(s_.WithOpName("size"), queue);
    twice_ = ops::Mul(s_.WithOpName("twice"), value_, 2);
    ASSERT_TRUE(s_.ok()) << s_.status();
    session_ = NewSession();
  }
  std::unique_ptr<Session> NewSession(std::shared_ptr<Runtime> runtime = nullptr) {
    return *Session::Create(s_.graph(),
                            {.threads = GetParam(), .num_cpu_devices = 1, .runtime = runtime});
  }
  static NamedTensors Fed(int32_t value) { return {{"value", Tensor::Scalar(value)}}; }
  void Put(int32_t value) {
    session_->RunAsync(Fed(value), {}, {"put"}, [](const Values& put) { EXPECT_TRUE(put.ok()); });
  }

  Scope s_ = Scope::NewRoot();
  Output value_, take_, size_, twice_;
  Node* put_ = nullptr;
  std::unique_ptr<Session> session_;
};

INSTANTIATE_TEST_SUITE_P(Threads, RunAsyncTest, testing::Values(1, 2, 4));

TEST_P(RunAsyncTest, AThousandStepsWaitAtOnce) {
  constexpr int kSteps = 1000;
  std::latch taken(kSteps);
  std::atomic<int64_t> sum = 0;
  session_->RunAsync(Fed(1), {"twice"}, {}, [](const Values&) {});  // The workers are there.
  const int threads = NumThreads();
  for (int i = 0; i < kSteps; ++i) {
    session_->RunAsync({}, {"take"}, {}, [&](const Values& values) {
      if (values.ok()) sum += (*values)[0].unchecked_scalar<int32_t>();
      taken.count_down();
    });
  }
  EXPECT_FALSE(taken.try_wait());
  EXPECT_LE(NumThreads(), threads);
  for (int i = 0; i < kSteps; ++i) Put(i);
  ASSERT_TRUE(Comes(&taken)) << "steps that wait keep others from running";
  EXPECT_EQ(sum, kSteps * (kSteps - 1) / 2);
  EXPECT_EQ((*session_->Run({size_}))[0].unchecked_scalar<int32_t>(), 0);
}

TEST_P(RunAsyncTest, DeadlinesFire) {
  constexpr int kSteps = 100;
  std::latch late(kSteps);
  std::atomic<int> wrong = 0;
  for (int i = 0; i < kSteps; ++i) {
    RunOptions options;
    // Not at all, at once, soon, and after the clock's end.
    options.timeout = absl::Milliseconds(i % 20 - 2);
    session_->RunAsync(options, {}, {"take"}, {}, [&](const Values& values) {
      if (!absl::IsDeadlineExceeded(values.status())) ++wrong;
      late.count_down();
    });
  }
  ASSERT_TRUE(Comes(&late));
  EXPECT_EQ(wrong, 0);
  RunOptions never;
  never.timeout = absl::Hours(24 * 365) * 10000;
  std::latch taken(1);
  session_->RunAsync(never, {}, {"take"}, {}, [&](const Values& values) {
    EXPECT_TRUE(values.ok()) << values.status();
    taken.count_down();
  });
  Put(1);
  ASSERT_TRUE(Comes(&taken));
}

// Steps that no worker has begun, too.
TEST_P(RunAsyncTest, DeadlinesFireWhileAllWorkersAreBusy) {
  constexpr int kSteps = 100;
  const int workers = std::max(1, GetParam() - 1);
  // Workers may be about to leave their callbacks when the test ends.
  const auto busy = std::make_shared<std::latch>(workers);
  const auto go_on = std::make_shared<std::latch>(1);
  std::latch late(kSteps);
  for (int i = 0; i < workers; ++i) {
    session_->RunAsync(Fed(1), {"twice"}, {}, [busy, go_on](const Values&) {
      busy->count_down();
      go_on->wait();
    });
  }
  ASSERT_TRUE(Comes(busy.get()));
  std::atomic<int> wrong = 0;
  for (int i = 0; i < kSteps; ++i) {
    RunOptions options;
    options.timeout = absl::Milliseconds(i % 20 - 2);
    session_->RunAsync(options, Fed(1), {"twice"}, {}, [&](const Values& values) {
      if (!absl::IsDeadlineExceeded(values.status())) ++wrong;
      late.count_down();
    });
  }
  EXPECT_TRUE(Comes(&late));
  EXPECT_EQ(wrong, 0);
  // A callback may end the session.
  std::latch ended(1);
  session_->RunAsync(
      {.timeout = absl::ZeroDuration(), .trace = false}, {}, {"take"}, {},
      [&, own = std::shared_ptr<Session>(std::move(session_))](const Values&) mutable {
        go_on->count_down();
        own.reset();
        ended.count_down();
      });
  EXPECT_TRUE(Comes(&ended));
}

TEST_P(RunAsyncTest, TakesTensorsOfTheGraph) {
  std::latch over(3);
  session_->RunAsync({{value_, Tensor::Scalar<int32_t>(4)}}, {twice_}, {},
                     [&](const Values& values) {
                       ASSERT_TRUE(values.ok()) << values.status();
                       EXPECT_EQ((*values)[0].unchecked_scalar<int32_t>(), 8);
                       over.count_down();
                     });
  session_->RunAsync({{value_, Tensor::Scalar<int32_t>(4)}}, {}, {put_}, [&](const Values& values) {
    EXPECT_TRUE(values.ok()) << values.status();
    over.count_down();
  });
  session_->RunAsync(FeedMap{}, {Output()}, {}, [&](const Values& values) {
    EXPECT_TRUE(absl::IsInvalidArgument(values.status())) << values.status();
    over.count_down();
  });
  ASSERT_TRUE(Comes(&over));
}

TEST_P(RunAsyncTest, ErrorsAndTracesComeToTheCallback) {
  std::latch over(4);
  auto expect = [&](absl::StatusCode code) {
    return [&over, code](const Values& values) {
      EXPECT_EQ(values.status().code(), code) << values.status();
      over.count_down();
    };
  };
  session_->RunAsync({}, {"nobody"}, {}, expect(absl::StatusCode::kNotFound));
  session_->RunAsync({}, {"twice"}, {}, expect(absl::StatusCode::kInvalidArgument));
  session_->RunAsync({{"value", Tensor::Scalar(1.0f)}}, {"twice"}, {},
                     expect(absl::StatusCode::kInvalidArgument));
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  session_->RunAsync(options, Fed(4), {"twice"}, {}, expect(absl::StatusCode::kOk), &metadata);
  ASSERT_TRUE(Comes(&over));
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_GT(metadata.step_stats().dev_stats(0).node_stats_size(), 0);
}

TEST_P(RunAsyncTest, ClosingEndsWhatWaits) {
  constexpr int kSteps = 300;
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < kSteps; ++i) {
    session_->RunAsync({}, {"take"}, {}, [&](const Values& values) {
      if (absl::IsCancelled(values.status())) ++cancelled;
    });
  }
  EXPECT_TRUE(session_->Close().ok());
  EXPECT_EQ(cancelled, kSteps) << "all have been told when the session is closed";
  session_->RunAsync({}, {"take"}, {}, [&](const Values& values) {
    if (absl::IsCancelled(values.status())) ++cancelled;
  });
  session_.reset();
  EXPECT_EQ(cancelled, kSteps + 1);
}

TEST_P(RunAsyncTest, ACallbackThatThrowsLosesNothing) {
  for (int i = 0; i < 20; ++i) {
    session_->RunAsync(Fed(1), {"twice"}, {}, [i](const Values&) {
      if (i % 2 == 0) throw std::runtime_error("not the session's business");
      throw 1;
    });
  }
  std::latch over(1);
  session_->RunAsync(Fed(4), {"twice"}, {}, [&](const Values& values) {
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_scalar<int32_t>(), 8);
    over.count_down();
  });
  ASSERT_TRUE(Comes(&over));
  EXPECT_TRUE(session_->Run({{value_, Tensor::Scalar(4)}}, {twice_}).ok());
}

TEST_P(RunAsyncTest, SessionsThatShareARuntimeDoNotWaitForOneAnother) {
  session_->RunAsync({}, {"take"}, {}, [](const Values&) {});
  auto other = NewSession(session_->runtime());
  std::promise<Values> answer;
  other->RunAsync(Fed(2), {"twice"}, {}, [&](Values values) { answer.set_value(values); });
  const absl::Time start = absl::Now();
  other.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_TRUE(answer.get_future().get().status().code() != absl::StatusCode::kUnknown);
}

TEST_P(RunAsyncTest, ACallbackMayRunCloseAndDestroy) {
  std::promise<std::string> over;
  session_->RunAsync({}, {"take"}, {}, [](const Values&) {});
  session_->RunAsync(Fed(3), {"twice"}, {}, [&](const Values& values) {
    // One of the steps waits at the queue; its end needs the thread that this is.
    std::string said;
    if (!values.ok()) said += values.status().ToString();
    if (!session_->Run({{value_, Tensor::Scalar(4)}}, {twice_}).ok()) said += "no run";
    if (!session_->Close().ok()) said += "not closed";
    session_.reset();
    over.set_value(said);
  });
  auto said = over.get_future();
  ASSERT_EQ(said.wait_for(absl::ToChronoSeconds(kSoon)), std::future_status::ready);
  EXPECT_EQ(said.get(), "");
}

TEST_P(RunAsyncTest, StepsOnSeveralDevicesAreAsynchronousToo) {
  Scope s = Scope::NewRoot();
  const Scope first = s.WithDevice("/device:CPU:0"), second = s.WithDevice("/device:CPU:1");
  Output queue = ops::FIFOQueueV2(second, {ElementType::kInt32});
  Output x = ops::Placeholder(s.WithOpName("x"), ElementType::kInt32);
  Node* put = ops::QueueEnqueueV2(second, queue, {ops::Mul(first, x, 2)});
  Output take = ops::QueueDequeueV2(second, queue, {ElementType::kInt32})[0];
  ops::Neg(first.WithOpName("y"), take);
  auto session = *Session::Create(s.graph(), {.threads = GetParam(), .num_cpu_devices = 2});
  constexpr int kSteps = 200;
  std::latch taken(kSteps);
  std::atomic<int64_t> sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    session->RunAsync({}, {"y"}, {}, [&](const Values& values) {
      EXPECT_TRUE(values.ok()) << values.status();
      if (values.ok()) sum += (*values)[0].unchecked_scalar<int32_t>();
      taken.count_down();
    });
  }
  for (int i = 0; i < kSteps; ++i) {
    session->RunAsync({{"x", Tensor::Scalar(i)}}, {}, {put->name()}, [](const Values&) {});
  }
  ASSERT_TRUE(Comes(&taken));
  EXPECT_EQ(sum, -kSteps * (kSteps - 1));
  RunOptions options;
  options.timeout = absl::Milliseconds(20);
  std::latch late(1);
  session->RunAsync(options, {}, {"y"}, {}, [&](const Values& values) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(values.status())) << values.status();
    late.count_down();
  });
  ASSERT_TRUE(Comes(&late));
}

}  // namespace
}  // namespace troupe

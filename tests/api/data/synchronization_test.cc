#include "api/synchronization.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "api/ops.h"
#include "api/session.h"
#include "api/training/variables.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

using testing::ExpectEqual;
using Code = absl::StatusCode;
using Values = absl::StatusOr<std::vector<Tensor>>;

class SynchronizationTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> NewSession(int threads = 1) {
    EXPECT_TRUE(s.ok()) << s.status();
    SessionOptions options;
    options.threads = threads;  // Whoever waits must not hold a thread.
    auto session = Session::Create(s.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  static absl::Status RunNode(Session& session, Node* node,
                              absl::Duration timeout = absl::Seconds(20)) {
    RunOptions options;
    options.timeout = timeout;
    return session.Run(options, NamedTensors{}, {}, {node->name()}, nullptr);
  }
  static std::future<Values> Start(Session& session, Output output) {
    return std::async(std::launch::async, [&session, output] { return session.Run({output}); });
  }

  Scope s = Scope::NewRoot();
};

/// Reading and writing are two nodes: without the mutex, additions would be lost.
TEST_F(SynchronizationTest, CriticalSectionsExcludeOneAnother) {
  const ModelVariable count(s, Const(s, int64_t{0}), "count");
  const CriticalSection section(s);
  const std::vector<Output> sums = section.Execute(s, [&](const Scope& locked) {
    const Output sum = ops::AddV2(locked, count.Read(locked), int64_t{1});
    Node* const assigned = count.Assign(locked, sum);
    return std::vector<Output>{ops::Identity(locked.WithControlDependencies({&assigned, 1}), sum)};
  });
  auto session = NewSession(4);
  ASSERT_EQ(RunNode(*session, count.initializer()), absl::OkStatus());
  constexpr int kSteps = 64;
  std::vector<std::future<Values>> steps;
  for (int i = 0; i < kSteps; ++i) steps.push_back(Start(*session, sums[0]));
  std::set<int64_t> seen;
  for (auto& step : steps) {
    const Values values = step.get();
    ASSERT_TRUE(values.ok()) << values.status();
    seen.insert((*values)[0].unchecked_scalar<int64_t>());
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(*seen.rbegin(), kSteps);
}

TEST_F(SynchronizationTest, AStepThatFailsGivesTheMutexBack) {
  const CriticalSection section(s);
  const Output bad = ops::Placeholder(s.WithOpName("bad"), ElementType::kInt32);
  const std::vector<Output> failing = section.Execute(s, [&](const Scope& locked) {
    return std::vector<Output>{ops::Reshape(locked, Tensor::Vector<float>({1, 2}), bad)};
  });
  const std::vector<Output> fine = section.Execute(s, [&](const Scope& locked) {
    return std::vector<Output>{ops::Identity(locked, Const(locked, 1.0f))};
  });
  auto session = NewSession();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(session->Run({{bad, Tensor::Vector<int32_t>({3})}}, {failing[0]}).status().code(),
              Code::kInvalidArgument);
    EXPECT_TRUE(session->Run({fine[0]}).ok());
  }
}

/// A section that waits for itself is ended by the step's deadline, and leaves nothing locked.
TEST_F(SynchronizationTest, ADeadlineEndsAWaitInside) {
  const CriticalSection section(s);
  Node* const nested = section.ExecuteNodes(s, [&](const Scope& locked) {
    Node* const inner = section.ExecuteNodes(
        locked, [&](const Scope& twice) { return std::vector<Node*>{ops::NoOp(twice)}; });
    return std::vector<Node*>{inner};
  });
  Node* const plain = section.ExecuteNodes(
      s, [&](const Scope& locked) { return std::vector<Node*>{ops::NoOp(locked)}; });
  auto session = NewSession();
  EXPECT_EQ(RunNode(*session, nested, absl::Milliseconds(20)).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(RunNode(*session, plain), absl::OkStatus());
}

TEST_F(SynchronizationTest, BarriersJoinWhatStepsCompute) {
  const Barrier barrier(s, {ElementType::kFloat, ElementType::kInt64}, {Shape(), Shape({1})});
  const Output key = ops::Placeholder(s.WithOpName("key"), ElementType::kString);
  Node* const first = barrier.InsertMany(s, 0, key, Tensor::Vector<float>({1.5f}));
  Node* const second =
      barrier.InsertMany(s, 1, key, Tensor::Vector<int64_t>({7}).Reshaped(Shape({1, 1})));
  const Barrier::Batch batch = barrier.TakeMany(s, int32_t{2});
  const Output ready = barrier.ReadySize(s), incomplete = barrier.IncompleteSize(s);
  Node* const close = barrier.Close(s);
  auto session = NewSession();
  auto taking = std::async(std::launch::async, [&] {
    return session->Run({batch.keys, batch.values[1]});
  });
  for (const char* name : {"a", "b"}) {
    const Tensor keys = Tensor::Vector<std::string>({name});
    for (Node* node : {first, second}) {
      ASSERT_EQ(session->Run(NamedTensors{{"key", keys}}, {}, {node->name()}, nullptr),
                absl::OkStatus());
    }
  }
  const Values taken = taking.get();
  ASSERT_TRUE(taken.ok()) << taken.status();
  ExpectEqual((*taken)[0], Tensor::Vector<std::string>({"a", "b"}));
  ExpectEqual((*taken)[1], Tensor::Vector<int64_t>({7, 7}).Reshaped(Shape({2, 1})));
  const Values sizes = session->Run({ready, incomplete});
  EXPECT_EQ((*sizes)[0].unchecked_scalar<int32_t>() + (*sizes)[1].unchecked_scalar<int32_t>(), 0);
  auto late = Start(*session, batch.keys);
  EXPECT_EQ(RunNode(*session, close), absl::OkStatus());
  EXPECT_EQ(late.get().status().code(), Code::kOutOfRange);
}

TEST_F(SynchronizationTest, StagingAreasHandOn) {
  const StagingArea area(s, {ElementType::kFloat}, {.capacity = 1});
  Node* const put = area.Put(s, {ops::Placeholder(s.WithOpName("x"), ElementType::kFloat)});
  const OutputList taken = area.Get(s);
  const OutputList seen = area.Peek(s, int32_t{0});
  const Output size = area.Size(s);
  auto session = NewSession();
  const auto stage = [&](float value) {
    return session->Run(NamedTensors{{"x", Tensor::Scalar(value)}}, {}, {put->name()}, nullptr);
  };
  ASSERT_EQ(stage(1), absl::OkStatus());
  EXPECT_EQ((*session->Run({seen[0]}))[0].unchecked_scalar<float>(), 1);
  auto blocked = std::async(std::launch::async, [&] { return stage(2); });
  EXPECT_EQ((*session->Run({taken[0]}))[0].unchecked_scalar<float>(), 1);
  EXPECT_EQ(blocked.get(), absl::OkStatus());
  EXPECT_EQ((*session->Run({size}))[0].unchecked_scalar<int32_t>(), 1);
  EXPECT_EQ((*session->Run({taken[0]}))[0].unchecked_scalar<float>(), 2);
  RunOptions hurried;
  hurried.timeout = absl::Milliseconds(10);
  std::vector<Tensor> none;
  EXPECT_EQ(session->Run(hurried, NamedTensors{}, {taken[0].name()}, {}, &none).code(),
            Code::kDeadlineExceeded);
  // The one whose time was over takes nothing.
  ASSERT_EQ(stage(3), absl::OkStatus());
  EXPECT_EQ((*session->Run({taken[0]}))[0].unchecked_scalar<float>(), 3);
  EXPECT_EQ(area.Put(s, {int32_t{1}}), nullptr);
  EXPECT_EQ(s.status().code(), Code::kInvalidArgument);
}

TEST_F(SynchronizationTest, MapsHandOnByKey) {
  for (const bool ordered : {false, true}) {
    s = Scope::NewRoot();
    const MapStagingArea area(s, {ElementType::kFloat, ElementType::kInt32}, ordered);
    const Output key = ops::Placeholder(s.WithOpName("key"), ElementType::kInt64);
    Node* const whole = area.Put(s, key, {1.0f, int32_t{2}});
    Node* const part0 = area.Put(s, key, {3.0f}, {0});
    Node* const part1 = area.Put(s, key, {int32_t{4}}, {1});
    const OutputList taken = area.Get(s, key);
    const auto any = area.GetAny(s, {1});
    const OutputList seen = area.Peek(s, key, {1});
    const Output size = area.Size(s), incomplete = area.IncompleteSize(s);
    Node* const clear = area.Clear(s);
    auto session = NewSession();
    const auto run = [&](Node* node, int64_t at) {
      return session->Run(NamedTensors{{"key", Tensor::Scalar(at)}}, {}, {node->name()}, nullptr);
    };
    auto waiting = std::async(std::launch::async, [&] {
      return session->Run({{key, Tensor::Scalar<int64_t>(9)}}, {taken[0], taken[1]});
    });
    ASSERT_EQ(run(whole, 5), absl::OkStatus());
    ASSERT_EQ(run(part0, 9), absl::OkStatus());
    ASSERT_EQ(run(part1, 9), absl::OkStatus());
    const Values nine = waiting.get();
    ASSERT_TRUE(nine.ok()) << nine.status();
    EXPECT_EQ((*nine)[1].unchecked_scalar<int32_t>(), 4);
    EXPECT_EQ((*session->Run({{key, Tensor::Scalar<int64_t>(5)}}, {seen[0]}))[0]
                  .unchecked_scalar<int32_t>(),
              2);
    EXPECT_EQ((*session->Run({any.key}))[0].unchecked_scalar<int64_t>(), 5);
    ASSERT_EQ(run(part0, 1), absl::OkStatus());
    EXPECT_EQ((*session->Run({incomplete}))[0].unchecked_scalar<int32_t>(), 1);
    EXPECT_EQ(RunNode(*session, clear), absl::OkStatus());
    const Values sizes = session->Run({size, incomplete});
    EXPECT_EQ((*sizes)[0].unchecked_scalar<int32_t>(), 0);
    EXPECT_EQ((*sizes)[1].unchecked_scalar<int32_t>(), 0);
  }
}

TEST_F(SynchronizationTest, ClosingTheSessionEndsAllWaits) {
  const StagingArea area(s, {ElementType::kFloat});
  const Barrier barrier(s, {ElementType::kFloat}, {Shape()});
  const Output staged = area.Get(s)[0], taken = barrier.TakeMany(s, int32_t{1}).keys;
  auto session = NewSession();
  std::vector<std::future<Values>> waiting;
  for (const Output& output : {staged, taken, staged}) {
    waiting.push_back(Start(*session, output));
  }
  for (auto& step : waiting) {
    EXPECT_EQ(step.wait_for(std::chrono::milliseconds(10)), std::future_status::timeout);
  }
  EXPECT_TRUE(session->Close().ok());
  for (auto& step : waiting) EXPECT_FALSE(step.get().ok());
}

}  // namespace
}  // namespace troupe

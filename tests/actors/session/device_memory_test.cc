// Steps on a device with a memory of its own, here the simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <thread>

#include "api/control_flow.h"
#include "api/gradients.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/variables.h"
#include "graph/protos/stats.pb.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class DeviceMemoryTest : public ::testing::Test {
 protected:
  DeviceMemoryTest() { troupe::testing::BorrowKernels(); }
  std::unique_ptr<Session> NewSession(uint64_t seed, int threads = 2) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    troupe::testing::UseSimulatedDevices({.seed = seed});
    SessionOptions options;
    options.threads = threads;
    options.devices["SIM"] = {};
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  Tensor Random(const Shape& shape) {
    Tensor tensor = Tensor::Uninitialized(ElementType::kFloat, shape);
    for (float& value : tensor.mutable_values<float>()) {
      value = std::sin(static_cast<float>(++drawn_));
    }
    return tensor;
  }
  /// The same nodes twice, for a device each.
  void ExpectSameOnBoth(const std::function<std::vector<Output>(const Scope& scope)>& build,
                        const FeedMap& feeds) {
    const std::vector<Output> here = build(s_.WithDevice("/device:CPU:0"));
    const std::vector<Output> there = build(sim_);
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      auto session = NewSession(seed);
      for (int i = 0; i < 3; ++i) {
        auto want = session->Run(feeds, here);
        const int64_t tasks = troupe::testing::NumSimulatedTasks();
        auto got = session->Run(feeds, there);
        EXPECT_GT(troupe::testing::NumSimulatedTasks(), tasks);
        ASSERT_TRUE(want.ok()) << want.status();
        ASSERT_TRUE(got.ok()) << got.status();
        for (size_t k = 0; k < want->size(); ++k) {
          EXPECT_EQ((*got)[k].ToString(100), (*want)[k].ToString(100)) << "fetch " << k;
        }
      }
    }
  }

  int drawn_ = 0;
  Scope s_ = Scope::NewRoot();
  Scope sim_ = s_.WithDevice("/device:SIM:0");
};

TEST_F(DeviceMemoryTest, ComputesWhatTheCpuComputes) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  ExpectSameOnBoth(
      [&](const Scope& s) {
        const Output y = ops::MatMul(s, x, x);
        const Output z = ops::Mul(s, ops::Tanh(s, y), ops::Add(s, x, y));
        const Output shape = ops::Shape(s, z);
        return std::vector<Output>{
            z, ops::Sum(s, z, Tensor::Vector<int32_t>({1})), shape,
            ops::Reshape(s, z,
                         ops::Add(s, ops::Mul(s, shape, Tensor::Vector<int32_t>({2, 0})),
                                  Tensor::Vector<int32_t>({0, -1}))),
            ops::Where(s, ops::Greater(s, z, 0.0f))};
      },
      {{x, Random(Shape({6, 6}))}});
}

TEST_F(DeviceMemoryTest, LoopsKeepTheirValuesThere) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  ExpectSameOnBoth(
      [&](const Scope& s) {
        return WhileLoop(
            s, {Output(ops::Const(s, Tensor::Scalar<int32_t>(0))), x},
            [](const Scope& s, absl::Span<const Output> v) {
              return ops::Less(s, v[0], Tensor::Scalar<int32_t>(50));
            },
            [&](const Scope& s, absl::Span<const Output> v) {
              return std::vector<Output>{
                  ops::Add(s, v[0], Tensor::Scalar<int32_t>(1)),
                  ops::Tanh(s, ops::Add(s, ops::Neg(s, v[1]), ops::Mul(s, x, x)))};
            });
      },
      {{x, Random(Shape({3, 4}))}});
}

TEST_F(DeviceMemoryTest, ValuesCrossBetweenDevices) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  Output y = x, z = x;
  for (int i = 0; i < 20; ++i) {
    y = ops::Add(i % 2 == 0 ? sim_ : s_.WithDevice("/device:CPU:0"), ops::Neg(sim_, y), x);
    z = ops::Add(s_.WithDevice("/device:CPU:0"), ops::Neg(s_.WithDevice("/device:CPU:0"), z), x);
  }
  const Tensor value = Random(Shape({100}));
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto session = NewSession(seed);
    auto values = session->Run({{x, value}}, {y, z});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].ToString(100), (*values)[1].ToString(100));
  }
}

TEST_F(DeviceMemoryTest, WhatAKernelFindsOutLateNamesItsNode) {
  const Output i = ops::Placeholder(s_, ElementType::kInt64);
  const Output bad = ops::FloorDiv(sim_.WithOpName("culprit"), i, Tensor::Scalar<int64_t>(0));
  const Output y = ops::Neg(sim_, ops::Neg(sim_, bad));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto session = NewSession(seed);
    const absl::Status status = session->Run({{i, Tensor::Vector<int64_t>({1, 2})}}, {y}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("[[node culprit"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("/device:SIM:0"));
  }
}

TEST_F(DeviceMemoryTest, ANodeWithoutAKernelSaysSoOrGoesToTheCpu) {
  const Output y = ops::QueueSizeV2(sim_, ops::FIFOQueueV2(sim_, {ElementType::kFloat}));
  SessionOptions options;
  options.devices["SIM"] = {};
  troupe::testing::UseSimulatedDevices();
  auto strict = Session::Create(s_.graph(), options).value();
  const absl::Status status = strict->Run({y}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  options.allow_soft_placement = true;
  auto soft = Session::Create(s_.graph(), options).value();
  EXPECT_TRUE(soft->Run({y}).ok());
}

TEST_F(DeviceMemoryTest, StateIsWhereAllThatTakeItHaveKernels) {
  // Strings cannot be scattered there; that is another step's, though, than the first assignment.
  const Output handle = ops::VarHandleOp(sim_, ElementType::kString, PartialShape({2}));
  const Output value = ops::Const(sim_, Tensor::Vector<std::string>({"a", "b"}));
  Node* const init = ops::AssignVariableOp(sim_, handle, value);
  Node* const change =
      ops::ResourceScatterUpdate(sim_, handle, Tensor::Vector<int32_t>({1}),
                                 ops::Const(sim_, Tensor::Vector<std::string>({"c"})));
  const Output read = ops::ReadVariableOp(sim_, handle, ElementType::kString);
  SessionOptions options;
  options.devices["SIM"] = {};
  options.allow_soft_placement = true;
  troupe::testing::UseSimulatedDevices();
  auto session = Session::Create(s_.graph(), options).value();
  for (Node* node : {init, change}) {
    const absl::Status status = session->RunTargets({node});
    ASSERT_TRUE(status.ok()) << status;
  }
  auto values = session->Run({read});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].unchecked_values<std::string>(), ::testing::ElementsAre("a", "c"));
}

TEST_F(DeviceMemoryTest, ADeadlineAndACloseEndStepsThatAreUnderWay) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const Output forever = WhileLoop(
      sim_, {x},
      [](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], 1e30f); },
      [](const Scope& s, absl::Span<const Output> v) {
        return std::vector<Output>{ops::Mul(s, v[0], 1.0f)};
      })[0];
  const Tensor one = Tensor::Scalar(1.0f);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    auto session = NewSession(seed);
    RunOptions late;
    late.timeout = absl::Milliseconds(20);
    const absl::Status status = session->Run({{x, one}}, {forever}, {}, late).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    std::vector<std::future<absl::Status>> steps;
    for (int i = 0; i < 4; ++i) {
      steps.push_back(std::async(std::launch::async, [&] {
        return session->Run({{x, one}}, {forever}).status();
      }));
    }
    // Nothing tells from outside that a step has begun; one that has not is cancelled as well.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(session->Close().ok());
    for (auto& step : steps) EXPECT_TRUE(absl::IsCancelled(step.get()));
  }
}

TEST_F(DeviceMemoryTest, VariablesAreUpdatedThereAndNoReaderSeesHalfAnUpdate) {
  const int kSize = 1000, kSteps = 50;
  const ModelVariable v(sim_, ops::Fill(sim_, Tensor::Vector<int32_t>({kSize}), 0.0f), "v");
  Node* const add = v.AssignAdd(sim_, ops::Fill(sim_, Tensor::Vector<int32_t>({kSize}), 1.0f));
  const Output old = ops::VariableV2(sim_, PartialShape({kSize}), ElementType::kFloat);
  const Output init =
      ops::Assign(sim_, old, ops::Fill(sim_, Tensor::Vector<int32_t>({kSize}), 0.0f));
  const Output add_old =
      ops::AssignAdd(sim_, old, ops::Fill(sim_, Tensor::Vector<int32_t>({kSize}), 1.0f));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    auto session = NewSession(seed);
    ASSERT_TRUE(session->Run({}, {}, {v.initializer(), init.node}).ok());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kSteps; ++i) {
          ASSERT_TRUE(session->RunTargets({add, add_old.node}).ok());
          auto values = session->Run({v.value(), old});
          ASSERT_TRUE(values.ok()) << values.status();
          for (const Tensor& value : *values) {
            const absl::Span<const float> all = value.unchecked_values<float>();
            EXPECT_EQ(std::count(all.begin(), all.end(), all[0]), kSize);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    auto values = session->Run({v.value(), old});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_data<float>()[0], 4 * kSteps);
    EXPECT_EQ((*values)[1].unchecked_data<float>()[0], 4 * kSteps);
  }
}

TEST_F(DeviceMemoryTest, AVariableElsewhereIsReadAfterTheLoopThatChangedIt) {
  const Scope cpu = s_.WithDevice("/device:CPU:0");
  const Output v = ops::VariableV2(cpu, PartialShape({2}), ElementType::kFloat);
  const Output init = ops::Assign(cpu, v, Tensor::Vector<float>({1, 2}));
  const std::vector<Output> ends = WhileLoop(
      sim_, {Output(ops::Const(sim_, Tensor::Vector<float>({0, 0})))},
      [](const Scope& s, absl::Span<const Output> x) {
        return ops::Less(s, ops::Sum(s, x[0], Tensor::Vector<int32_t>({0})), 10.0f);
      },
      [&](const Scope& s, absl::Span<const Output> x) {
        const Output more = ops::Add(s, x[0], ops::OnesLike(s, x[0]));
        const Output update = ops::AssignAdd(s.WithDevice("/device:CPU:0"), v, more);
        return std::vector<Output>{ops::Identity(s.WithControlDependencies({update.node}), more)};
      });
  const Output read = ops::Neg(sim_.WithControlDependencies({ends[0].node}), v);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto session = NewSession(seed);
    ASSERT_TRUE(session->RunTargets({init.node}).ok());
    auto values = session->Run({read});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT((*values)[0].unchecked_values<float>(), ::testing::ElementsAre(-16, -17));
  }
}

TEST_F(DeviceMemoryTest, ManyThreadsRunManySteps) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  Output y = x;
  for (int i = 0; i < 30; ++i) y = ops::Add(sim_, ops::Neg(sim_, y), x);
  auto session = NewSession(7);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto value = static_cast<float>(t + 4 * i);
        auto values = session->Run({{x, Tensor::Scalar(value)}}, {y});
        ASSERT_TRUE(values.ok()) << values.status();
        EXPECT_EQ((*values)[0].unchecked_scalar<float>(), value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe

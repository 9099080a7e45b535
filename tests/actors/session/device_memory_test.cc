// Steps on a device with a memory of its own, here the simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <thread>

#include "api/control_flow.h"
#include "api/gradients.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/training/variables.h"
#include "graph/function_body.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/stats.pb.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
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

// The counter and the condition are on the host: the loop runs ahead, and waits for the device only
// every 64 kernels, four times that behind.
TEST_F(DeviceMemoryTest, ALoopWithItsConditionOnTheHostDoesNotWait) {
  constexpr int kTurns = 1000;
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const Output last = WhileLoop(
      sim_, {Output(ops::Const(sim_, Tensor::Scalar<int32_t>(0))), x},
      [](const Scope& s, absl::Span<const Output> v) {
        return ops::Less(s, v[0], Tensor::Scalar<int32_t>(kTurns));
      },
      [](const Scope& s, absl::Span<const Output> v) {
        return std::vector<Output>{ops::Add(s, v[0], Tensor::Scalar<int32_t>(1)),
                                   ops::Sqrt(s, ops::Square(s, v[1]))};
      })[1];
  auto session = NewSession(/*seed=*/1);
  const Tensor value = Tensor::Vector<float>({1, 4});
  ASSERT_TRUE(session->Run({{x, value}}, {last}).ok());  // Uploads constants.
  const int64_t waits = troupe::testing::NumSimulatedWaits();
  const auto values = session->Run({{x, value}}, {last});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].ToString(), value.ToString());
  // An upload, a download, the end of the step, and a mark every 64 of two kernels a turn.
  EXPECT_LE(troupe::testing::NumSimulatedWaits() - waits, 2 * kTurns / 64 + 4);
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

TEST_F(DeviceMemoryTest, ConnectedDevicesNeedNoHost) {
  // 0 and 1 are connected, and 1 and 2.
  const auto on = [&](int device) { return s_.WithDevice(StrCat("/device:SIM:", device)); };
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const Output w = ops::VarHandleOp(on(0), ElementType::kFloat, PartialShape({100}));
  Node* const init = ops::AssignVariableOp(on(0), w, x);
  Output y = ops::ReadVariableOp(on(0), w, ElementType::kFloat);
  for (int i = 1; i <= 20; ++i) y = ops::Tanh(on(i % 2), ops::Add(on(i % 2), y, y));
  const Output far = ops::Neg(on(2), ops::Neg(on(0), y));
  // Moved on by what chooses its memory by its consumers, and wanted on the host as well.
  const auto either = ops::Switch(on(1), y, ops::Greater(on(1), ops::Size(on(1), y), 3));
  const Output z =
      ops::Merge(on(1), {ops::Neg(on(1), either.output_false), ops::Abs(on(1), either.output_true)})
          .output;
  Node* const update = ops::AssignAddVariableOp(on(0), w, z);
  ASSERT_TRUE(s_.ok()) << s_.status();
  const Tensor value = Random(Shape({100}));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    troupe::testing::UseSimulatedDevices({.seed = seed});
    SessionOptions options;
    options.devices["SIM"].count = 3;
    auto session = *Session::Create(s_.graph(), options);
    ASSERT_TRUE(session->RunTargets({init}, {{x, value}}).ok());
    std::vector<float> want(value.unchecked_values<float>().begin(),
                            value.unchecked_values<float>().end());
    for (int step = 0; step < 3; ++step) {
      std::vector<float> expected = want;
      for (int i = 1; i <= 20; ++i) {
        for (float& element : expected) element = std::tanh(element + element);
      }
      for (size_t i = 0; i < want.size(); ++i) want[i] += std::abs(expected[i]);
      RunOptions trace;
      trace.trace = true;
      RunMetadata metadata;
      auto values = session->Run({}, {y, far}, {update}, trace, &metadata);
      ASSERT_TRUE(values.ok()) << values.status();
      for (int fetch = 0; fetch < 2; ++fetch) {
        EXPECT_THAT((*values)[fetch].unchecked_values<float>(),
                    ::testing::Pointwise(::testing::FloatNear(1e-5f), expected));
      }
      std::map<std::string, int> downloads;
      for (const auto& device : metadata.step_stats().dev_stats()) {
        for (const auto& node : device.node_stats()) {
          downloads[device.device()] +=
              node.timeline_label().find("_Download") != std::string::npos;
        }
      }
      // `y` for the caller; what device 2 cannot reach, and then for the caller; nothing else.
      EXPECT_EQ(downloads["/job:localhost/replica:0/task:0/device:SIM:0"], 2);
      EXPECT_EQ(downloads["/job:localhost/replica:0/task:0/device:SIM:1"], 0);
      EXPECT_EQ(downloads["/job:localhost/replica:0/task:0/device:SIM:2"], 1);
    }
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

TEST_F(DeviceMemoryTest, WhenMemoryRunsOutTheErrorSaysWhatFillsIt) {
  // 1 MiB: a variable of 512 KiB and a value of 256 KiB leave no room for another 512 KiB.
  const Output x = ops::Placeholder(s_.WithOpName("x"), ElementType::kFloat);
  const Output w = ops::VarHandleOp(sim_.WithOpName("w"), ElementType::kFloat, PartialShape({}));
  const auto join = [&](const char* name, const std::vector<Output>& parts) {
    return ops::ConcatV2(sim_.WithOpName(name), parts, 0);
  };
  Node* const init = ops::AssignVariableOp(sim_, w, join("start", {x, x, x, x}));
  const Output a = join("a", {x, x});
  const Output big = join("big", {a, a});
  troupe::testing::UseSimulatedDevices();
  SessionOptions options;
  options.devices["SIM"].memory_limit = 1 << 20;
  auto session = Session::Create(s_.graph(), options).value();
  const FeedMap feeds = {{x, Random(Shape({32, 1024}))}};
  const absl::Status initialized = session->RunTargets({init}, feeds);
  ASSERT_TRUE(initialized.ok()) << initialized;
  const absl::Status status = session->Run(feeds, {a, big}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* part :
       {"[[node big = ConcatV2 on /job:localhost/replica:0/task:0/device:SIM:0]]",
        "shape [128,1024] (524288 bytes)", "the limit is 1048576",
        "the largest: 524288 bytes (131072 of float, node start (ConcatV2)), 262144 bytes (65536 "
        "of float, node a (ConcatV2))"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  // What the step had is given back.
  const auto after = session->Run(feeds, {a});
  EXPECT_TRUE(after.ok()) << after.status();
}

TEST_F(DeviceMemoryTest, ProductsGoThereByThemselvesIfThereIsRoom) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({256, 256})});
  const Output product = ops::MatMul(s_.WithOpName("product"), x, x);
  ModelVariable counter(s_, Const(s_, 0.0f), "counter");
  Node* const count = counter.AssignAdd(s_.WithOpName("count"), Const(s_, 1.0f));
  const FeedMap feeds = {{x, Random(Shape({256, 256}))}};
  std::vector<Tensor> want;
  // 256 KiB each: with 513 KiB there is room for both and the counter, with less there is not.
  for (const int64_t limit : {int64_t{0}, int64_t{513} << 10, int64_t{500} << 10}) {
    SCOPED_TRACE(limit);
    troupe::testing::UseSimulatedDevices({.figures = DeviceFigures{1e8, 1e7, 1, 1, 1e6}});
    SessionOptions options;
    if (limit > 0) options.devices["SIM"].memory_limit = limit;
    auto session = Session::Create(s_.graph(), options).value();
    ASSERT_TRUE(session->RunTargets({counter.initializer()}).ok());
    RunOptions traced;
    traced.trace = true;
    RunMetadata metadata;
    auto values = session->Run(feeds, {product}, {count}, traced, &metadata);
    ASSERT_TRUE(values.ok()) << values.status();
    std::map<std::string, std::string> where;
    for (const DeviceStepStats& device : metadata.step_stats().dev_stats()) {
      for (const NodeExecStats& node : device.node_stats()) {
        const std::string& label = node.timeline_label();
        if (label == "product = MatMul" || label.starts_with("count = ")) {
          std::string& known = where[node.node_name()];
          known += (known.empty() ? "" : ", ") + device.device().substr(device.device().rfind('/'));
        }
      }
    }
    const bool fits = limit == 513 << 10;
    EXPECT_EQ(where["product"], fits ? "/device:SIM:0, /stream:all" : "/device:CPU:0");
    // Steps to come may use the variable there.
    EXPECT_EQ(where["count"], limit > 0 ? "/device:SIM:0, /stream:all" : "/device:CPU:0");
    if (want.empty()) want = *values;
    EXPECT_EQ((*values)[0].ToString(10), want[0].ToString(10));
  }
}

TEST_F(DeviceMemoryTest, ANodeWithoutAKernelSaysSoOrGoesToTheCpu) {
  const Output y = ops::QueueSizeV2(sim_, ops::RandomShuffleQueueV2(sim_, {ElementType::kFloat}));
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
  EXPECT_THAT((*values)[0].unchecked_values<std::string>(), ElementsAre("a", "c"));
}

TEST_F(DeviceMemoryTest, ItIsWithWhatOtherStepsPutTogether) {
  // One of them is scattered to, in another step than that which takes them all.
  std::vector<Output> variables;
  std::vector<Node*> init;
  for (int i = 0; i < 3; ++i) {
    variables.push_back(ops::VariableV2(s_, PartialShape({2}), ElementType::kString));
    init.push_back(ops::Assign(s_, variables[i], Tensor::Vector<std::string>({"a", "b"})).node);
  }
  const Output index = ops::Placeholder(s_, ElementType::kInt32);
  const Output chosen = ops::RefSelect(s_, index, variables);
  const Output change = ops::ScatterUpdate(s_, variables[0], Tensor::Vector<int32_t>({0}),
                                           Tensor::Vector<std::string>({"c"}));
  SessionOptions options;
  options.devices["SIM"] = {};
  options.allow_soft_placement = true;
  for (const char* device : {"/device:SIM:0", ""}) {
    troupe::testing::UseSimulatedDevices();
    GraphDef def;
    s_.graph()->ToGraphDef(&def);
    for (NodeDef& node : *def.mutable_node()) node.set_device(device);
    auto graph = std::make_shared<Graph>();
    ASSERT_TRUE(ImportGraphDef(def, {}, graph.get()).ok());
    auto session = Session::Create(graph, options).value();
    const auto run = [&](std::vector<std::string> fetches, int of) {
      std::vector<Tensor> values;
      const absl::Status status =
          session->Run({}, {{index.name(), Tensor::Scalar<int32_t>(of)}}, fetches, {}, &values);
      EXPECT_TRUE(status.ok()) << status;
      return status.ok() ? values.back() : Tensor::Vector<std::string>({});
    };
    for (Node* node : init) run({node->name()}, 0);
    EXPECT_THAT(run({change.name()}, 0).unchecked_values<std::string>(), ElementsAre("c", "b"));
    EXPECT_THAT(run({chosen.name()}, 0).unchecked_values<std::string>(), ElementsAre("c", "b"));
    EXPECT_THAT(run({chosen.name()}, 2).unchecked_values<std::string>(), ElementsAre("a", "b"));
  }
}

TEST_F(DeviceMemoryTest, ItIsWhereBodiesThatChangeItHaveKernels) {
  Scope body = Scope::NewRoot();
  const Output arg = ops::Placeholder(body, ElementType::kResource);
  FunctionDefOptions with_effect;
  with_effect.control_outputs = {
      ops::ResourceScatterUpdate(body, arg, Tensor::Vector<int32_t>({1}),
                                 ops::Const(body, Tensor::Vector<std::string>({"c"})))};
  ASSERT_TRUE(body.ok()) << body.status();
  auto def = GraphToFunctionDef(*body.graph(), "Change", {arg}, {}, with_effect);
  ASSERT_TRUE(def.ok()) << def.status();
  FunctionDefLibrary library;
  *library.add_function() = *std::move(def);
  ASSERT_TRUE(s_.graph()->AddLibrary(library).ok());

  const Output handle = ops::VarHandleOp(sim_, ElementType::kString, PartialShape({2}));
  Node* const init = ops::AssignVariableOp(
      sim_, handle, ops::Const(sim_, Tensor::Vector<std::string>({"a", "b"})));
  NodeDef call;
  call.set_name("call");
  call.set_op("PartitionedCall");
  call.set_device("/device:SIM:0");
  call.add_input(handle.name());
  (*call.mutable_attr())["Tin"].mutable_list()->add_type(DT_RESOURCE);
  (*call.mutable_attr())["Tout"].mutable_list();
  (*call.mutable_attr())["f"].mutable_func()->set_name("Change");
  auto change = s_.graph()->AddNode(call);
  ASSERT_TRUE(change.ok()) << change.status();
  const Output read = ops::ReadVariableOp(sim_, handle, ElementType::kString);
  SessionOptions options;
  options.devices["SIM"] = {};
  options.allow_soft_placement = true;
  troupe::testing::UseSimulatedDevices();
  auto session = Session::Create(s_.graph(), options).value();
  for (Node* node : {init, *change}) {
    const absl::Status status = session->RunTargets({node});
    ASSERT_TRUE(status.ok()) << status;
  }
  auto values = session->Run({read});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].unchecked_values<std::string>(), ElementsAre("a", "c"));
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
    EXPECT_THAT((*values)[0].unchecked_values<float>(), ElementsAre(-16, -17));
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

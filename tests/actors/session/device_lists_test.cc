// Lists, arrays, stacks and optionals of tensors, and arguments of functions, on a device with a
// memory of its own, here the simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "api/control_flow.h"
#include "api/gradients.h"
#include "api/ops.h"
#include "api/scope.h"
#include "api/session.h"
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

using Values = absl::Span<const Output>;

class DeviceListsTest : public ::testing::Test {
 protected:
  DeviceListsTest() { troupe::testing::BorrowKernels(); }

  std::unique_ptr<Session> NewSession(uint64_t seed, int count = 1,
                                      std::shared_ptr<Graph> graph = nullptr) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    troupe::testing::UseSimulatedDevices({.seed = seed});
    SessionOptions options;
    options.threads = 2;
    options.devices["SIM"].count = count;
    auto session = Session::Create(graph != nullptr ? graph : s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  static Tensor Random(const Shape& shape) {
    Tensor tensor = Tensor::Uninitialized(ElementType::kFloat, shape);
    int drawn = 0;
    for (float& value : tensor.mutable_values<float>()) {
      value = std::sin(static_cast<float>(++drawn));
    }
    return tensor;
  }
  /// All nodes on the CPU, then all on the device. The copies of the step there are counted.
  void ExpectSameOnBoth(const std::function<std::vector<Output>(const Scope& scope)>& build,
                        const FeedMap& feeds, int max_copies) {
    std::vector<std::string> fetches;
    for (const Output& output : build(s_)) fetches.push_back(output.name());
    ASSERT_TRUE(s_.ok()) << s_.status();
    std::vector<std::pair<std::string, Tensor>> named;
    for (const auto& [output, value] : feeds) named.emplace_back(output.name(), value);
    const auto run = [&](const char* device, uint64_t seed, RunMetadata* metadata) {
      GraphDef def;
      s_.graph()->ToGraphDef(&def);
      for (NodeDef& node : *def.mutable_node()) node.set_device(device);
      auto graph = std::make_shared<Graph>();
      EXPECT_TRUE(ImportGraphDef(def, {}, graph.get()).ok());
      auto session = NewSession(seed, 1, graph);
      RunOptions trace;
      trace.trace = true;
      std::vector<Tensor> values;
      for (int i = 0; i < 2; ++i) {
        metadata->Clear();
        const absl::Status status = session->Run(trace, named, fetches, {}, &values, metadata);
        EXPECT_TRUE(status.ok()) << status;
      }
      return values;
    };
    RunMetadata ignored;
    const std::vector<Tensor> want = run("/device:CPU:0", 1, &ignored);
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      RunMetadata metadata;
      const std::vector<Tensor> got = run("/device:SIM:0", seed, &metadata);
      ASSERT_EQ(got.size(), want.size());
      for (size_t k = 0; k < want.size(); ++k) {
        EXPECT_EQ(got[k].ToString(100), want[k].ToString(100)) << "fetch " << k;
      }
      EXPECT_LE(Copies(metadata), max_copies) << CopiesToString(metadata);
      EXPECT_EQ(NodesOn(metadata, "CPU:0"), 0);
    }
  }
  static int Copies(const RunMetadata& metadata) {
    int copies = 0;
    for (const auto& device : metadata.step_stats().dev_stats()) {
      if (device.device().find("stream") != std::string::npos) continue;
      for (const auto& node : device.node_stats()) {
        copies += node.timeline_label().find("= _Download") != std::string::npos ||
                  node.timeline_label().find("= _Upload") != std::string::npos;
      }
    }
    return copies;
  }
  static std::string CopiesToString(const RunMetadata& metadata) {
    std::map<std::string, int> copies;
    for (const auto& device : metadata.step_stats().dev_stats()) {
      for (const auto& node : device.node_stats()) {
        if (node.timeline_label().find("= _") != std::string::npos) ++copies[node.timeline_label()];
      }
    }
    std::string text;
    for (const auto& [copy, count] : copies) text += StrCat(count, " of ", copy, "; ");
    return text;
  }
  static int NodesOn(const RunMetadata& metadata, std::string_view type) {
    int nodes = 0;
    for (const auto& device : metadata.step_stats().dev_stats()) {
      if (device.device().ends_with(type)) nodes += device.node_stats_size();
    }
    return nodes;
  }
  Node* Call(const Scope& scope, const char* op, const char* function,
             const std::vector<Output>& args, std::vector<ElementType> results,
             const char* device = "/device:SIM:0") {
    NodeDef call;
    call.set_name(StrCat("call_", function));
    call.set_op(op);
    call.set_device(device);
    AttrValue& in = (*call.mutable_attr())[std::string(op) == "While" ? "T" : "Tin"];
    for (const Output& arg : args) {
      call.add_input(arg.name());
      in.mutable_list()->add_type(static_cast<DataType>(arg.type()));
    }
    if (std::string(op) == "While") {
      (*call.mutable_attr())["cond"].mutable_func()->set_name(StrCat(function, "_cond"));
      (*call.mutable_attr())["body"].mutable_func()->set_name(function);
    } else {
      AttrValue& out = (*call.mutable_attr())["Tout"];
      out.mutable_list();
      for (const ElementType result : results) {
        out.mutable_list()->add_type(static_cast<DataType>(result));
      }
      (*call.mutable_attr())["f"].mutable_func()->set_name(function);
    }
    auto node = scope.graph()->AddNode(call);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  /// Adds a function of the graph's library.
  void Define(const char* name, std::vector<ElementType> args,
              const std::function<std::vector<Output>(const Scope&, Values)>& build) {
    const Scope body = Scope::NewRoot();
    std::vector<Output> inputs;
    for (const ElementType type : args) inputs.push_back(ops::Placeholder(body, type));
    const std::vector<Output> results = build(body, inputs);
    ASSERT_TRUE(body.ok()) << body.status();
    auto def = GraphToFunctionDef(*body.graph(), name, inputs, results);
    ASSERT_TRUE(def.ok()) << def.status();
    FunctionDefLibrary library;
    *library.add_function() = *std::move(def);
    ASSERT_TRUE(s_.graph()->AddLibrary(library).ok());
  }

  Scope s_ = Scope::NewRoot();
  Scope sim_ = s_.WithDevice("/device:SIM:0");
};

constexpr int kTurns = 30;

TEST_F(DeviceListsTest, AnArrayInALoopIsNotCopied) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  ExpectSameOnBoth(
      [&](const Scope& s) {
        const TensorArray array(s, kTurns, ElementType::kFloat, {.clear_after_read = false});
        const std::vector<Output> ends = WhileLoop(
            s, {Output(Const(s, 0)), x, array.flow()},
            [](const Scope& s, Values v) { return ops::Less(s, v[0], kTurns); },
            [&](const Scope& s, Values v) {
              const Output next = ops::Tanh(s, ops::Add(s, v[1], v[1]));
              return std::vector<Output>{ops::Add(s, v[0], 1), next,
                                         array.WithFlow(v[2]).Write(s, v[0], next).flow()};
            });
        const TensorArray full = array.WithFlow(ends[2]);
        return std::vector<Output>{full.Stack(s), full.Gather(s, Tensor::Vector<int32_t>({3, 1})),
                                   full.Size(s)};
      },
      {{x, Random(Shape({3, 5}))}}, /*max_copies=*/3);
}

TEST_F(DeviceListsTest, GradientsOfLoopsWithStacksAndArraysAreNotCopied) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({3, 5})});
  ExpectSameOnBoth(
      [&](const Scope& s) {
        // Every element is read twice, so that gradients are added up.
        const TensorArray rows =
            TensorArray(s, 3, ElementType::kFloat,
                        {.clear_after_read = false, .element_shape = PartialShape({5})})
                .Unstack(s, x);
        const std::vector<Output> ends = WhileLoop(
            s, {Output(Const(s, 0)), ops::Fill(s, Tensor::Vector<int32_t>({5}), 0.5f)},
            [](const Scope& s, Values v) { return ops::Less(s, v[0], kTurns); },
            [&](const Scope& s, Values v) {
              const Output row = rows.Read(s, ops::FloorMod(s, v[0], 3));
              return std::vector<Output>{ops::Add(s, v[0], 1),
                                         ops::Tanh(s, ops::Mul(s, row, v[1]))};
            });
        const auto gradients = Gradients(s, {ends[1]}, {x});
        return std::vector<Output>{ends[1], gradients[0]};
      },
      {{x, Random(Shape({3, 5}))}}, /*max_copies=*/4);
}

TEST_F(DeviceListsTest, AListInALoopIsNotCopied) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({4})});
  ExpectSameOnBoth(
      [&](const Scope& s) {
        const Tensor shape = Tensor::Vector<int32_t>({4});
        const Output list = ops::EmptyTensorList(s, shape, -1, ElementType::kFloat);
        const std::vector<Output> ends = WhileLoop(
            s, {Output(Const(s, 0)), x, list},
            [](const Scope& s, Values v) { return ops::Less(s, v[0], kTurns); },
            [&](const Scope& s, Values v) {
              const Output next = ops::Neg(s, ops::Add(s, v[1], v[1]));
              return std::vector<Output>{ops::Add(s, v[0], 1), ops::Tanh(s, next),
                                         ops::TensorListPushBack(s, v[2], next)};
            });
        const Output all = ops::TensorListStack(s, ends[2], shape, ElementType::kFloat);
        const auto gradients = Gradients(s, {all}, {x});
        return std::vector<Output>{all, ops::TensorListLength(s, ends[2]), gradients[0]};
      },
      {{x, Random(Shape({4}))}}, /*max_copies=*/4);
}

TEST_F(DeviceListsTest, WhatIsJoinedInAllWays) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({7, 2})});
  ExpectSameOnBoth(
      [&](const Scope& s) {
        const Tensor row = Tensor::Vector<int32_t>({2});
        const Output rows = ops::TensorListFromTensor(s, x, row);
        // 9 elements, two of them not initialised.
        const Output longer = ops::TensorListResize(s, rows, 9);
        const Output changed = ops::TensorListSetItem(
            s, longer, 0, ops::TensorListGetItem(s, rows, 6, row, ElementType::kFloat));
        const Output parts = ops::TensorListSplit(s, x, Tensor::Vector<int32_t>({-1, 2}),
                                                  Tensor::Vector<int64_t>({3, 0, 4}));
        const auto joined =
            ops::TensorListConcatV2(s, parts, Tensor::Vector<int32_t>({-1, 2}),
                                    Tensor::Vector<int64_t>({}), ElementType::kFloat);
        const Output both = ops::TensorListConcatLists(s, changed, rows, ElementType::kFloat);
        const Output sum = ops::AddN(s, {rows, rows, ops::ZerosLike(s, rows)});
        const Output scattered =
            ops::TensorListScatterV2(s, x, Tensor::Vector<int32_t>({6, 5, 4, 3, 2, 1, 0}), row, 8);
        const auto popped = ops::TensorListPopBack(s, sum, row, ElementType::kFloat);
        const auto stack = [&](const Output& list) {
          return ops::TensorListStack(s, list, row, ElementType::kFloat);
        };
        return std::vector<Output>{
            stack(changed),
            stack(both),
            stack(sum),
            stack(scattered),
            popped.tensor,
            joined.tensor,
            joined.lengths,
            ops::TensorListGather(s, changed, Tensor::Vector<int32_t>({8, 0, 2}), row,
                                  ElementType::kFloat),
            ops::TensorListGather(s, rows, Tensor::Vector<int32_t>({5, 0}), row,
                                  ElementType::kFloat)};
      },
      {{x, Random(Shape({7, 2}))}}, /*max_copies=*/9);
}

TEST_F(DeviceListsTest, OptionalsKeepWhatTheyHold) {
  const Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({2})});
  ExpectSameOnBoth(
      [&](const Scope& s) {
        const Output square = ops::Mul(s, x, x);
        const Output some = ops::OptionalFromValue(s, {square, ops::Shape(s, square)});
        const Output sum = ops::AddN(s, {some, some});
        const auto get = [&](const Output& optional) {
          return ops::OptionalGetValue(s, optional, {ElementType::kFloat, ElementType::kInt32},
                                       {PartialShape({2}), PartialShape({1})});
        };
        return std::vector<Output>{get(sum)[0], get(sum)[1], ops::OptionalHasValue(s, some),
                                   ops::OptionalHasValue(s, ops::OptionalNone(s))};
      },
      {{x, Random(Shape({2}))}}, /*max_copies=*/2);
}

// A list is made on the CPU, goes to a device, to another one, to the caller, and back as a feed.
TEST_F(DeviceListsTest, ListsCrossAndMayHoldWhatIsHereAndThere) {
  const Tensor shape = Tensor::Vector<int32_t>({2});
  const Scope cpu = s_.WithDevice("/device:CPU:0"), other = s_.WithDevice("/device:SIM:1");
  const Output x = ops::Placeholder(s_, ElementType::kFloat, {.shape = PartialShape({2})});
  const auto push = [](const Scope& s, const Output& list, const Output& value) {
    return ops::TensorListPushBack(s, list, ops::Neg(s, value));
  };
  const auto stack = [&](const Scope& s, const Output& list) {
    return ops::TensorListStack(s, list, shape, ElementType::kFloat);
  };
  Output list = ops::EmptyTensorList(cpu, shape, -1, ElementType::kFloat);
  list = push(other, push(sim_, push(cpu, list, x), ops::Add(sim_, x, x)), x);
  const Output back = push(cpu, list, x);
  const Output nested = ops::TensorListPushBack(
      sim_, ops::EmptyTensorList(sim_, Tensor::Vector<int32_t>({}), -1, ElementType::kVariant),
      push(sim_, list, x));
  const Output inner =
      ops::TensorListGetItem(cpu, nested, 0, Tensor::Vector<int32_t>({}), ElementType::kVariant);
  const Output fed = ops::Placeholder(s_, ElementType::kVariant);
  const Output of_fed = stack(sim_, push(sim_, fed, x));
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto session = NewSession(seed, 2);
    const FeedMap feeds = {{x, Tensor::Vector<float>({1, 2})}};
    auto values = session->Run(
        feeds, {stack(other, list), stack(cpu, back), stack(sim_, list), stack(cpu, inner), list});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT((*values)[0].unchecked_values<float>(), ElementsAre(-1, -2, -2, -4, -1, -2));
    EXPECT_THAT((*values)[1].unchecked_values<float>(),
                ElementsAre(-1, -2, -2, -4, -1, -2, -1, -2));
    EXPECT_EQ((*values)[2].ToString(), (*values)[0].ToString());
    EXPECT_EQ((*values)[3].ToString(), (*values)[1].ToString());
    FeedMap again = feeds;
    again.emplace_back(fed, (*values)[4]);
    auto last = session->Run(again, {of_fed});
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ((*last)[0].ToString(), (*values)[1].ToString());
  }
}

TEST_F(DeviceListsTest, AnArrayOfAnotherDeviceIsRefused) {
  const Output size = ops::Placeholder(s_, ElementType::kInt32);
  const TensorArray array(sim_, size, ElementType::kFloat);
  const Output handle = ops::Placeholder(s_, ElementType::kResource);
  const Output read =
      ops::TensorArraySizeV3(s_.WithDevice("/device:CPU:0"), handle, Const(s_, 0.0f));
  auto session = NewSession(1);
  auto made = session->Run({{size, Tensor::Scalar<int32_t>(2)}}, {array.handle()});
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::Status status = session->Run({{handle, (*made)[0]}}, {read}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("device:SIM:0"));
}

TEST_F(DeviceListsTest, WhatALoopOfFunctionsHandsOnIsNotCopied) {
  const std::vector<ElementType> types = {ElementType::kInt32, ElementType::kFloat,
                                          ElementType::kVariant};
  Define("Turn_cond", types,
         [](const Scope& s, Values v) { return std::vector<Output>{ops::Less(s, v[0], kTurns)}; });
  Define("Turn", types, [](const Scope& s, Values v) {
    const Output next = ops::Tanh(s, ops::Add(s, v[1], v[1]));
    return std::vector<Output>{ops::Add(s, v[0], 1), next, ops::TensorListPushBack(s, v[2], next)};
  });
  const Tensor shape = Tensor::Vector<int32_t>({50});
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const auto build = [&](const char* device) {
    const Scope s = s_.WithDevice(device);
    const Output list = ops::EmptyTensorList(s, shape, -1, ElementType::kFloat);
    Node* const loop = Call(s, "While", "Turn", {Const(s, 0), ops::Neg(s, x), list}, {}, device);
    return std::vector<Output>{
        Output(loop, 1), ops::TensorListStack(s, Output(loop, 2), shape, ElementType::kFloat)};
  };
  // The names of nodes must differ.
  const std::vector<Output> there = build("/device:SIM:0");
  const Tensor value = Random(Shape({50}));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    auto session = NewSession(seed);
    auto warm = session->Run({{x, value}}, there);
    ASSERT_TRUE(warm.ok()) << warm.status();
    const int64_t copied = troupe::testing::NumSimulatedCopies();
    auto got = session->Run({{x, value}}, there);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_LE(troupe::testing::NumSimulatedCopies() - copied, 4);
    std::vector<float> want(50);
    for (int i = 0; i < 50; ++i) want[i] = -value.unchecked_data<float>()[i];
    for (int turn = 0; turn < kTurns; ++turn) {
      for (float& w : want) w = std::tanh(w + w);
      const Tensor row = (*got)[1].Slice(turn, turn + 1);
      EXPECT_THAT(row.unchecked_values<float>(),
                  ::testing::Pointwise(::testing::FloatNear(1e-5f), want));
    }
    EXPECT_THAT((*got)[0].unchecked_values<float>(),
                ::testing::Pointwise(::testing::FloatNear(1e-5f), want));
  }
}

TEST_F(DeviceListsTest, ABodyOnSeveralDevicesGetsItsArgumentsWhereItWantsThem) {
  // A staging area has no kernel there: the body is cut.
  Define("Cut", {ElementType::kFloat, ElementType::kVariant}, [](const Scope& s, Values v) {
    Node* const put = ops::Stage(s, {v[0]}, {.shared_name = "area"});
    const Output same = ops::Unstage(s.WithControlDependencies({put}), {ElementType::kFloat},
                                     {.shared_name = "area"})[0];
    return std::vector<Output>{ops::Neg(s, v[0]), same, v[0],
                               ops::TensorListPushBack(s, v[1], same)};
  });
  const Tensor shape = Tensor::Vector<int32_t>({2});
  const Output x = ops::Placeholder(s_, ElementType::kFloat);
  const Output list = ops::TensorListPushBack(
      sim_, ops::EmptyTensorList(sim_, shape, -1, ElementType::kFloat), ops::Neg(sim_, x));
  Node* const call =
      Call(s_, "PartitionedCall", "Cut", {ops::Neg(sim_, x), list},
           {ElementType::kFloat, ElementType::kFloat, ElementType::kFloat, ElementType::kVariant});
  ASSERT_NE(call, nullptr);
  std::vector<Output> fetches;
  for (int i = 0; i < 3; ++i) fetches.push_back(ops::Add(sim_, Output(call, i), x));
  fetches.push_back(ops::TensorListStack(sim_, Output(call, 3), shape, ElementType::kFloat));
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto session = NewSession(seed);
    auto values = session->Run({{x, Tensor::Vector<float>({1, 2})}}, fetches);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT((*values)[0].unchecked_values<float>(), ElementsAre(2, 4));
    EXPECT_THAT((*values)[1].unchecked_values<float>(), ElementsAre(0, 0));
    EXPECT_THAT((*values)[2].unchecked_values<float>(), ElementsAre(0, 0));
    EXPECT_THAT((*values)[3].unchecked_values<float>(), ElementsAre(-1, -2, -1, -2));
  }
}

TEST_F(DeviceListsTest, AnArgumentThatFailsLateEndsTheLoopThatGotIt) {
  // What the condition reads is garbage: the step ends all the same, and names who made it.
  Define("Forever_cond", {ElementType::kInt64}, [](const Scope& s, Values v) {
    return std::vector<Output>{ops::GreaterEqual(s, ops::Abs(s, v[0]), Const(s, int64_t{0}))};
  });
  Define("Forever", {ElementType::kInt64},
         [](const Scope& s, Values v) { return std::vector<Output>{ops::Abs(s, v[0])}; });
  const Output i = ops::Placeholder(s_, ElementType::kInt64);
  const Output bad = ops::FloorDiv(sim_.WithOpName("culprit"), i, Tensor::Scalar<int64_t>(0));
  Node* const loop = Call(s_, "While", "Forever", {bad}, {});
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto session = NewSession(seed);
    const absl::Status status =
        session->Run({{i, Tensor::Scalar<int64_t>(3)}}, {Output(loop, 0)}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("[[node culprit"));
  }
}

}  // namespace
}  // namespace troupe

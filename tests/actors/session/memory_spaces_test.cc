#include "actors/session/memory_spaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "actors/runtime.h"
#include "tests/devices/simulated/simulated_device.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Input = PlanSpec::Input;

constexpr MemorySpace kHost = MemorySpace::kHost;
constexpr MemorySpace kDevice = MemorySpace::kDevice;

struct NullKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

class MemorySpacesTest : public ::testing::Test {
 protected:
  MemorySpacesTest() {
    troupe::testing::UseSimulatedDevices();
    auto devices = DeviceRegistry::Global()->MakeDevices("j", 0, {{"SIM", {}}}, nullptr);
    device_ = std::move(devices->back());
  }

  int Add(std::string name, PlanSpec::Node node) {
    node.name = std::move(name);
    spec_.nodes.push_back(std::move(node));
    return static_cast<int>(spec_.nodes.size()) - 1;
  }
  int Feed() { return Add("feed", {.num_outputs = 1}); }
  int Constant(float value) {
    return Add("constant", {.num_outputs = 1, .constants = {Tensor::Scalar(value)}});
  }
  /// A kernel with one output, and all that it has in one memory.
  int Compute(std::string name, MemorySpace space, std::vector<Input> inputs) {
    ArgumentSpaces spaces{std::vector<MemorySpace>(inputs.size(), space), {space}};
    return Add(std::move(name), {.kernel = std::make_shared<NullKernel>(),
                                 .inputs = std::move(inputs),
                                 .num_outputs = 1,
                                 .spaces = std::move(spaces)});
  }
  int Move(FlowOp flow, std::vector<Input> inputs, int num_outputs = 1, int frame = 0) {
    return Add(
        "move",
        {.inputs = std::move(inputs), .num_outputs = num_outputs, .flow = flow, .frame = frame});
  }
  void Make() {
    before_ = spec_.nodes.size();
    ASSERT_TRUE(MakeSpacesAgree(device_.get(), &spec_).ok());
    for (const PlanSpec::Node& node : spec_.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        EXPECT_EQ(SpaceOf(node.inputs[i]), node.spaces.input(static_cast<int>(i))) << node.name;
      }
    }
    for (const Input& fetch : spec_.fetches) EXPECT_EQ(SpaceOf(fetch), kHost);
  }
  MemorySpace SpaceOf(const Input& input) const {
    return input.snapshot ? kHost : spec_.nodes[input.node].spaces.output(input.port);
  }
  /// The copies that were made: "_Upload of feed".
  std::vector<std::string> Copies() const {
    std::vector<std::string> copies;
    for (size_t i = before_; i < spec_.nodes.size(); ++i) {
      copies.push_back(spec_.nodes[i].op + " of " + spec_.nodes[i].name);
    }
    std::sort(copies.begin(), copies.end());
    return copies;
  }

  std::unique_ptr<Device> device_;
  PlanSpec spec_;
  size_t before_ = 0;
};

TEST_F(MemorySpacesTest, ACopyIsSharedByItsConsumers) {
  const int feed = Feed();
  const int a = Compute("a", kDevice, {{feed, 0}, {feed, 0}});
  const int b = Compute("b", kDevice, {{feed, 0}, {a, 0}});
  const int here = Compute("here", kHost, {{b, 0}, {feed, 0}});
  spec_.fetches = {{b, 0}, {here, 0}};
  Make();
  EXPECT_THAT(Copies(), ElementsAre("_Download of b", "_Upload of feed"));
  EXPECT_EQ(spec_.nodes[a].inputs[0].node, spec_.nodes[b].inputs[0].node);
  EXPECT_EQ(spec_.nodes[here].inputs[0].node, spec_.fetches[0].node);
}

TEST_F(MemorySpacesTest, WhatIsOnTheHostAloneIsLeftAlone) {
  const int feed = Feed();
  const int a = Compute("a", kHost, {{feed, 0}});
  spec_.fetches = {{a, 0}};
  Make();
  EXPECT_THAT(Copies(), IsEmpty());
}

TEST_F(MemorySpacesTest, ConnectedDevicesFetchValuesFromWhereTheyAre) {
  const auto cross = [&](const char* name, FlowOp flow, Device* peer, std::vector<Input> inputs) {
    return Add(name, {.inputs = std::move(inputs),
                      .num_outputs = flow == FlowOp::kRecv ? 1 : 0,
                      .flow = flow,
                      .peer = peer});
  };
  const int value = cross("value", FlowOp::kRecv, device_.get(), {});
  const int a = Compute("a", kDevice, {{value, 0}, {value, 0}});
  const int b = Compute("b", kHost, {{value, 0}});
  const int sent = cross("sent", FlowOp::kSend, device_.get(), {{a, 0}});
  const int handed = cross("handed", FlowOp::kSend, device_.get(), {{b, 0}});
  const int told = cross("told", FlowOp::kSend, nullptr, {{a, 0}});
  const int on = cross("on", FlowOp::kSend, device_.get(), {{value, 0}});
  spec_.fetches = {{value, 0}};
  before_ = spec_.nodes.size();
  ASSERT_TRUE(MakeSpacesAgree(device_.get(), &spec_).ok());
  EXPECT_THAT(Copies(), ElementsAre("_Download of a", "_Download of value", "_Upload of value"));
  EXPECT_EQ(spec_.nodes[sent].inputs[0].node, a);
  EXPECT_EQ(spec_.nodes[handed].inputs[0].node, b);
  EXPECT_EQ(spec_.nodes[spec_.nodes[told].inputs[0].node].op, "_Download");
  EXPECT_EQ(spec_.nodes[spec_.nodes[on].inputs[0].node].op, "_Download");
  EXPECT_EQ(spec_.nodes[b].inputs[0].node, spec_.fetches[0].node);
}

TEST_F(MemorySpacesTest, ConstantsAreThereFromTheStart) {
  const int constant = Constant(3);
  const int a = Compute("a", kDevice, {{constant, 0}});
  const int b = Compute("b", kDevice, {{constant, 0}, {a, 0}});
  const int c = Compute("c", kHost, {{constant, 0}});
  spec_.fetches = {{constant, 0}, {c, 0}};
  Make();
  EXPECT_THAT(Copies(), ElementsAre("_Upload of constant"));
  const PlanSpec::Node& copy = spec_.nodes[spec_.nodes[a].inputs[0].node];
  EXPECT_EQ(spec_.nodes[b].inputs[0].node, spec_.nodes[a].inputs[0].node);
  ASSERT_EQ(copy.constants.size(), 1u);
  EXPECT_EQ(copy.constants[0].space(), kDevice);
  EXPECT_EQ(copy.kernel, nullptr);
}

TEST_F(MemorySpacesTest, AFedInvariantGoesUpOnceAndACounterStays) {
  spec_.frames.resize(2);
  const int x = Feed(), i = Feed();
  const int enter_x = Move(FlowOp::kConstantEnter, {{x, 0}});
  const int enter_i = Move(FlowOp::kEnter, {{i, 0}});
  const int merge = Move(FlowOp::kMerge, {{enter_i, 0}}, 2, 1);
  const int less = Compute("less", kHost, {{merge, 0}});
  const int cond = Move(FlowOp::kLoopCond, {{less, 0}}, 1, 1);
  const int choice = Move(FlowOp::kSwitch, {{merge, 0}, {cond, 0}}, 2, 1);
  const int more = Compute("more", kHost, {{choice, 1}});
  const int next = Move(FlowOp::kNextIteration, {{more, 0}}, 1, 1);
  spec_.nodes[merge].inputs.push_back({next, 0});
  // A value of the device that goes round beside it.
  const int merge_v = Move(FlowOp::kMerge, {{enter_x, 0}}, 2, 1);
  const int choice_v = Move(FlowOp::kSwitch, {{merge_v, 0}, {cond, 0}}, 2, 1);
  const int work = Compute("work", kDevice, {{choice_v, 1}, {enter_x, 0}});
  const int next_v = Move(FlowOp::kNextIteration, {{work, 0}}, 1, 1);
  spec_.nodes[merge_v].inputs.push_back({next_v, 0});
  const int exit = Move(FlowOp::kExit, {{choice_v, 0}}, 1, 1);
  const int which = Compute("which", kDevice, {{merge_v, 1}});
  for (const int node : {less, more, work, which}) spec_.nodes[node].frame = 1;
  spec_.fetches = {{exit, 0}};
  Make();
  EXPECT_THAT(Copies(), ElementsAre("_Download of move", "_Upload of feed", "_Upload of move"));
  EXPECT_EQ(spec_.nodes[spec_.nodes[enter_x].inputs[0].node].op, "_Upload");
  EXPECT_EQ(spec_.nodes[spec_.nodes[enter_x].inputs[0].node].frame, 0);
  EXPECT_EQ(spec_.nodes[spec_.nodes[which].inputs[0].node].frame, 1) << "Merge's number";
  EXPECT_EQ(SpaceOf({merge, 0}), kHost);
  EXPECT_EQ(SpaceOf({merge_v, 0}), kDevice);
  EXPECT_EQ(SpaceOf({choice_v, 0}), kDevice);
}

TEST_F(MemorySpacesTest, AMoveOfWhatTheHostMakesStaysThere) {
  const int made = Compute("made", kHost, {{Feed(), 0}});
  const int cond = Feed();
  const int choice = Move(FlowOp::kSwitch, {{made, 0}, {cond, 0}}, 2);
  const int a = Compute("a", kDevice, {{choice, 0}});
  spec_.fetches = {{a, 0}};
  Make();
  EXPECT_EQ(SpaceOf({choice, 0}), kHost);
  EXPECT_THAT(Copies(), ElementsAre("_Download of a", "_Upload of move"));
}

TEST_F(MemorySpacesTest, AVariableIsReadWhenItsConsumerCouldStart) {
  const int variable = Compute("variable", kHost, {});
  const int feed = Feed();
  const int assign = Compute("assign", kHost, {{feed, 0}});
  const int a = Compute("a", kDevice, {{variable, 0, true}, {feed, 0}});
  const int b = Compute("b", kDevice, {{variable, 0, true}});
  spec_.nodes[a].control_inputs = {assign};
  spec_.fetches = {{a, 0}, {b, 0}};
  Make();
  EXPECT_THAT(Copies(), ElementsAre("_Download of a", "_Download of b", "_Upload of feed",
                                    "_Upload of variable", "_Upload of variable"));
  const PlanSpec::Node& copy = spec_.nodes[spec_.nodes[a].inputs[0].node];
  EXPECT_TRUE(copy.inputs[0].snapshot);
  EXPECT_THAT(copy.control_inputs, ::testing::UnorderedElementsAre(assign, feed));
}

TEST_F(MemorySpacesTest, RandomGraphsAgree) {
  for (int seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    spec_ = PlanSpec();
    std::vector<Input> values;
    const auto any = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < 3; ++i) values.push_back({Feed(), 0});
    values.push_back({Constant(1), 0});
    const int size = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < size; ++i) {
      if (random() % 3 == 0) {
        const int node = random() % 2 == 0 ? Move(FlowOp::kSwitch, {any(), any()}, 2)
                                           : Move(FlowOp::kMerge, {any(), any()}, 2);
        values.push_back({node, 0});
        values.push_back({node, 1});
        continue;
      }
      const int node = Compute("n", random() % 2 == 0 ? kHost : kDevice, {any(), any()});
      for (MemorySpace& space : spec_.nodes[node].spaces.inputs) {
        if (random() % 4 == 0) space = kHost;
      }
      values.push_back({node, 0});
    }
    for (int i = 0; i < 5; ++i) spec_.fetches.push_back(any());
    Make();
    // Nothing is copied twice.
    std::vector<std::pair<int, int>> copied;
    for (size_t i = before_; i < spec_.nodes.size(); ++i) {
      for (const Input& from : spec_.nodes[i].inputs) copied.emplace_back(from.node, from.port);
    }
    std::sort(copied.begin(), copied.end());
    EXPECT_EQ(std::unique(copied.begin(), copied.end()), copied.end()) << "seed " << seed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe

#include "actors/session/step_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/runtime.h"
#include "actors/session/compile.h"
#include "devices/status_macros.h"
#include "graph/passes/step_graph.h"
#include "kernels/cancellation.h"

namespace troupe {
namespace {

using testing::ElementsAre;

class StepCostsTest : public testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  }
  static std::string Device(int number) {
    return StrCat("/job:localhost/replica:0/task:0/device:CPU:", number);
  }
  CompiledStep CompileStep(const StepSignature& signature) {
    auto step = Compile(graph_, signature, CompileOptions(), runtime_.get(), &kernels_);
    EXPECT_TRUE(step.ok()) << step.status();
    return *std::move(step);
  }
  void Run(const CompiledStep& compiled, const Tensor& feed) {
    PartitionedStep step(compiled.partitions, 1);
    CancellationToken cancellation;
    Containers resources;
    StepContext context;
    context.allocator = HostAllocator();
    context.cancellation = &cancellation;
    context.step_resources = &resources;
    std::vector<Tensor> fetches(compiled.num_fetches);
    const absl::Status status = step.Run(context, {feed}, absl::MakeSpan(fetches));
    ASSERT_TRUE(status.ok()) << status;
  }

  Graph graph_;
  std::shared_ptr<Runtime> runtime_ = Runtime::Create({.threads = 1, .num_cpu_devices = 2}).value();
  StatefulKernels kernels_;
};

TEST_F(StepCostsTest, WhatRunsMeasureIsKnownToLaterSignatures) {
  Node* x = Add(NodeSpec("Placeholder", "x")
                    .Attr("dtype", ElementType::kFloat)
                    .Attr("shape", PartialShape({-1}))
                    .Device("/device:CPU:0"));
  Node* exp = Add(NodeSpec("Exp", "exp").Input(x).Device("/device:CPU:1"));
  Node* sum = Add(NodeSpec("AddV2", "sum").Input(x).Input(exp).Device("/device:CPU:0"));
  StepSignature signature;
  signature.feeds = {x};
  signature.fetches = {sum};
  const CompiledStep compiled = CompileStep(signature);
  ASSERT_EQ(compiled.partitions.size(), 2u);
  EXPECT_EQ(kernels_.costs()->Update().num_measured(), 0);

  constexpr int kElements = 100000;
  const Tensor feed = Tensor::Vector<float>(std::vector<float>(kElements, 0.5f));
  for (int i = 0; i < 4; ++i) Run(compiled, feed);  // The first run does not measure.
  const CostModel& costs = kernels_.costs()->Update();
  CostModel::Measured measured;
  ASSERT_TRUE(costs.Lookup("exp", &measured));
  EXPECT_GT(measured.time_us, 0);
  EXPECT_THAT(measured.output_bytes, ElementsAre(4 * kElements));
  EXPECT_TRUE(costs.Lookup("sum", &measured));
  EXPECT_FALSE(costs.Lookup("x", &measured));  // Nothing is computed.
  // The estimate took the unknown size to be small.
  EXPECT_LT(EstimateOutputBytes(*exp, 0), 1000);
}

TEST_F(StepCostsTest, PlansThatAreGoneAreForgottenNotWhatTheyMeasured) {
  Node* x = Add(NodeSpec("Placeholder", "x").Attr("dtype", ElementType::kFloat));
  Node* exp = Add(NodeSpec("Exp", "exp").Input(x).Device("/device:CPU:1"));
  Node* neg = Add(NodeSpec("Neg", "neg").Input(exp).Device("/device:CPU:0"));
  StepSignature signature;
  signature.feeds = {x};
  signature.fetches = {neg};
  {
    const CompiledStep compiled = CompileStep(signature);
    for (int i = 0; i < 4; ++i) Run(compiled, Tensor::Scalar(1.0f));
    EXPECT_EQ(kernels_.costs()->Update().num_measured(), 2);
  }
  CostModel::Measured before, after;
  ASSERT_TRUE(kernels_.costs()->Update().Lookup("exp", &before));
  ASSERT_TRUE(kernels_.costs()->Update().Lookup("exp", &after));
  EXPECT_EQ(before.times, after.times);
}

TEST_F(StepCostsTest, TheNextSignatureIsPlacedByThem) {
  // Two products that could run at the same time, and a third node that needs both.
  Node* x = Add(NodeSpec("Placeholder", "x")
                    .Attr("dtype", ElementType::kFloat)
                    .Attr("shape", PartialShape({-1})));
  Node* a = Add(NodeSpec("Exp", "a").Input(x));
  Node* b = Add(NodeSpec("Tanh", "b").Input(x));
  Node* c = Add(NodeSpec("AddV2", "c").Input(a).Input(b));
  PlacementInput input;
  for (int i = 0; i < 2; ++i) {
    input.devices.push_back({Device(i), *DeviceName::Parse(Device(i))});
  }
  auto placed = [&] {
    StepSignature signature;
    signature.feeds = {x};
    signature.fetches = {c};
    auto step = PrepareStep(graph_, signature, true, true,
                            [](const Subgraph&) { return absl::OkStatus(); });
    EXPECT_TRUE(step.ok()) << step.status();
    std::map<std::string, std::string> where;
    auto parts = CutStep(input, {}, {}, std::move(step->subgraph), [&](const Subgraph& subgraph) {
      for (const SubNode& node : subgraph.nodes) where[node.original->name()] = node.device;
    });
    EXPECT_TRUE(parts.ok()) << parts.status();
    return where;
  };
  auto where = placed();
  EXPECT_EQ(where["a"], where["b"]);  // By estimate they are too small to be parted.
  CostModel costs;
  costs.Record("a", 500, {4000});
  costs.Record("b", 500, {4000});
  input.costs = &costs;
  where = placed();
  EXPECT_NE(where["a"], where["b"]);
}

}  // namespace
}  // namespace troupe

#include "graph/passes/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace troupe {
namespace {

class CostModelTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Node* Placeholder(const std::string& name, const PartialShape& shape) {
    return Add(
        NodeSpec("Placeholder", name).Attr("dtype", ElementType::kFloat).Attr("shape", shape));
  }
  static SubNode Sub(const Node* node) {
    SubNode sub;
    sub.original = node;
    return sub;
  }
  Graph graph_;
};

TEST_F(CostModelTest, MatricesAndConvolutionsByTheirShapes) {
  Node* a = Placeholder("a", {64, 128});
  Node* b = Placeholder("b", {128, 32});
  Node* product = Add(NodeSpec("MatMul", "product").Input(a).Input(b));
  EXPECT_EQ(EstimateCost(*product).flops, 2.0 * 64 * 128 * 32);
  EXPECT_EQ(EstimateCost(*product).bytes, 4.0 * (64 * 128 + 128 * 32 + 64 * 32));
  Node* turned = Add(NodeSpec("MatMul", "turned")
                         .Input(b)
                         .Input(a)
                         .Attr("transpose_a", true)
                         .Attr("transpose_b", true));
  EXPECT_EQ(EstimateCost(*turned).flops, 2.0 * 32 * 128 * 64);
  Node* image = Placeholder("image", {8, 28, 28, 3});
  Node* filter = Placeholder("filter", {5, 5, 3, 16});
  const int64_t strides[] = {1, 1, 1, 1};
  Node* conv = Add(NodeSpec("Conv2D", "conv")
                       .Input(image)
                       .Input(filter)
                       .Attr("strides", absl::MakeConstSpan(strides))
                       .Attr("padding", "SAME"));
  EXPECT_EQ(EstimateCost(*conv).flops, 2.0 * 8 * 28 * 28 * 16 * 5 * 5 * 3);
  EXPECT_EQ(EstimateOutputBytes(*conv, 0), 4 * 8 * 28 * 28 * 16);
}

TEST_F(CostModelTest, WhatOnlyPassesOnCostsLittleWhateverItsSize) {
  Node* a = Placeholder("a", {1000, 1000});
  Node* same = Add(NodeSpec("Identity", "same").Input(a));
  Node* neg = Add(NodeSpec("Neg", "neg").Input(a));
  Node* exp = Add(NodeSpec("Exp", "exp").Input(a));
  EXPECT_TRUE(IsTrivialOp(*same));
  EXPECT_FALSE(IsTrivialOp(*neg));
  EXPECT_LT(EstimateCost(*same).time_us(), 1);
  EXPECT_GT(EstimateCost(*neg).time_us(), 100);
  EXPECT_GE(EstimateCost(*exp).time_us(), EstimateCost(*neg).time_us());
}

TEST_F(CostModelTest, UnknownDimensionsAreAssumed) {
  Node* a = Placeholder("a", {PartialShape::kUnknown, 10});
  EXPECT_EQ(EstimateOutputBytes(*a, 0), StaticCost::kAssumedDim * 10 * 4);
  Node* b = Add(NodeSpec("Placeholder", "b").Attr("dtype", ElementType::kFloat));
  EXPECT_GT(EstimateOutputBytes(*b, 0), 0);
  Node* huge = Placeholder("huge", {int64_t{1} << 30, int64_t{1} << 31});
  EXPECT_GT(EstimateOutputBytes(*huge, 0), 0);
}

TEST_F(CostModelTest, MeasurementsReplaceEstimates) {
  Node* a = Placeholder("a", {PartialShape::kUnknown, 10});
  Node* neg = Add(NodeSpec("Neg", "neg").Input(a));
  CostModel costs;
  const double estimate = costs.TimeUs(Sub(neg));
  EXPECT_EQ(estimate, EstimateCost(*neg).time_us());
  costs.Record("neg", 100, {4000});
  EXPECT_EQ(costs.TimeUs(Sub(neg)), 100);
  EXPECT_EQ(costs.OutputBytes(Sub(neg), 0), 4000);
  costs.Record("neg", 200, {-1});
  EXPECT_EQ(costs.TimeUs(Sub(neg)), 150);
  EXPECT_EQ(costs.OutputBytes(Sub(neg), 0), 4000);
  for (int i = 0; i < 200; ++i) costs.Record("neg", 10, {});
  EXPECT_NEAR(costs.TimeUs(Sub(neg)), 10, 0.1);  // What was long ago is forgotten.
  costs.Record("neg", std::nan(""), {});
  costs.Record("neg", -5, {});
  EXPECT_NEAR(costs.TimeUs(Sub(neg)), 10, 0.1);
  CostModel::Measured measured;
  EXPECT_TRUE(costs.Lookup("neg", &measured));
  EXPECT_FALSE(costs.Lookup("a", &measured));
  EXPECT_EQ(costs.num_measured(), 1);
  costs.Forget("neg");
  EXPECT_EQ(costs.TimeUs(Sub(neg)), estimate);
}

TEST_F(CostModelTest, DevicesOfATypeHaveTheirOwnTimes) {
  Node* a = Placeholder("a", {1000});
  Node* neg = Add(NodeSpec("Neg", "neg").Input(a));  // 8000 bytes.
  const DeviceFigures card{1e7, 1e6, 5, 10, 1e4};
  CostModel costs;
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg), "GPU", card), 5 + 8000 / 1e6);
  EXPECT_EQ(costs.TimeUs(Sub(neg), "CPU", {}), costs.TimeUs(Sub(neg)));
  // A hundred times the CPU's estimate: the shapes were larger, so it is that elsewhere, too.
  costs.Record("neg", 0.1 + 160, {});
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg), "GPU", card), 5 + 100 * 8000 / 1e6);
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg), "CPU", {}), 160.1);
  // What is measured there counts there, and only there.
  costs.Record("neg", 7, {}, "GPU");
  costs.Record("neg", 9, {}, "GPU");
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg), "GPU", card), 8);
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg), "CPU", {}), 160.1);
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg)), 8) << "where it ran last";
  EXPECT_DOUBLE_EQ(costs.TimeUs(Sub(neg), "TPU", card), 5 + 100 * 8000 / 1e6);
}

TEST_F(CostModelTest, FeedsAndConstantsCostNothing) {
  Node* a = Placeholder("a", {10});
  CostModel costs;
  costs.Record("a", 50, {});
  SubNode feed = Sub(a);
  feed.kind = SubNode::Kind::kFeed;
  EXPECT_EQ(costs.TimeUs(feed), 0);
  EXPECT_EQ(costs.OutputBytes(feed, 0), 40);
  SubNode constant = Sub(a);
  constant.kind = SubNode::Kind::kConstant;
  constant.values = {Tensor::Vector<float>({1, 2})};
  EXPECT_EQ(costs.TimeUs(constant), 0);
  EXPECT_EQ(costs.OutputBytes(constant, 0), 8);
}

TEST_F(CostModelTest, ManyThreadsRecord) {
  CostModel costs;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&costs] {
      for (int i = 0; i < 1000; ++i) costs.Record("node", 5, {8});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CostModel::Measured measured;
  ASSERT_TRUE(costs.Lookup("node", &measured));
  EXPECT_DOUBLE_EQ(measured.time_us, 5);
}

}  // namespace
}  // namespace troupe

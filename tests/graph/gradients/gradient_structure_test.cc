// Training steps execute what gradients add: with known shapes that is nearly nothing but the work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

const ElementType kInt = ElementType::kInt32;

TEST(GradientStructure, MatMul) {
  TestGraph g;
  Output a = g.Placeholder({-1, 3}), b = g.Placeholder({3, 4}), y = g.Op("MatMul", {a, b});
  Output grad_y = g.Placeholder({-1, 4});
  g.Gradients({y}, {a, b}, {grad_y});
  EXPECT_THAT(g.added(), ElementsAre("MatMul", "MatMul"));
  g.Gradients({y}, {b}, {grad_y});
  EXPECT_THAT(g.added(), ElementsAre("MatMul"));
}

TEST(GradientStructure, DenseLayer) {
  TestGraph g;
  Output x = g.Placeholder({100, 8}), w = g.Placeholder({8, 4}), b = g.Placeholder({4});
  Output y = g.Op("Relu", {g.Op("BiasAdd", {g.Op("MatMul", {x, w}), b})});
  g.Gradients({y}, {w, b}, {g.Placeholder({100, 4})});
  EXPECT_THAT(g.added(), ElementsAre("BiasAddGrad", "MatMul", "ReluGrad"));
}

TEST(GradientStructure, ConvolutionLayer) {
  TestGraph g;
  Output x = g.Placeholder({2, 8, 8, 3}), filter = g.Placeholder({3, 3, 3, 5});
  auto attrs = [](NodeSpec& spec) {
    spec.Attr("strides", absl::Span<const int64_t>({1, 2, 2, 1})).Attr("padding", "SAME");
  };
  Output y = g.Op("Conv2D", {x, filter}, attrs);
  std::vector<Output> grads = g.Gradients({y}, {x, filter}, {g.Placeholder({2, 4, 4, 5})});
  EXPECT_THAT(g.added(), ElementsAre("Conv2DBackpropFilter", "Conv2DBackpropInput"));
  EXPECT_EQ(grads[1].node->attrs().GetOr<std::string>("padding", ""), "SAME");
  EXPECT_EQ(grads[1].node->attrs().GetOr<std::vector<int64_t>>("strides", {})[1], 2);
  EXPECT_EQ(grads[0].shape(), PartialShape({2, 8, 8, 3}));
}

TEST(GradientStructure, MeanCrossEntropy) {
  TestGraph g;
  Output logits = g.Placeholder({100, 10}), labels = g.Placeholder(kInt, {100});
  Output losses = g.Op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
  Output loss = g.Op("Mean", {losses, g.IntVector({0})});
  g.Gradients({loss}, {logits});
  EXPECT_THAT(g.added(), ElementsAre("BroadcastTo", "ExpandDims", "Mul", "RealDiv"));
}

TEST(GradientStructure, MeanOfAnUnknownBatch) {
  TestGraph g;
  Output x = g.Placeholder({-1});
  g.Gradients({g.Op("Mean", {x, g.IntVector({0})})}, {x});
  EXPECT_THAT(g.added(), ElementsAre("BroadcastTo", "Cast", "RealDiv", "Shape", "Size"));
}

TEST(GradientStructure, Sums) {
  TestGraph g;
  Output x = g.Placeholder({4, 5, 6});
  auto sum = [&](std::vector<int32_t> axes) {
    Output y = g.Op("Sum", {x, g.IntVector(axes)});
    return g.Gradients({y}, {x}, {g.Placeholder(y.shape())})[0];
  };
  EXPECT_EQ(sum({0, 1, 2}).shape(), PartialShape({4, 5, 6}));
  EXPECT_THAT(g.added(), ElementsAre("BroadcastTo"));
  sum({0});
  EXPECT_THAT(g.added(), ElementsAre("BroadcastTo"));
  sum({-1});
  EXPECT_THAT(g.added(), ElementsAre("BroadcastTo", "ExpandDims"));
  sum({2, 0});
  EXPECT_THAT(g.added(), ElementsAre("BroadcastTo", "Reshape"));
}

TEST(GradientStructure, BroadcastingIsDecidedWhileBuilding) {
  TestGraph g;
  auto added = [&](PartialShape a, PartialShape b, PartialShape y) {
    Output x1 = g.Placeholder(a), x2 = g.Placeholder(b);
    g.Gradients({g.Op("AddV2", {x1, x2})}, {x1, x2}, {g.Placeholder(y)});
    return g.added();
  };
  EXPECT_THAT(added({2, 3}, {2, 3}, {2, 3}), IsEmpty());
  EXPECT_THAT(added({2, 3}, {3}, {2, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({2, 3}, kScalar, {2, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({2, 3}, {2, 1}, {2, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({2, 3}, {1, 3}, {2, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({4, 2, 3}, {2, 1}, {4, 2, 3}), ElementsAre("Reshape", "Sum"));
  EXPECT_THAT(added({2, 1}, {1, 3}, {2, 3}), ElementsAre("Sum", "Sum"));
  // The batch's size is not needed where it cannot have been repeated.
  EXPECT_THAT(added({-1, 3}, {3}, {-1, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({-1, 3}, kScalar, {-1, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({-1, 3}, {1, 3}, {-1, 3}), ElementsAre("Sum"));
  EXPECT_THAT(added({-1, 3}, {-1, 3}, {-1, 3}), Contains("BroadcastGradientArgs"));
  EXPECT_THAT(added(PartialShape(), {3}, PartialShape()), Contains("BroadcastGradientArgs"));
}

TEST(GradientStructure, KnownShapesNeedNoShapeOps) {
  TestGraph g;
  Output x = g.Placeholder({4, 6});
  auto list = [](Output a, Output b) { return std::vector<Output>{a, b}; };
  Output parts[] = {
      g.Op("Slice", {x, g.IntVector({1, 2}), g.IntVector({2, 3})}),
      g.Op("StridedSlice", {x, g.IntVector({1, 0}), g.IntVector({3, 6}), g.IntVector({1, 2})}),
      g.Op("Pad", {x, g.Const(Tensor::FromValues<int32_t>({1, 0, 2, 3}, Shape({2, 2})).value())}),
      g.Op("Tile", {x, g.IntVector({2, 1})}),
      g.Op("Transpose", {x, g.IntVector({1, 0})}),
      g.Op("Reshape", {x, g.IntVector({-1, 3})}),
      g.Op("ExpandDims", {x, g.Scalar<int32_t>(1)}),
      g.Op("BroadcastTo", {x, g.IntVector({3, 4, 6})}),
      g.Op("GatherV2", {x, g.IntVector({1, 1}), g.Scalar<int32_t>(0)}),
      g.Op("GatherV2", {x, g.IntVector({1, 1}), g.Scalar<int32_t>(1)}),
      g.Op("TopKV2", {x, g.Scalar<int32_t>(2)}),
      g.Op("Prod", {x, g.IntVector({0})}),
      g.Op("Mean", {x, g.IntVector({1})}),
      g.Op("MatMul", {x, x}, [](NodeSpec& spec) { spec.Attr("transpose_b", true); }),
      g.ListOp("Pack", list(x, x)),
  };
  for (const Output& y : parts) {
    ASSERT_TRUE(y.valid()) << g.status();
    Output grad = g.Gradients({y}, {x}, {g.Placeholder(y.shape())})[0];
    EXPECT_EQ(grad.shape(), PartialShape({4, 6})) << y.node->op();
    EXPECT_THAT(g.added(), Not(Contains("Shape"))) << y.node->op();
    EXPECT_THAT(g.added(), Not(Contains("BroadcastGradientArgs"))) << y.node->op();
  }
}

TEST(GradientStructure, ConcatOfKnownSizesIsSplit) {
  TestGraph g;
  Output a = g.Placeholder({-1, 2}), b = g.Placeholder({-1, 3});
  NodeSpec spec("ConcatV2", g.NewName("concat"));
  spec.Input(std::vector<Output>{a, b}).Input(g.Scalar<int32_t>(1));
  Output y(g.Add(std::move(spec)), 0);
  g.Gradients({y}, {a, b}, {g.Placeholder({-1, 5})});
  EXPECT_THAT(g.added(), ElementsAre("SplitV"));
}

TEST(GradientStructure, ConstantsAreNotDifferentiated) {
  TestGraph g;
  Output x = g.Placeholder({3});
  g.Gradients({g.Op("Pow", {x, g.Scalar<float>(3)})}, {x}, {g.Placeholder({3})});
  EXPECT_THAT(g.added(), Not(Contains("Log")));
  g.Gradients({g.Op("RealDiv", {x, g.Scalar<float>(3)})}, {x}, {g.Placeholder({3})});
  EXPECT_THAT(g.added(), ElementsAre("RealDiv"));
  g.Gradients({g.Op("Mul", {x, g.Scalar<float>(3)})}, {x}, {g.Placeholder({3})});
  EXPECT_THAT(g.added(), ElementsAre("Mul"));
}

TEST(GradientStructure, ComplexNumbersAreConjugated) {
  TestGraph g;
  Output x = g.Placeholder(ElementType::kComplex64, {3});
  Output w = g.Placeholder(ElementType::kComplex64, {3});
  g.Gradients({g.Op("Mul", {x, w})}, {x}, {w});
  EXPECT_THAT(g.added(), ElementsAre("Conj", "Mul"));
}

// What nobody asks for is not computed: here the weights are constants.
TEST(GradientStructure, RecurrentCells) {
  TestGraph g;
  Output x = g.Placeholder({2, 3}), state = g.Placeholder({2, 5}), grad = g.Placeholder({2, 5});
  Output w = g.Placeholder({8, 20}), peephole = g.Placeholder({5}), bias = g.Placeholder({20});
  Node* lstm = g.Add("LSTMBlockCell", {x, state, state, w, peephole, peephole, peephole, bias});
  ASSERT_NE(lstm, nullptr) << g.status();
  g.Gradients({Output(lstm, 6)}, {x}, {grad});
  EXPECT_THAT(g.added(), ElementsAre("LSTMBlockCellGrad", "MatMul", "Slice", "ZerosLike"));
  g.Gradients({Output(lstm, 6)}, {peephole}, {grad});
  EXPECT_THAT(g.added(), ElementsAre("AddN", "LSTMBlockCellGrad", "ZerosLike"));
  Node* gru = g.Add("GRUBlockCell", {x, state, g.Placeholder({8, 10}), g.Placeholder({8, 5}),
                                     g.Placeholder({10}), g.Placeholder({5})});
  ASSERT_NE(gru, nullptr) << g.status();
  g.Gradients({Output(gru, 3)}, {x, state}, {grad});
  EXPECT_THAT(g.added(), ElementsAre("GRUBlockCellGrad"));
}

// Only graphs of old versions may have it.
TEST(GradientStructure, BatchNormWithGlobalNormalization) {
  TestGraph g;
  g.graph()->set_producer(8);
  Output t = g.Placeholder({2, 3, 3, 5}), channels = g.Placeholder({5});
  auto attrs = [](NodeSpec& spec) {
    spec.Attr("variance_epsilon", 0.01f).Attr("scale_after_normalization", true);
  };
  Output y =
      g.Op("BatchNormWithGlobalNormalization", {t, channels, channels, channels, channels}, attrs);
  ASSERT_TRUE(y.valid()) << g.status();
  g.Gradients({y}, {t}, {g.Placeholder({2, 3, 3, 5})});
  EXPECT_THAT(g.added(), ElementsAre("BatchNormWithGlobalNormalizationGrad"));
}

}  // namespace
}  // namespace troupe

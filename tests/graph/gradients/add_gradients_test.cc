#include "graph/gradients/add_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/gradients/gradient_test_util.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status StatusOf(std::vector<Output> ys, std::vector<Output> xs,
                      std::vector<Output> grad_ys = {}) {
  std::vector<Output> grads;
  return AddSymbolicGradients(ys, xs, grad_ys, &grads);
}

TEST(AddGradients, ASingleContributionIsPassedOn) {
  TestGraph g;
  Output x = g.Placeholder({3}), y = g.Op("Identity", {g.Op("Identity", {x})});
  Output grad_y = g.Placeholder({3});
  EXPECT_EQ(g.Gradients({y}, {x}, {grad_y})[0], grad_y);
  EXPECT_THAT(g.added(), IsEmpty());
}

TEST(AddGradients, ContributionsAreSummed) {
  TestGraph g;
  Output x = g.Placeholder({3});
  Output y = g.Op("AddV2", {g.Op("Neg", {x}), g.Op("Neg", {x})});
  Output grad = g.Gradients({y}, {x}, {g.Placeholder({3})})[0];
  EXPECT_EQ(grad.node->op(), "AddN");
  EXPECT_THAT(g.added(), ElementsAre("AddN", "Neg", "Neg"));
}

TEST(AddGradients, OnesByDefault) {
  TestGraph g;
  Output scalar = g.Placeholder(kScalar), vector = g.Placeholder({3}), any = g.Placeholder({-1});
  EXPECT_EQ(g.Gradients({scalar}, {scalar})[0].node->op(), "Const");
  EXPECT_EQ(g.Gradients({vector}, {vector})[0].node->op(), "Fill");
  EXPECT_EQ(g.Gradients({any}, {any})[0].node->op(), "OnesLike");
}

TEST(AddGradients, AnXMayBeAYAndAYMayBeRepeated) {
  TestGraph g;
  Output x = g.Placeholder({3}), w = g.Placeholder({3});
  EXPECT_EQ(g.Gradients({x}, {x}, {w})[0], w);
  EXPECT_EQ(g.Gradients({x, x}, {x}, {w, w})[0].node->op(), "AddN");
}

TEST(AddGradients, PathsGoOnThroughAnX) {
  TestGraph g;
  Output a = g.Placeholder({3}), b = g.Op("Exp", {a}), c = g.Op("Tanh", {b});
  std::vector<Output> grads = g.Gradients({c}, {a, b}, {g.Placeholder({3})});
  EXPECT_EQ(grads[1].node->op(), "TanhGrad");
  EXPECT_EQ(grads[0].node->op(), "Mul");
  EXPECT_EQ(grads[0].node->input(0), grads[1]);
}

TEST(AddGradients, WhatAnXDependsOnIsLeftAlone) {
  TestGraph g;
  // Where has no gradient, but lies before x.
  Output x = g.Op("Cast", {g.Op("Where", {g.Placeholder(ElementType::kBool, {3})})},
                  [](NodeSpec& spec) { spec.Attr("DstT", ElementType::kFloat); });
  EXPECT_TRUE(g.Gradients({g.Op("Neg", {x})}, {x})[0].valid());
}

TEST(AddGradients, UnconnectedXsHaveNone) {
  TestGraph g;
  Output x = g.Placeholder({3}), other = g.Placeholder({3});
  std::vector<Output> grads = g.Gradients({g.Op("Neg", {x})}, {x, other, g.Op("Exp", {x})});
  EXPECT_TRUE(grads[0].valid());
  EXPECT_FALSE(grads[1].valid());
  EXPECT_FALSE(grads[2].valid());
}

TEST(AddGradients, TheChainEndsWhereNothingFlows) {
  TestGraph g;
  Output x = g.Placeholder({3});
  EXPECT_FALSE(g.Gradients({g.Op("StopGradient", {x})}, {x})[0].valid());
  EXPECT_FALSE(g.Gradients({g.Op("Floor", {x})}, {x})[0].valid());
  EXPECT_FALSE(g.Gradients({g.Op("ZerosLike", {x})}, {x})[0].valid());
  auto cast = [&](Output from, ElementType to) {
    return g.Op("Cast", {from}, [&](NodeSpec& spec) { spec.Attr("DstT", to); });
  };
  Output rounded = cast(cast(x, ElementType::kInt32), ElementType::kFloat);
  EXPECT_FALSE(g.Gradients({rounded}, {x})[0].valid());
}

TEST(AddGradients, IntegersCarryNone) {
  TestGraph g;
  Output x = g.Placeholder(ElementType::kInt32, {3});
  EXPECT_FALSE(g.Gradients({g.Op("Neg", {x})}, {x})[0].valid());
  // As in TensorFlow: what is its own y has one.
  EXPECT_EQ(g.Gradients({x}, {x})[0].type(), ElementType::kInt32);
}

TEST(AddGradients, OnlyUsedOutputsHaveGradients) {
  TestGraph g;
  Output x = g.Placeholder({4, 2});
  Output parts =
      g.Op("Split", {g.Scalar<int32_t>(0), x}, [](NodeSpec& spec) { spec.Attr("num_split", 2); });
  g.Gradients({Output(parts.node, 1)}, {x}, {g.Placeholder({2, 2})});
  EXPECT_THAT(g.added(), ElementsAre("ConcatV2", "ZerosLike"));
}

TEST(AddGradients, SeveralYs) {
  TestGraph g;
  Output x = g.Placeholder({3}), a = g.Op("Neg", {x}), b = g.Op("Exp", {a});
  Output grad = g.Gradients({a, b}, {x}, {g.Placeholder({3}), g.Placeholder({3})})[0];
  EXPECT_EQ(grad.node->op(), "Neg");
  EXPECT_EQ(grad.node->input(0).node->op(), "AddN");
}

TEST(AddGradients, ResourceVariables) {
  TestGraph g;
  Output handle = g.Op("VarHandleOp", {}, [](NodeSpec& spec) {
    spec.Attr("dtype", ElementType::kFloat).Attr("shape", PartialShape({3}));
  });
  auto read = [&] {
    return g.Op("ReadVariableOp", {handle},
                [](NodeSpec& spec) { spec.Attr("dtype", ElementType::kFloat); });
  };
  Output y = g.Op("Mul", {read(), read()});
  Output grad = g.Gradients({y}, {handle})[0];
  ASSERT_TRUE(grad.valid());
  EXPECT_EQ(grad.node->op(), "AddN");
  EXPECT_EQ(grad.type(), ElementType::kFloat);
}

TEST(AddGradients, ReferenceVariables) {
  TestGraph g;
  Output variable = g.Op("VariableV2", {}, [](NodeSpec& spec) {
    spec.Attr("dtype", ElementType::kFloat).Attr("shape", PartialShape({3}));
  });
  Output grad = g.Gradients({g.Op("Square", {variable})}, {variable})[0];
  ASSERT_TRUE(grad.valid());
  EXPECT_EQ(grad.shape(), PartialShape({3}));
}

TEST(AddGradients, NamesAreScopedAndUnique) {
  TestGraph g;
  Output x = g.Placeholder(kScalar), y = g.Op("Neg", {x});
  EXPECT_EQ(g.Gradients({y}, {x})[0].node->name(), "gradients/f/Neg_grad/Neg");
  EXPECT_EQ(g.Gradients({y}, {x})[0].node->name(), "gradients_1/f/Neg_grad/Neg");
}

TEST(AddGradients, DeepGraphs) {
  TestGraph g;
  Output x = g.Placeholder(kScalar), y = x;
  for (int i = 0; i < 100000; ++i) y = g.Op("Neg", {y});
  Output grad = g.Gradients({y}, {x})[0];
  EXPECT_TRUE(grad.valid());
  EXPECT_EQ(g.added().size(), 100000u);
}

TEST(AddGradients, ManyPathsAreFollowedOnce) {
  TestGraph g;
  Output x = g.Placeholder(kScalar), y = x;
  for (int i = 0; i < 60; ++i) y = g.Op("AddV2", {y, y});
  EXPECT_TRUE(g.Gradients({y}, {x})[0].valid());
  EXPECT_EQ(g.added().size(), 60u);
}

TEST(AddGradients, SecondDerivatives) {
  TestGraph g;
  Output x = g.Placeholder({3}), y = g.Op("Tanh", {x});
  Output first = g.Gradients({y}, {x})[0];
  Output second = g.Gradients({first}, {x})[0];
  ASSERT_TRUE(second.valid());
  EXPECT_EQ(second.shape(), PartialShape({3}));
}

TEST(AddGradients, AnOpWithoutGradientIsNamed) {
  TestGraph g;
  Output x = g.Placeholder({3}), y = g.Op("Neg", {g.Op("Snapshot", {x})});
  absl::Status status = StatusOf({y}, {x});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("'Snapshot'"));
  EXPECT_THAT(status.ToString(), HasSubstr("'f/Snapshot'"));
  // It does no harm off the path.
  Output z = g.Placeholder({3});
  Output sum = g.Op("AddV2", {z, y});
  EXPECT_TRUE(StatusOf({sum}, {z}).ok());
}

TEST(AddGradients, PreventedGradients) {
  TestGraph g;
  Output x = g.Placeholder({3});
  Output y = g.Op("PreventGradient", {x},
                  [](NodeSpec& spec) { spec.Attr("message", "because I say so"); });
  absl::Status status = StatusOf({y}, {x});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.ToString(), HasSubstr("because I say so"));
}

TEST(AddGradients, WrongArguments) {
  TestGraph g, other;
  Output x = g.Placeholder({3}), y = g.Op("Neg", {x});
  Output complex = g.Placeholder(ElementType::kComplex64, {3});
  Output text = g.Placeholder(ElementType::kString, {3});
  auto code = [](const absl::Status& status) { return status.code(); };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(StatusOf({y}, {x}, {g.Placeholder(ElementType::kDouble, {3})})), kInvalid);
  EXPECT_EQ(code(StatusOf({y}, {x}, {g.Placeholder({4})})), kInvalid);
  EXPECT_EQ(code(StatusOf({y}, {x}, {y, y})), kInvalid);
  EXPECT_EQ(code(StatusOf({y}, {other.Placeholder({3})})), kInvalid);
  EXPECT_EQ(code(StatusOf({y}, {Output(x.node, 1)})), kInvalid);
  EXPECT_EQ(code(StatusOf({Output(y.node, -1)}, {x})), kInvalid);
  EXPECT_EQ(code(StatusOf({Output()}, {x})), kInvalid);
  EXPECT_EQ(code(StatusOf({y}, {Output()})), kInvalid);
  EXPECT_EQ(code(StatusOf({complex}, {complex})), kInvalid);
  EXPECT_EQ(code(StatusOf({text}, {text})), kInvalid);
  EXPECT_TRUE(StatusOf({complex}, {complex}, {complex}).ok());
  EXPECT_TRUE(StatusOf({}, {x}).ok());
  EXPECT_TRUE(StatusOf({y}, {}).ok());
}

TEST(AddGradients, AFinalizedGraphIsRefused) {
  TestGraph g;
  Output x = g.Placeholder({3}), y = g.Op("Exp", {x});
  g.graph()->Finalize();
  EXPECT_EQ(StatusOf({y}, {x}).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe

// Differentiation inside branches and loops.
#include <cmath>

#include "api/gradients.h"
#include "tests/api/control_flow/flow_test_util.h"

namespace troupe {
namespace {

using testing::ElementsAre;

class GradientInsideTest : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(Optimize, GradientInsideTest, testing::Bool());

TEST_P(GradientInsideTest, NewtonInALoop) {
  Output c = Placeholder();
  Outputs end = WhileLoop(
      s_, {0, 1.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 20); },
      [&](const Scope& s, Variables v) {
        Output f = ops::Sub(s, ops::Mul(s, v[1], ops::Square(s, v[1])), c);
        Output slope = Gradients(s, {f}, {v[1]})[0];
        return Outputs{ops::Add(s, v[0], 1), ops::Sub(s, v[1], ops::RealDiv(s, f, slope))};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  EXPECT_FLOAT_EQ(Scalar<float>(end[1], {{c, Tensor::Scalar(27.0f)}}), 3);
}

TEST_P(GradientInsideTest, OfATensorFromOutside) {
  Output w = Placeholder();
  // The slopes of w * i + w^2 by w, summed.
  Outputs end = WhileLoop(
      s_, {0.0f, 0.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4.0f); },
      [&](const Scope& s, Variables v) {
        Output y = ops::Add(s, ops::Mul(s, v[0], w), ops::Square(s, w));
        Output slope = Gradients(s, {y}, {w})[0];
        return Outputs{ops::Add(s, v[0], 1.0f), ops::Add(s, v[1], slope)};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  EXPECT_EQ(Scalar<float>(end[1], {{w, Tensor::Scalar(10.0f)}}), 0 + 1 + 2 + 3 + 4 * 20);
}

TEST_P(GradientInsideTest, WhatIsTheSameInAllIterationsEndsWithTheLoop) {
  Output w = Placeholder();
  Outputs end = WhileLoop(
      s_, {0, 0.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 3); },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), Gradients(s, {ops::Square(s, w)}, {w})[0]};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  EXPECT_EQ(Scalar<float>(end[1], {{w, Tensor::Scalar(4.0f)}}), 8);
}

TEST_P(GradientInsideTest, InBranches) {
  Output x = Placeholder();
  Output p = Placeholder(ElementType::kBool);
  Output y = Cond(
      s_, p, [&](const Scope& s) { return Gradients(s, {ops::Square(s, x)}, {x})[0]; },
      [&](const Scope& s) { return Gradients(s, {ops::Exp(s, x)}, {x})[0]; });
  ASSERT_TRUE(s_.ok()) << s_.status();
  EXPECT_EQ(Scalar<float>(y, {{p, Tensor::Scalar(true)}, {x, Tensor::Scalar(3.0f)}}), 6);
  EXPECT_FLOAT_EQ(Scalar<float>(y, {{p, Tensor::Scalar(false)}, {x, Tensor::Scalar(3.0f)}}),
                  std::exp(3.0f));
}

TEST_P(GradientInsideTest, ThroughABranchInALoop) {
  Output c = Placeholder();
  Outputs end = WhileLoop(
      s_, {0, 0.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [&](const Scope& s, Variables v) {
        Output y = Cond(
            s, ops::Less(s, v[0], 2), [&](const Scope& t) { return ops::Square(t, c); },
            [&](const Scope& t) { return ops::Mul(t, c, 7.0f); });
        Output slope = Gradients(s, {y}, {c})[0];
        return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], slope)};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  EXPECT_EQ(Scalar<float>(end[1], {{c, Tensor::Scalar(5.0f)}}), 10 + 10 + 7 + 7);
}

TEST_P(GradientInsideTest, ThroughALoopInALoop) {
  Output c = Placeholder();
  Outputs end = WhileLoop(
      s_, {0, 0.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [&](const Scope& s, Variables v) {
        // c to the power v[0] + 1
        Output power = WhileLoop(
            s, {0, c}, [&](const Scope& t, Variables u) { return ops::Less(t, u[0], v[0]); },
            [&](const Scope& t, Variables u) {
              return Outputs{ops::Add(t, u[0], 1), ops::Mul(t, u[1], c)};
            })[1];
        Output slope = Gradients(s, {power}, {c})[0];
        return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], slope)};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  // 1 + 2c + 3c^2 + 4c^3
  EXPECT_EQ(Scalar<float>(end[1], {{c, Tensor::Scalar(2.0f)}}), 1 + 4 + 12 + 32);
}

}  // namespace
}  // namespace troupe

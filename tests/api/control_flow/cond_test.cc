#include "api/gradients.h"
#include "api/training/variables.h"
#include "tests/api/control_flow/flow_test_util.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CondTest : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(Optimize, CondTest, testing::Bool());

TEST_P(CondTest, TakesOneBranch) {
  Output x = Placeholder();
  Output y = Cond(
      s_, ops::Less(s_, x, 0.0f), [&](const Scope& s) { return ops::Neg(s, x); },
      [&](const Scope& s) { return ops::Mul(s, x, 10.0f); });
  EXPECT_EQ(Scalar<float>(y, {{x, Tensor::Scalar(-3.0f)}}), 3);
  EXPECT_EQ(Scalar<float>(y, {{x, Tensor::Scalar(3.0f)}}), 30);
  EXPECT_EQ(y.shape(), PartialShape({}));
}

TEST_P(CondTest, ConstantsAndTensorsFromOutsideAreResults) {
  Output p = Placeholder(ElementType::kBool);
  Output x = Placeholder();
  Outputs y = Cond(s_, p, BranchFunction([&](const Scope& s) {
                     return Outputs{Const(s, 1.0f), x, ops::Cast(s, p, ElementType::kFloat)};
                   }),
                   BranchFunction([&](const Scope& s) {
                     return Outputs{x, Const(s, 2.0f), ops::Cast(s, p, ElementType::kFloat)};
                   }));
  ASSERT_EQ(y.size(), 3u) << s_.status();
  const Tensor five = Tensor::Scalar(5.0f);
  auto on = Run(y, {{p, Tensor::Scalar(true)}, {x, five}});
  EXPECT_EQ(on[0].unchecked_scalar<float>(), 1);
  EXPECT_EQ(on[1].unchecked_scalar<float>(), 5);
  EXPECT_EQ(on[2].unchecked_scalar<float>(), 1);
  auto off = Run(y, {{p, Tensor::Scalar(false)}, {x, five}});
  EXPECT_EQ(off[0].unchecked_scalar<float>(), 5);
  EXPECT_EQ(off[1].unchecked_scalar<float>(), 2);
  EXPECT_EQ(off[2].unchecked_scalar<float>(), 0);
}

TEST_P(CondTest, ATensorIsSwitchedOnceForBothBranches) {
  Output p = Placeholder(ElementType::kBool), x = Placeholder();
  Cond(
      s_, p, [&](const Scope& s) { return ops::Add(s, ops::Neg(s, x), x); },
      [&](const Scope& s) { return ops::Square(s, x); });
  ASSERT_TRUE(s_.ok()) << s_.status();
  int switches = 0;
  for (const Node* node : s_.graph()->nodes()) switches += node->op() == "Switch";
  EXPECT_EQ(switches, 2) << "one for the pivots, one for x";
}

TEST_P(CondTest, OnlyTheBranchThatIsTakenHasEffects) {
  ModelVariable a(s_, Shape({}), ConstantInitializer(0), "a");
  Output p = Placeholder(ElementType::kBool);
  Output done = Cond(
      s_, p, [&](const Scope& s) { return Output(ops::AssignAddVariableOp(s, a.handle(), 1.0f)); },
      [&](const Scope& s) { return Output(ops::NoOp(s)); });
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({a.initializer()}).ok());
  for (bool on : {true, false, true, false, false}) {
    auto result = session->Run({{p, Tensor::Scalar(on)}}, {done});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].unchecked_scalar<bool>(), on);
  }
  EXPECT_EQ((*session->Run({a.Read(s_)}))[0].unchecked_scalar<float>(), 2);
}

TEST_P(CondTest, ControlInputsOfTheScopeComeBeforeBothBranches) {
  ModelVariable a(s_, Shape({}), ConstantInitializer(0), "a");
  Node* add = ops::AssignAddVariableOp(s_, a.handle(), 1.0f);
  Output p = Placeholder(ElementType::kBool);
  auto read = [&](const Scope& s) {
    return ops::ReadVariableOp(s, a.handle(), ElementType::kFloat);
  };
  Node* const adds[] = {add};
  Output y = Cond(s_.WithControlDependencies(absl::MakeConstSpan(adds)), p, read,
                  [&](const Scope& s) { return ops::Neg(s, read(s)); });
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({a.initializer()}).ok());
  for (int i = 1; i <= 20; ++i) {
    auto result = session->Run({{p, Tensor::Scalar(i % 2 == 0)}}, {y});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].unchecked_scalar<float>(), i % 2 == 0 ? i : -i);
  }
}

TEST_P(CondTest, Nests) {
  Output x = Placeholder(ElementType::kInt32);
  auto is = [&](const Scope& s, int bit) {
    return ops::Equal(s, ops::FloorMod(s, ops::FloorDiv(s, x, 1 << bit), 2), 1);
  };
  std::function<Output(const Scope&, int)> digits = [&](const Scope& s, int bit) -> Output {
    if (bit < 0) return ops::Identity(s, Const(s, int32_t{0}));
    return Cond(
        s, is(s, bit), [&](const Scope& t) { return ops::Add(t, digits(t, bit - 1), 1 << bit); },
        [&](const Scope& t) { return digits(t, bit - 1); });
  };
  Output y = digits(s_, 3);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(Scalar<int32_t>(y, {{x, Tensor::Scalar<int32_t>(i)}}), i);
  }
}

TEST_P(CondTest, CaseTakesTheFirstThatHolds) {
  Output x = Placeholder(ElementType::kInt32);
  auto give = [](int32_t value) {
    return BranchFunction([=](const Scope& s) { return Outputs{Const(s, value)}; });
  };
  Outputs y = Case(s_,
                   {{ops::Less(s_, x, 0), give(-1)},
                    {ops::Less(s_, x, 10), give(1)},
                    {ops::Less(s_, x, 100), give(2)}},
                   give(3));
  ASSERT_EQ(y.size(), 1u) << s_.status();
  for (auto [value, want] : {std::pair(-5, -1), {5, 1}, {50, 2}, {500, 3}}) {
    EXPECT_EQ(Scalar<int32_t>(y[0], {{x, Tensor::Scalar<int32_t>(value)}}), want);
  }
}

TEST_P(CondTest, SwitchCaseTakesTheBranchOfItsNumber) {
  Output x = Placeholder(ElementType::kInt32);
  std::vector<BranchFunction> branches;
  for (int32_t i = 0; i < 7; ++i) {
    branches.push_back([=](const Scope& s) { return Outputs{Const(s, i * i)}; });
  }
  Outputs y = SwitchCase(s_, x, branches);
  ASSERT_EQ(y.size(), 1u) << s_.status();
  for (int i = -2; i < 10; ++i) {
    const int taken = i < 0 || i > 6 ? 6 : i;
    EXPECT_EQ(Scalar<int32_t>(y[0], {{x, Tensor::Scalar<int32_t>(i)}}), taken * taken);
  }
}

TEST_P(CondTest, AThousandInARow) {
  Output p = Placeholder(ElementType::kBool);
  Output x = Placeholder();
  Output y = x;
  for (int i = 0; i < 1000; ++i) {
    y = Cond(
        s_, p, [&](const Scope& s) { return ops::Add(s, y, 1.0f); },
        [&](const Scope& s) { return ops::Sub(s, y, 1.0f); });
  }
  EXPECT_EQ(Scalar<float>(y, {{p, Tensor::Scalar(true)}, {x, Tensor::Scalar(7.0f)}}), 1007);
  EXPECT_EQ(Scalar<float>(y, {{p, Tensor::Scalar(false)}, {x, Tensor::Scalar(7.0f)}}), -993);
}

TEST_P(CondTest, FetchingADeadTensorIsAnError) {
  Output p = Placeholder(ElementType::kBool), x = Placeholder();
  Output inner;
  Cond(
      s_, p, [&](const Scope& s) { return inner = ops::Neg(s, x); },
      [&](const Scope&) { return x; });
  auto session = NewSession();
  auto alive = session->Run({{p, Tensor::Scalar(true)}, {x, Tensor::Scalar(2.0f)}}, {inner});
  ASSERT_TRUE(alive.ok()) << alive.status();
  auto dead = session->Run({{p, Tensor::Scalar(false)}, {x, Tensor::Scalar(2.0f)}}, {inner});
  EXPECT_EQ(dead.status().code(), absl::StatusCode::kInvalidArgument) << dead.status();
  EXPECT_THAT(std::string(dead.status().message()), HasSubstr(inner.node->name()));
}

TEST_P(CondTest, RowsMayDifferInNumber) {
  Output p = Placeholder(ElementType::kBool);
  Output y = Cond(
      s_, p,
      [&](const Scope& s) {
        return ops::Fill(s, {2, 3}, 1.0f);
      },
      [&](const Scope& s) {
        return ops::Fill(s, {4, 3}, 2.0f);
      });
  EXPECT_EQ(y.shape(), PartialShape({-1, 3}));
  EXPECT_EQ(Vector<float>(y, {{p, Tensor::Scalar(false)}}).size(), 12u);
}

// --- what is refused ---

TEST_P(CondTest, BranchesMustGiveTheSameTypes) {
  Output p = Placeholder(ElementType::kBool);
  Output y = Cond(
      s_.WithOpName("choice"), p, [](const Scope& s) { return Const(s, 1.0f); },
      [](const Scope& s) { return Const(s, int32_t{1}); });
  EXPECT_FALSE(y.valid());
  ExpectError("Cond 'choice': result 0 is float");
}

TEST_P(CondTest, BranchesMustGiveAsManyResults) {
  Output p = Placeholder(ElementType::kBool);
  Outputs y = Cond(s_, p, BranchFunction([](const Scope& s) { return Outputs{Const(s, 1.0f)}; }),
                   BranchFunction([](const Scope&) { return Outputs{}; }));
  EXPECT_EQ(y.size(), 1u);
  EXPECT_FALSE(y[0].valid());
  ExpectError("true branch gives 1 results but the false branch 0");
}

TEST_P(CondTest, ThePredicateIsAScalarBool) {
  auto one = [](const Scope& s) { return Const(s, 1.0f); };
  Cond(s_, Placeholder(ElementType::kInt32), one, one);
  ExpectError("must be a scalar of type bool");
  s_ = Scope::NewRoot();
  Cond(s_, Placeholder(ElementType::kBool, PartialShape({2})), one, one);
  ExpectError("[2]");
}

TEST_P(CondTest, AnInvalidResultIsRefused) {
  Cond(
      s_, Placeholder(ElementType::kBool), [](const Scope& s) { return Const(s, 1.0f); },
      [](const Scope&) { return Output(); });
  ExpectError("result 0 of the false branch is no tensor");
}

}  // namespace
}  // namespace troupe

#include "api/training/variables.h"
#include "tests/api/control_flow/flow_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class WhileTest : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(Optimize, WhileTest, testing::Bool());

TEST_P(WhileTest, Counts) {
  Output n = Placeholder(ElementType::kInt32);
  Output sum = Sum(s_, n, [](const Scope&, Output i) { return i; });
  for (int32_t count : {0, 1, 2, 10, 1000}) {
    EXPECT_EQ(Scalar<int32_t>(sum, {{n, Tensor::Scalar(count)}}), count * (count - 1) / 2);
  }
}

TEST_P(WhileTest, SeveralVariablesOfSeveralTypes) {
  Output n = Placeholder(ElementType::kInt32);
  Outputs end = WhileLoop(
      s_, {0, int64_t{1}, Const(s_, Tensor::Vector<float>({1, 2}))},
      [&](const Scope& s, Variables v) { return ops::Less(s, v[0], n); },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), ops::Mul(s, v[1], int64_t{3}),
                       ops::Mul(s, v[2], ops::Cast(s, v[1], ElementType::kFloat))};
      });
  auto values = Run(end, {{n, Tensor::Scalar<int32_t>(4)}});
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), 4);
  EXPECT_EQ(values[1].unchecked_scalar<int64_t>(), 81);
  EXPECT_EQ(values[2].unchecked_data<float>()[1], 2.0f * 1 * 3 * 9 * 27);
}

TEST_P(WhileTest, VariablesThatDoNotChangeAndSwap) {
  Output x = Placeholder(), y = Placeholder();
  Outputs end = WhileLoop(
      s_, {0, x, y, x}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 5); },
      [](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), v[2], v[1], v[3]};
      });
  auto values = Run(end, {{x, Tensor::Scalar(1.0f)}, {y, Tensor::Scalar(2.0f)}});
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[1].unchecked_scalar<float>(), 2);
  EXPECT_EQ(values[2].unchecked_scalar<float>(), 1);
  EXPECT_EQ(values[3].unchecked_scalar<float>(), 1);
}

TEST_P(WhileTest, AResultFromOutsideEndsWithTheLoop) {
  Output x = Placeholder();
  Outputs end = WhileLoop(
      s_, {0, 0.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 3); },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), x};
      });
  EXPECT_EQ(Scalar<float>(end[1], {{x, Tensor::Scalar(8.0f)}}), 8);
}

TEST_P(WhileTest, WhatDependsOnInvariantsOnlyRunsOncePerIteration) {
  ModelVariable a(s_, Shape({}), ConstantInitializer(0), "a");
  Output one = Placeholder();
  Output n = Placeholder(ElementType::kInt32);
  Outputs end = WhileLoop(
      s_, {0}, [&](const Scope& s, Variables v) { return ops::Less(s, v[0], n); },
      [&](const Scope& s, Variables v) {
        Node* add = ops::AssignAddVariableOp(s, a.handle(), one);
        return Outputs{ops::Add(s.WithControlDependencies({add}), v[0], 1)};
      });
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = NewSession();
  Output value = a.Read(s_);
  for (int32_t count : {0, 1, 7}) {
    ASSERT_TRUE(session->RunTargets({a.initializer()}).ok());
    auto run = session->Run({{n, Tensor::Scalar(count)}, {one, Tensor::Scalar(1.0f)}}, {end[0]});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ((*session->Run({value}))[0].unchecked_scalar<float>(), count);
  }
}

TEST_P(WhileTest, Nested) {
  Output n = Placeholder(ElementType::kInt32);
  Output total = Sum(s_, n, [&](const Scope& outer, Output i) {
    return Sum(outer, i, [&](const Scope& inner, Output j) {
      return ops::Mul(inner, i, ops::Add(inner, j, n));
    });
  });
  for (int32_t count : {0, 1, 2, 9}) {
    int32_t want = 0;
    for (int32_t i = 0; i < count; ++i) {
      for (int32_t j = 0; j < i; ++j) want += i * (j + count);
    }
    EXPECT_EQ(Scalar<int32_t>(total, {{n, Tensor::Scalar(count)}}), want);
  }
}

TEST_P(WhileTest, ThreeDeepOverInvariants) {
  Output n = Placeholder(ElementType::kInt32);
  Output total = Sum(s_, n, [&](const Scope& a, Output) {
    return Sum(a, n, [&](const Scope& b, Output) {
      return Sum(b, n, [&](const Scope&, Output) { return n; });
    });
  });
  EXPECT_EQ(Scalar<int32_t>(total, {{n, Tensor::Scalar<int32_t>(5)}}), 625);
  EXPECT_EQ(Scalar<int32_t>(total, {{n, Tensor::Scalar<int32_t>(0)}}), 0);
}

TEST_P(WhileTest, CondsInLoops) {
  Output n = Placeholder(ElementType::kInt32);
  Output total = Sum(s_, n, [&](const Scope& s, Output i) {
    return Cond(
        s, ops::Equal(s, ops::FloorMod(s, i, 3), 0),
        [&](const Scope& t) {
          return Cond(
              t, ops::Less(t, i, 6), [&](const Scope& u) { return ops::Mul(u, i, n); },
              [&](const Scope& u) { return Const(u, int32_t{-1}); });
        },
        [&](const Scope&) { return n; });
  });
  for (int32_t count : {0, 1, 5, 20}) {
    int32_t want = 0;
    for (int32_t i = 0; i < count; ++i) want += i % 3 != 0 ? count : i < 6 ? i * count : -1;
    EXPECT_EQ(Scalar<int32_t>(total, {{n, Tensor::Scalar(count)}}), want);
  }
}

TEST_P(WhileTest, LoopsInConds) {
  Output n = Placeholder(ElementType::kInt32);
  Output y = Cond(
      s_, ops::Less(s_, n, 5),
      [&](const Scope& s) { return Sum(s, n, [&](const Scope&, Output i) { return i; }); },
      [&](const Scope& s) {
        return Sum(s, 4, [&](const Scope& t, Output i) {
          return Cond(
              t, ops::Less(t, i, 2),
              [&](const Scope& u) { return Sum(u, i, [&](const Scope&, Output) { return n; }); },
              [&](const Scope&) { return i; });
        });
      });
  EXPECT_EQ(Scalar<int32_t>(y, {{n, Tensor::Scalar<int32_t>(4)}}), 6);
  EXPECT_EQ(Scalar<int32_t>(y, {{n, Tensor::Scalar<int32_t>(7)}}), 7 + 2 + 3);
}

TEST_P(WhileTest, MaximumIterations) {
  Outputs end = WhileLoop(
      s_, {1.0f}, [](const Scope& s, Variables) { return Const(s, Tensor::Scalar(true)); },
      [](const Scope& s, Variables v) { return Outputs{ops::Mul(s, v[0], 2.0f)}; },
      {.maximum_iterations = 10});
  ASSERT_EQ(end.size(), 1u) << s_.status();
  EXPECT_EQ(Scalar<float>(end[0]), 1024);
}

TEST_P(WhileTest, ParallelIterations) {
  for (int64_t parallel : {1, 2, 32}) {
    Outputs end = WhileLoop(
        s_, {0, 0}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 100); },
        [](const Scope& s, Variables v) {
          return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], v[0])};
        },
        {.parallel_iterations = parallel});
    EXPECT_EQ(Scalar<int32_t>(end[1]), 4950);
  }
}

TEST_P(WhileTest, ShapesMayChangeWithAnInvariant) {
  Outputs end = WhileLoop(
      s_, {0, Const(s_, Tensor::Vector<float>({1}))},
      [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), ops::ConcatV2(s, {v[1], v[1]}, 0)};
      },
      {.shape_invariants = {PartialShape({}), PartialShape({-1})}});
  ASSERT_EQ(end.size(), 2u) << s_.status();
  EXPECT_EQ(end[1].shape(), PartialShape({-1}));
  EXPECT_EQ(Vector<float>(end[1]).size(), 16u);
}

TEST_P(WhileTest, ControlInputsComeBeforeAndAfter) {
  ModelVariable a(s_, Shape({}), ConstantInitializer(0), "a");
  Node* set = ops::AssignVariableOp(s_, a.handle(), 100.0f);
  Node* const sets[] = {set};
  Outputs end = WhileLoop(
      s_.WithControlDependencies(absl::MakeConstSpan(sets)), {0},
      [](const Scope& s, Variables v) { return ops::Less(s, v[0], 10); },
      [&](const Scope& s, Variables v) {
        Node* add = ops::AssignAddVariableOp(s, a.handle(), 1.0f);
        return Outputs{ops::Add(s.WithControlDependencies({add}), v[0], 1)};
      });
  Output after =
      ops::ReadVariableOp(s_.WithControlDependencies({end[0]}), a.handle(), ElementType::kFloat);
  ASSERT_TRUE(s_.ok()) << s_.status();
  auto session = NewSession();
  for (int i = 0; i < 20; ++i) {
    auto value = session->Run({after});
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ((*value)[0].unchecked_scalar<float>(), 110);
  }
}

TEST_P(WhileTest, ControlInputsFromOutsideEnterTheBody) {
  ModelVariable a(s_, Shape({}), ConstantInitializer(0), "a");
  Node* set = ops::AssignVariableOp(s_, a.handle(), 5.0f);
  Node* const sets[] = {set};
  Outputs end = WhileLoop(
      s_, {0, 0.0f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 3); },
      [&](const Scope& s, Variables v) {
        Output read = ops::ReadVariableOp(s.WithControlDependencies(absl::MakeConstSpan(sets)),
                                          a.handle(), ElementType::kFloat);
        return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], read)};
      });
  EXPECT_EQ(Scalar<float>(end[1]), 15);
}

TEST_P(WhileTest, TensorsOfTheConditionMayBeUsedInTheBody) {
  // They are computed once more than the body runs.
  Output n = Placeholder(ElementType::kInt32);
  Output twice;
  Outputs end = WhileLoop(
      s_, {0, 0, 0},
      [&](const Scope& s, Variables v) {
        twice = ops::Mul(s, v[0], 2);
        return ops::Less(s, twice, n);
      },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), twice, ops::Add(s, twice, twice)};
      });
  ASSERT_EQ(end.size(), 3u) << s_.status();
  auto values = Run(end, {{n, Tensor::Scalar<int32_t>(9)}});
  EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), 5);
  EXPECT_EQ(values[1].unchecked_scalar<int32_t>(), 8);
  EXPECT_EQ(values[2].unchecked_scalar<int32_t>(), 16);
  EXPECT_EQ(Scalar<int32_t>(end[1], {{n, Tensor::Scalar<int32_t>(0)}}), 0);
}

TEST_P(WhileTest, ReferencesAreAssignedInLoopsAndBranches) {
  Output a = ops::VariableV2(s_, PartialShape({}), ElementType::kFloat);
  Output set = ops::Assign(s_, a, 1.0f);
  Outputs end = WhileLoop(
      s_.WithControlDependencies({set}), {0},
      [](const Scope& s, Variables v) { return ops::Less(s, v[0], 6); },
      [&](const Scope& s, Variables v) {
        Output done = Cond(
            s, ops::Less(s, v[0], 2),
            [&](const Scope& t) { return ops::Identity(t, ops::AssignAdd(t, a, 10.0f)); },
            [&](const Scope& t) { return ops::Identity(t, ops::AssignSub(t, a, 1.0f)); });
        return Outputs{ops::Add(s.WithControlDependencies({done}), v[0], 1)};
      });
  ASSERT_EQ(end.size(), 1u) << s_.status();
  Output after = ops::Identity(s_.WithControlDependencies({end[0]}), a);
  auto session = NewSession();
  for (int i = 0; i < 3; ++i) {
    auto value = session->Run({after});
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ((*value)[0].unchecked_scalar<float>(), 1 + 20 - 4);
  }
}

TEST_P(WhileTest, RandomNumbersDifferInEveryIteration) {
  Outputs end = WhileLoop(
      s_, {0, Const(s_, Tensor::Vector<float>({0})), 0},
      [](const Scope& s, Variables v) { return ops::Less(s, v[0], 50); },
      [](const Scope& s, Variables v) {
        Output draw = ops::RandomUniform(s, {1}, ElementType::kFloat, {.seed = 7});
        Output same = ops::Cast(s, ops::All(s, ops::Equal(s, draw, v[1]), 0), ElementType::kInt32);
        return Outputs{ops::Add(s, v[0], 1), draw, ops::Add(s, v[2], same)};
      });
  ASSERT_EQ(end.size(), 3u) << s_.status();
  EXPECT_EQ(Scalar<int32_t>(end[2]), 0);
}

TEST_P(WhileTest, TheStructureIsTensorFlows) {
  Output x = Placeholder();
  WhileLoop(
      s_.WithOpName("loop"), {0, 0.0f},
      [](const Scope& s, Variables v) { return ops::Less(s, v[0], 3); },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), ops::Add(s, v[1], x)};
      });
  ASSERT_TRUE(s_.ok()) << s_.status();
  std::map<std::string, int> count;
  for (const Node* node : s_.graph()->nodes()) {
    ++count[node->op()];
    if (node->op() == "Enter") {
      EXPECT_EQ(node->attrs().GetOr<std::string>("frame_name", ""), "loop/while_context");
    }
    if (node->op() == "Merge") {
      EXPECT_EQ(node->input(0).node->op(), "Enter");
      EXPECT_EQ(node->input(1).node->op(), "NextIteration");
    }
    if (node->op() == "Switch") {
      EXPECT_EQ(node->input(1).node->op(), "LoopCond");
    }
    if (node->op() == "Exit") {
      EXPECT_EQ(node->input(0).node->op(), "Switch");
      EXPECT_EQ(node->input(0).index, 0);
    }
  }
  EXPECT_EQ(count["Enter"], 3);
  EXPECT_EQ(count["Merge"], 2);
  EXPECT_EQ(count["Switch"], 2);
  EXPECT_EQ(count["Exit"], 2);
  EXPECT_EQ(count["NextIteration"], 2);
  EXPECT_EQ(count["LoopCond"], 1);
}

TEST_P(WhileTest, EveryLoopHasItsOwnFrame) {
  Sum(s_, 2,
      [&](const Scope& s, Output) { return Sum(s, 2, [](const Scope&, Output j) { return j; }); });
  Sum(s_, 2, [](const Scope&, Output i) { return i; });
  std::set<std::string> frames;
  for (const Node* node : s_.graph()->nodes()) {
    if (node->op() == "Enter") frames.insert(node->attrs().GetOr<std::string>("frame_name", ""));
  }
  EXPECT_EQ(frames.size(), 3u);
}

// --- what is refused ---

TEST_P(WhileTest, AShapeThatChangesNeedsAnInvariant) {
  Output x = ops::Placeholder(s_.WithOpName("start"), ElementType::kFloat,
                              {.shape = PartialShape({1, 2})});
  Outputs end = WhileLoop(
      s_.WithOpName("grow"), {0, x},
      [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), ops::ConcatV2(s, {v[1], v[1]}, 0)};
      });
  ASSERT_EQ(end.size(), 2u);
  EXPECT_FALSE(end[0].valid() || end[1].valid());
  for (const char* part :
       {"variable 1 ('start:0')", "'grow'", "[1,2]", "[2,2]", "shape_invariants"}) {
    ExpectError(part);
  }
}

TEST_P(WhileTest, AnInvariantMustFitTheInitialShape) {
  WhileLoop(
      s_, {Const(s_, Tensor::Vector<float>({1, 2}))},
      [](const Scope& s, Variables) { return Const(s, Tensor::Scalar(false)); },
      [](const Scope&, Variables v) { return Outputs{v[0]}; },
      {.shape_invariants = {PartialShape({3})}});
  ExpectError("shape invariant [3]");
  s_ = Scope::NewRoot();
  WhileLoop(
      s_, {1}, [](const Scope& s, Variables) { return Const(s, Tensor::Scalar(false)); },
      [](const Scope&, Variables v) { return Outputs{v[0]}; },
      {.shape_invariants = {PartialShape({}), PartialShape({})}});
  ExpectError("1 variables but 2 shape invariants");
}

TEST_P(WhileTest, TypesAndNumbersMustFit) {
  auto less = [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); };
  WhileLoop(s_, {0}, less, [](const Scope& s, Variables v) {
    return Outputs{ops::Cast(s, v[0], ElementType::kInt64)};
  });
  ExpectError("is int32 but the body's result");
  s_ = Scope::NewRoot();
  WhileLoop(s_, {0, 1}, less, [](const Scope&, Variables v) { return Outputs{v[0]}; });
  ExpectError("gives 1 results for 2 variables");
  s_ = Scope::NewRoot();
  WhileLoop(
      s_, {0}, [](const Scope&, Variables v) { return v[0]; },
      [](const Scope&, Variables v) { return Outputs{v[0]}; });
  ExpectError("condition of WhileLoop 'while' must be a scalar of type bool");
  s_ = Scope::NewRoot();
  WhileLoop(s_, {}, less, [](const Scope&, Variables) { return Outputs{}; });
  ExpectError("no variables");
  s_ = Scope::NewRoot();
  WhileLoop(s_, {0}, less, [](const Scope&, Variables v) { return Outputs{v[0]}; },
            {.parallel_iterations = 0});
  ExpectError("parallel_iterations is 0");
}

TEST_P(WhileTest, ATensorOfTheLoopStaysInside) {
  Output inner;
  WhileLoop(
      s_.WithOpName("loop"), {0}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [&](const Scope& s, Variables v) { return Outputs{inner = ops::Add(s, v[0], 1)}; });
  ASSERT_TRUE(s_.ok()) << s_.status();
  EXPECT_FALSE(ops::Neg(s_, inner).valid());
  ExpectError("belongs to the loop 'loop/while_context'");
}

TEST_P(WhileTest, TheBodyMustUseItsOwnScope) {
  WhileLoop(
      s_, {0}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [&](const Scope&, Variables v) { return Outputs{ops::Add(s_, v[0], 1)}; });
  ExpectError("by the scope that the body");
}

TEST_P(WhileTest, AWrongNodeInTheBodyIsNamed) {
  WhileLoop(
      s_, {0}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [](const Scope& s, Variables v) {
        return Outputs{ops::Add(s.WithOpName("bad"), v[0], Tensor::Scalar(1.0f))};
      });
  ExpectError("while/bad");
}

TEST_P(WhileTest, AnErrorInTheBodyAtRunTimeNamesTheNode) {
  Output bad = Placeholder(ElementType::kInt32, PartialShape());
  Outputs end = WhileLoop(
      s_, {0}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 4); },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, ops::FloorDiv(s.WithOpName("divide"), v[0], bad), 1)};
      },
      {.shape_invariants = {PartialShape()}});
  auto session = NewSession();
  auto result = session->Run({{bad, Tensor::Scalar<int32_t>(0)}}, {end[0]});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("while/divide"));
}

}  // namespace
}  // namespace troupe

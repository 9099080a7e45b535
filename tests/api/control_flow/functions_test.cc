#include "api/functions.h"

#include "api/gradients.h"
#include "api/training/variables.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/api/control_flow/flow_test_util.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class FunctionsTest : public FlowTest {
 protected:
  static constexpr ElementType kFloat = ElementType::kFloat;
  const PartialShape scalar_ = PartialShape({});
  /// x * x + y.
  Function SquareAndAdd() {
    return DefineFunction(s_, "SquareAndAdd", {{kFloat, scalar_}, {kFloat, scalar_}},
                          [](const Scope& s, Variables args) {
                            Output sum = ops::Add(s, ops::Square(s, args[0]), args[1]);
                            return Outputs{sum};
                          });
  }
};
INSTANTIATE_TEST_SUITE_P(Optimize, FunctionsTest, testing::Bool());

TEST_P(FunctionsTest, AreCalled) {
  const Function f = SquareAndAdd();
  Output x = Placeholder();
  Outputs once = Call(s_, f, {x, 1.0f});
  ASSERT_EQ(once.size(), 1u) << s_.status();
  Output twice = Call(s_, f, {once[0], x})[0];
  EXPECT_EQ(Scalar<float>(twice, {{x, Tensor::Scalar(3.0f)}}), 103);
}

TEST_P(FunctionsTest, GiveShapesThatHold) {
  const Function f =
      DefineFunction(s_, "Rows", {{ElementType::kFloat, PartialShape({-1, 3}), "rows"}},
                     [](const Scope& s, Variables args) {
                       return Outputs{ops::Sum(s, args[0], 0), args[0]};
                     });
  Output x = Placeholder(ElementType::kFloat, PartialShape({4, 3}));
  Outputs y = Call(s_, f, {x});
  ASSERT_EQ(y.size(), 2u) << s_.status();
  EXPECT_EQ(y[0].shape(), PartialShape({3}));
  Call(s_, f, {Placeholder(ElementType::kFloat, PartialShape({4, 2}))});
  ExpectError("argument 0 of function 'Rows' has the shape [?,3]");
}

TEST_P(FunctionsTest, CallEachOther) {
  const Function f = SquareAndAdd();
  const Function g =
      DefineFunction(s_, "Four", {ElementType::kFloat}, [&](const Scope& s, Variables args) {
        Output x = args[0];
        for (int i = 0; i < 4; ++i) x = Call(s, f, {x, 0.0f})[0];
        return Outputs{x};
      });
  Outputs y = Call(s_, g, {2.0f});
  ASSERT_EQ(y.size(), 1u) << s_.status();
  EXPECT_EQ(Scalar<float>(y[0]), 65536);
}

// Each call's loop is its own.
TEST_P(FunctionsTest, MayLoop) {
  const auto doubled = [](const Scope& s, const Output& times, const Output& x) {
    return WhileLoop(
        s, {Const(s, int32_t{0}), x},
        [&](const Scope& t, Variables v) { return ops::Less(t, v[0], times); },
        [](const Scope& t, Variables v) {
          return Outputs{ops::Add(t, v[0], 1), ops::Mul(t, v[1], 2.0f)};
        })[1];
  };
  const Function f = DefineFunction(
      s_, "PowerOfTwo", {{ElementType::kInt32, scalar_}, {kFloat, scalar_}},
      [&](const Scope& s, Variables args) { return Outputs{doubled(s, args[0], args[1])}; });
  const Output x = Placeholder();
  const Outputs first = Call(s_, f, {3, x});
  ASSERT_EQ(first.size(), 1u) << s_.status();
  const Output again = Call(s_, f, {2, doubled(s_, Const(s_, int32_t{1}), first[0])})[0];
  EXPECT_EQ(Scalar<float>(again, {{x, Tensor::Scalar(5.0f)}}), 5 * 8 * 2 * 4);
}

TEST_P(FunctionsTest, CallThemselves) {
  DefineFunction(s_, "Factorial", {ElementType::kInt32}, [](const Scope& s, Variables args) {
    return Outputs{Cond(
        s, ops::LessEqual(s, args[0], 1), [](const Scope& t) { return Const(t, int32_t{1}); },
        [&](const Scope& t) {
          Outputs rest = Call(t, "Factorial", {ops::Sub(t, args[0], 1)}, {ElementType::kInt32});
          return rest.empty() ? Output() : ops::Mul(t, args[0], rest[0]);
        })};
  });
  ASSERT_TRUE(s_.ok()) << s_.status();
  Output n = Placeholder(ElementType::kInt32);
  Outputs y = Call(s_, "Factorial", {n}, {ElementType::kInt32});
  ASSERT_EQ(y.size(), 1u) << s_.status();
  EXPECT_EQ(Scalar<int32_t>(y[0], {{n, Tensor::Scalar<int32_t>(10)}}), 3628800);
}

TEST_P(FunctionsTest, ARecursionWithoutEndIsAnError) {
  DefineFunction(s_, "Endless", {ElementType::kInt32}, [](const Scope& s, Variables args) {
    return Call(s, "Endless", {ops::Add(s, args[0], 1)}, {ElementType::kInt32});
  });
  ASSERT_TRUE(s_.ok()) << s_.status();
  Outputs y = Call(s_, "Endless", {0}, {ElementType::kInt32});
  ASSERT_EQ(y.size(), 1u) << s_.status();
  auto result = NewSession()->Run({y[0]});
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("Endless"));
}

TEST_P(FunctionsTest, EffectsHappenInEveryCall) {
  const Function add = DefineFunction(s_, "AddTo", {ElementType::kResource, ElementType::kFloat},
                                      [](const Scope& s, Variables args) {
                                        ops::AssignAddVariableOp(s, args[0], args[1]);
                                        return Outputs{ops::Identity(s, args[1])};
                                      });
  EXPECT_TRUE(add.stateful);
  ModelVariable a(s_, Shape({}), ConstantInitializer(0), "a");
  Outputs first = Call(s_, add, {a.handle(), 3.0f});
  Outputs second = Call(s_, add, {a.handle(), 3.0f});
  ASSERT_TRUE(s_.ok()) << s_.status();
  Output after = ops::ReadVariableOp(s_.WithControlDependencies({first[0], second[0]}), a.handle(),
                                     ElementType::kFloat);
  auto session = NewSession();
  ASSERT_TRUE(session->RunTargets({a.initializer()}).ok());
  for (int i = 1; i <= 5; ++i) {
    auto value = session->Run({after});
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ((*value)[0].unchecked_scalar<float>(), 6 * i);
  }
}

TEST_P(FunctionsTest, InLoopsAndBranches) {
  const Function f = SquareAndAdd();
  Outputs end = WhileLoop(
      s_, {0, 0.5f}, [](const Scope& s, Variables v) { return ops::Less(s, v[0], 5); },
      [&](const Scope& s, Variables v) {
        return Outputs{ops::Add(s, v[0], 1), Cond(
                                                 s, ops::Less(s, v[0], 3),
                                                 [&](const Scope& t) {
                                                   return Call(t, f, {v[1], 0.25f})[0];
                                                 },
                                                 [&](const Scope&) { return v[1]; })};
      });
  ASSERT_EQ(end.size(), 2u) << s_.status();
  EXPECT_EQ(Scalar<float>(end[1]), 0.5f);
}

TEST_P(FunctionsTest, FunctionalIfAndWhile) {
  auto define = [&](const char* name, ElementType type, const FunctionBuilder& body) {
    return DefineFunction(s_, name, {type}, body);
  };
  const auto kInt = ElementType::kInt32;
  const Function twice = define(
      "Twice", kInt, [](const Scope& s, Variables v) { return Outputs{ops::Mul(s, v[0], 2)}; });
  const Function negate = define(
      "Negate", kInt, [](const Scope& s, Variables v) { return Outputs{ops::Neg(s, v[0])}; });
  const Function small = define(
      "Small", kInt, [](const Scope& s, Variables v) { return Outputs{ops::Less(s, v[0], 1000)}; });
  Output p = Placeholder(ElementType::kBool);
  Outputs picked = FunctionalIf(s_, p, {7}, twice, negate);
  ASSERT_EQ(picked.size(), 1u) << s_.status();
  EXPECT_EQ(Scalar<int32_t>(picked[0], {{p, Tensor::Scalar(true)}}), 14);
  EXPECT_EQ(Scalar<int32_t>(picked[0], {{p, Tensor::Scalar(false)}}), -7);
  Outputs end = FunctionalWhile(s_, {3}, small, twice);
  ASSERT_EQ(end.size(), 1u) << s_.status();
  EXPECT_EQ(Scalar<int32_t>(end[0]), 1536);

  FunctionalWhile(s_, {3}, twice, twice);
  ExpectError("must give one bool, but gives (int32)");
}

TEST_P(FunctionsTest, AreExportedWithTheGraph) {
  Output y = ops::Identity(s_.WithOpName("y"), Call(s_, SquareAndAdd(), {3.0f, 4.0f})[0]);
  ASSERT_TRUE(s_.ok()) << s_.status();
  GraphDef def;
  s_.graph()->ToGraphDef(&def);
  EXPECT_EQ(def.library().function_size(), 1);
  auto copy = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(def, ImportOptions(), copy.get()).ok());
  auto session = Session::Create(copy);
  std::vector<Tensor> values;
  ASSERT_TRUE((*session)->Run({}, {y.name()}, {}, &values).ok());
  EXPECT_EQ(values[0].unchecked_scalar<float>(), 13);
}

TEST_P(FunctionsTest, AreDifferentiated) {
  Output x = Placeholder();
  Output y = Call(s_, SquareAndAdd(), {x, x})[0];
  Output dx = Gradients(s_, {y}, {x})[0];
  ASSERT_TRUE(s_.ok()) << s_.status();
  EXPECT_EQ(Scalar<float>(dx, {{x, Tensor::Scalar(5.0f)}}), 11);
}

// --- what is refused ---

TEST_P(FunctionsTest, WrongCallsAreRefused) {
  const Function f = SquareAndAdd();
  Call(s_, f, {1.0f});
  ExpectError("takes 2 arguments but is given 1");
  s_ = Scope::NewRoot();
  Call(s_, SquareAndAdd(), {1.0f, 2});
  ExpectError("argument 1 of function 'SquareAndAdd' is float");
  s_ = Scope::NewRoot();
  Call(s_, Function(), {1.0f});
  ExpectError("has not been defined");
}

TEST_P(FunctionsTest, WrongBodiesAreRefused) {
  DefineFunction(s_, "Bad", {ElementType::kFloat}, [](const Scope& s, Variables args) {
    return Outputs{ops::MatMul(s.WithOpName("wrong"), args[0], 1)};
  });
  ExpectError("function 'Bad': ");
  ExpectError("wrong");
  s_ = Scope::NewRoot();
  Output outside = Placeholder();
  DefineFunction(s_, "Captures", {ElementType::kFloat}, [&](const Scope& s, Variables args) {
    return Outputs{ops::Add(s, args[0], outside)};
  });
  ExpectError("function 'Captures': ");
  s_ = Scope::NewRoot();
  auto same = [](const Scope&, Variables args) { return Outputs{args[0]}; };
  DefineFunction(s_, "MatMul", {ElementType::kFloat}, same);
  ExpectError("an op of that name exists");
  s_ = Scope::NewRoot();
  DefineFunction(s_, "NoResult", {ElementType::kFloat},
                 [](const Scope&, Variables) { return Outputs{Output()}; });
  ExpectError("result 0 is no tensor");
}

}  // namespace
}  // namespace troupe

// A graph can be written down to its end after an error: outputs are invalid, lists as long as
// asked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/troupe.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::string Message(const Scope& s) { return std::string(s.status().message()); }

/// A scope that has an error.
Scope Failed() {
  Scope s = Scope::NewRoot();
  s.UpdateStatus(absl::InvalidArgumentError("the first error"));
  return s;
}

bool AllInvalid(const OutputList& list) {
  for (const Output& output : list) {
    if (output.valid()) return false;
  }
  return true;
}

TEST(InvalidOutputTest, CanBeAskedForEverything) {
  const Output none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.name(), "<none>");
  EXPECT_EQ(none.type(), ElementType::kInvalid);
  EXPECT_TRUE(none.shape().unknown_rank());
  Scope s = Scope::NewRoot();
  const Output past(Const(s, 1.0f).node, 3);
  EXPECT_EQ(past.type(), ElementType::kInvalid);
  EXPECT_TRUE(past.shape().unknown_rank());
  const Output before(Const(s, 1.0f).node, -1);
  EXPECT_EQ(before.type(), ElementType::kInvalid);
}

TEST(InvalidOutputTest, TheErrorIsTheFirstOneAfterChainedUse) {
  Scope s = Scope::NewRoot();
  // A float is no queue.
  const Output x = ops::QueueDequeueV2(s, Const(s, 1.0f), {ElementType::kFloat})[0];
  const Output y = ops::Mul(s, x, 2.0f);
  const Output dx = Gradients(s, {y}, {x})[0];
  EXPECT_FALSE(x.valid());
  EXPECT_FALSE(y.valid());
  EXPECT_FALSE(dx.valid());
  EXPECT_EQ(y.type(), ElementType::kInvalid);
  EXPECT_THAT(Message(s), HasSubstr("QueueDequeueV2"));
}

TEST(InvalidOutputTest, AMissingInputIsNamed) {
  // Its type, which the node takes from it, is missing as well.
  Scope s = Scope::NewRoot();
  ops::Neg(s, Output());
  EXPECT_THAT(Message(s), HasSubstr("node 'Neg' (op Neg): input 0 is missing"));
}

TEST(InvalidOutputTest, AMissingFunctionIsAnError) {
  const auto message = [](const auto& build) {
    const Scope s = Scope::NewRoot();
    build(s);
    return Message(s);
  };
  const BranchFunction none = [](const Scope&) { return std::vector<Output>(); };
  EXPECT_THAT(message([&](const Scope& s) { Cond(s, Const(s, true), none, BranchFunction()); }),
              HasSubstr("Cond 'cond' lacks a branch"));
  EXPECT_THAT(message([](const Scope& s) {
                Cond(s, Const(s, true), SingleBranchFunction(), SingleBranchFunction());
              }),
              HasSubstr("Cond 'cond' lacks a branch"));
  EXPECT_THAT(message([](const Scope& s) { WhileLoop(s, {Const(s, 1)}, nullptr, nullptr); }),
              HasSubstr("WhileLoop 'while' lacks"));
  EXPECT_THAT(message([](const Scope& s) { DefineFunction(s, "f", {}, nullptr); }),
              HasSubstr("function 'f': it has no body"));
}

TEST(InvalidOutputTest, ListsHaveTheLengthThatWasAskedFor) {
  const Scope s = Failed();
  const Output x;
  const std::vector<Output> three(3);
  EXPECT_EQ(ops::Unpack(s, x, 5).size(), 5u) << "by an attribute";
  EXPECT_EQ(ops::QueueDequeueManyV2(s, x, 2, {ElementType::kFloat, ElementType::kInt32}).size(), 2u)
      << "by a list of types";
  EXPECT_EQ(ops::IdentityN(s, three).size(), 3u) << "by the inputs";
  EXPECT_EQ(ops::ShapeN(s, three).size(), 3u);
  EXPECT_EQ(ops::Unpack(s, x, -7).size(), 0u) << "that is no length";
  EXPECT_EQ(ops::Unpack(s, x, int64_t{1} << 60).size(), 0u);
  EXPECT_EQ(Gradients(s, three, three).size(), 3u);
  EXPECT_EQ(SparseGradients(s, three, three).size(), 3u);
  EXPECT_EQ(Call(s, "F", {x}, {ElementType::kFloat, ElementType::kFloat}).size(), 2u);
  const Function f{
      .name = "F", .args = {}, .result_types = {ElementType::kFloat}, .result_shapes = {}};
  EXPECT_EQ(Call(s, f, {x}).size(), 1u);
  EXPECT_EQ(FunctionalIf(s, x, {x}, f, f).size(), 1u);
  EXPECT_EQ(FunctionalWhile(s, {x, x}, f, f).size(), 2u);
  const auto body = [](const Scope&, absl::Span<const Output>) { return std::vector<Output>(); };
  EXPECT_EQ(WhileLoop(
                s, {x, x}, [](const Scope&, absl::Span<const Output>) { return Output(); }, body)
                .size(),
            2u);
  EXPECT_EQ(MapFn(s, MapFunction(body), {x, x}, {}).size(), 2u);
  EXPECT_EQ(MapFn(s, MapFunction(body), {x}, {ElementType::kFloat, ElementType::kInt32}).size(),
            2u);
  const auto fold = [](const Scope&, absl::Span<const Output>, absl::Span<const Output>) {
    return std::vector<Output>();
  };
  EXPECT_EQ(FoldL(s, FoldFunction(fold), {x}, {x, x, x}, {}).size(), 3u);
  EXPECT_EQ(Scan(s, FoldFunction(fold), {x, x}, InputList(), {}).size(), 2u);
  // How many results branches give is not known before they are asked.
  const auto branch = [](const Scope&) { return std::vector<Output>(4); };
  const OutputList of_cond = Cond(s, x, BranchFunction(branch), BranchFunction(branch));
  EXPECT_FALSE(of_cond[3].valid()) << "but none is past the end";
  EXPECT_TRUE(AllInvalid(ops::Unpack(s, x, 5)));
  EXPECT_EQ(Message(s), "the first error");
}

TEST(InvalidOutputTest, ConditionalsGiveAsManyAsTheFirstBranchThatWasCalled) {
  const BranchFunction two = [](const Scope& s) {
    return std::vector<Output>{Const(s, 1.0f), Const(s, 2.0f)};
  };
  const BranchFunction fails = [](const Scope& s) -> std::vector<Output> {
    return ops::Unpack(s, Const(s, 1.0f), 2);
  };
  const BranchFunction three = [](const Scope& s) {
    return std::vector<Output>(3, Const(s, 1.0f));
  };
  const BranchFunction others = [](const Scope& s) {
    return std::vector<Output>{Const(s, 1.0f), Const(s, 2)};
  };
  const BranchFunction no_tensors = [](const Scope&) { return std::vector<Output>(2); };
  const std::pair<BranchFunction, BranchFunction> pairs[] = {
      {two, fails}, {fails, two}, {two, three}, {two, others}, {two, no_tensors}, {no_tensors, two},
  };
  const auto expect_two = [](const Scope& s, const OutputList& list, const char* what) {
    EXPECT_FALSE(s.ok()) << what;
    EXPECT_EQ(list.size(), 2u) << what;
    EXPECT_TRUE(AllInvalid(list)) << what;
  };
  for (const auto& [first, second] : pairs) {
    Scope s = Scope::NewRoot();
    expect_two(s, Cond(s, Const(s, true), first, second), "Cond");
    s = Scope::NewRoot();
    expect_two(s, Case(s, {{Const(s, true), first}, {Const(s, true), second}}, two), "Case");
    s = Scope::NewRoot();
    expect_two(s, Case(s, {{Const(s, true), first}}, second), "the last of Case");
    s = Scope::NewRoot();
    expect_two(s, SwitchCase(s, Const(s, 1), {first, two, second}), "SwitchCase");
  }
  Scope s = Scope::NewRoot();
  EXPECT_EQ(Cond(s, Const(s, 1.0f), two, two).size(), 0u);
  EXPECT_FALSE(s.ok());
}

TEST(InvalidOutputTest, ListsCanBeIndexedPastTheEndAndChanged) {
  Scope s = Scope::NewRoot();
  OutputList list = ops::Unpack(s, Const(s, Tensor::Vector<float>({1, 2})), 2);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_TRUE(list[1].valid());
  EXPECT_FALSE(list[2].valid());
  list[0] = ops::Neg(s, list[0]);
  EXPECT_EQ(list[0].node->op(), "Neg");
  list[100] = list[0];
  EXPECT_FALSE(list[100].valid());
  const std::vector<Output> plain = list;
  EXPECT_EQ(plain.size(), 2u);
  const absl::Span<const Output> span = list;
  EXPECT_EQ(span.size(), 2u);
  EXPECT_TRUE(ops::AddN(s, list).valid());
}

TEST(InvalidOutputTest, WhateverTakesOneSurvivesIt) {
  const Output none;
  const std::vector<Output> nones(2);
  const auto survives = [&](const char* what, const std::function<void(const Scope&)>& use) {
    Scope s = Scope::NewRoot();
    use(s);
    EXPECT_FALSE(s.ok()) << what << " takes an invalid output without a word";
    use(s);  // After an error.
    use(Failed());
  };
  survives("Mul", [&](const Scope& s) { ops::Mul(s, none, 2.0f); });
  survives("Pack", [&](const Scope& s) { ops::Pack(s, {none, 2.0f}); });
  survives("another index", [&](const Scope& s) {
    ops::Neg(s, Output(Const(s, 1.0f).node, 9));
    ops::Neg(s, Output(Const(s, 1.0f).node, -9));
  });
  survives("Gradients", [&](const Scope& s) { Gradients(s, {none}, {none}); });
  survives("x", [&](const Scope& s) { Gradients(s, {Const(s, 1.0f)}, {none}); });
  survives("Cond", [&](const Scope& s) {
    Cond(
        s, none, [&](const Scope&) { return none; }, [&](const Scope&) { return none; });
  });
  survives("a branch", [&](const Scope& s) {
    Cond(
        s, Const(s, true), [&](const Scope&) { return none; }, [&](const Scope&) { return none; });
  });
  survives("a branch's input", [&](const Scope& s) {
    const Output past(Const(s, 1.0f).node, 7);
    auto branch = [&](const Scope& in) { return ops::Neg(in, past); };
    Cond(s, Const(s, true), branch, branch);
  });
  survives("WhileLoop", [&](const Scope& s) {
    WhileLoop(
        s, {none}, [&](const Scope&, absl::Span<const Output> v) { return v[0]; },
        [&](const Scope&, absl::Span<const Output> v) { return std::vector<Output>{v[0]}; });
  });
  survives("its results", [&](const Scope& s) {
    WhileLoop(
        s, {1.0f},
        [&](const Scope& in, absl::Span<const Output> v) { return ops::Less(in, v[0], 2.0f); },
        [&](const Scope&, absl::Span<const Output>) { return std::vector<Output>{none}; });
  });
  survives("TensorArray", [&](const Scope& s) {
    const TensorArray array(s, none, ElementType::kFloat);
    array.Write(s, none, none).Read(s, none);
    array.Unstack(s, none).Stack(s);
    array.Concat(s);
    array.Split(s, none, none);
    array.Grad(s, "g").Size(s);
    array.WithFlow(none).Close(s);
  });
  survives("a TensorArray that is none", [&](const Scope& s) {
    TensorArray().Grad(s, "g").Read(s, 0);
    TensorArray().Write(s, 0, 1.0f).Stack(s);
  });
  survives("Call", [&](const Scope& s) { Call(s, "F", {none}, {ElementType::kFloat}); });
  survives("a result", [&](const Scope& s) {
    DefineFunction(s, "F", {ElementType::kFloat}, [&](const Scope&, absl::Span<const Output>) {
      return std::vector<Output>{none};
    });
  });
  survives("MapFn", [&](const Scope& s) {
    MapFn(
        s, [](const Scope&, const Output& row) { return row; }, none);
  });
  survives("FoldL", [&](const Scope& s) {
    FoldL(
        s, [](const Scope&, const Output& a, const Output&) { return a; }, none, Input(none));
  });
  survives("ReduceMean", [&](const Scope& s) { ReduceMean(s, none); });
  survives("ModelVariable", [&](const Scope& s) {
    const ModelVariable v(s, none, "v");
    v.Read(s);
    v.Assign(s, none);
    v.AssignAdd(s, 1.0f);
    GradientDescentOptimizer(0.1f).Minimize(s, none, {}, {v});
    ExponentialMovingAverage(0.9).Apply(s, std::vector<ModelVariable>{v});
    EmbeddingLookup(s, v, none);
    SyncReplicasOptimizer(std::make_unique<GradientDescentOptimizer>(0.1f),
                          {.replicas_to_aggregate = 1})
        .ApplyGradients(s, {{Gradient(Const(s, 1.0f)), v}}, {});
  });
  survives("a control dependency", [&](const Scope& s) {
    ops::Neg(s.WithControlDependencies({none}).ColocateWith(nullptr), none);
  });
}

TEST(ListInputTest, TakesLiteralsAndTensorsInAnyContainer) {
  Scope s = Scope::NewRoot();
  const Output x = Const(s.WithOpName("x"), 3.0f);
  const Output array[] = {x, x};
  const std::vector<Output> vector = {x, x};
  const Output packs[] = {
      ops::Pack(s, {x, 1.0f}),
      ops::Pack(s, {1.0f, 2.0f}),
      ops::Pack(s, array),
      ops::Pack(s, vector),
      ops::Pack(s, absl::MakeConstSpan(vector)),
      ops::Pack(s, std::array<Output, 2>{x, x}),
      ops::Pack(s, ops::IdentityN(s, vector)),
      ops::ConcatV2(s, {Tensor::Vector<float>({1}), ops::Reshape(s, x, {1})}, 0),
  };
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = Session::Create(s.graph());
  auto values = (*session)->Run(absl::MakeConstSpan(packs));
  ASSERT_TRUE(values.ok()) << values.status();
  const float want[][2] = {{3, 1}, {1, 2}, {3, 3}, {3, 3}, {3, 3}, {3, 3}, {3, 3}, {1, 3}};
  for (size_t i = 0; i < std::size(packs); ++i) {
    EXPECT_THAT(*(*values)[i].values<float>(), testing::ElementsAre(want[i][0], want[i][1])) << i;
  }
}

TEST(LiteralTest, VectorsMatricesAndVariables) {
  Scope s = Scope::NewRoot();
  const ModelVariable w(s, Const(s, {2.0f, 3.0f}), "w");
  const std::vector<float> values = {5, 7};
  const Output fetches[] = {Const(s, {{1, 2, 3}, {4, 5, 6}}), Const(s, {true, false}),
                            ops::Mul(s, w, values), ops::Add(s, w, w),
                            ops::MatMul(s, Const(s, {{1.0f, 2.0f}}), Const(s, {{3.0f}, {4.0f}}))};
  ASSERT_TRUE(s.ok()) << s.status();
  auto session = *Session::Create(s.graph());
  ASSERT_TRUE(session->RunTargets({w.initializer()}).ok());
  const auto got = session->Run(absl::MakeConstSpan(fetches));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].shape(), Shape({2, 3}));
  EXPECT_THAT(*(*got)[0].values<int32_t>(), testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(*(*got)[1].values<bool>(), testing::ElementsAre(true, false));
  EXPECT_THAT(*(*got)[2].values<float>(), testing::ElementsAre(10, 21));
  EXPECT_THAT(*(*got)[3].values<float>(), testing::ElementsAre(4, 6));
  EXPECT_THAT(*(*got)[4].values<float>(), testing::ElementsAre(11));

  Const(s, {{1.0f}, {2.0f, 3.0f}});
  EXPECT_THAT(Message(s), HasSubstr("differ in length"));
}

TEST(LiteralTest, TheErrorSaysHowToWriteConstants) {
  const std::pair<std::function<void(const Scope&)>, const char*> cases[] = {
      {[](const Scope& s) { ops::Mul(s, Const(s, 1.5f), Const(s, 2.0)); },
       "if it is a literal, write 2.0f"},
      {[](const Scope& s) { ops::Add(s, Const(s, 1.5f), Const(s, 1)); }, "write 1.0f"},
      {[](const Scope& s) { ops::Add(s, Const(s, 1.5f), Const(s, 2.5)); }, "write 2.5f"},
      {[](const Scope& s) { ops::Add(s, Const(s, int64_t{1}), Const(s, 7)); }, "write int64_t{7}"},
      {[](const Scope& s) { ops::Add(s, Const(s, 1.5), Const(s, 7)); }, "write 7.0"},
      {[](const Scope& s) { ops::Mul(s, Const(s, 2.0), ops::Placeholder(s, ElementType::kFloat)); },
       "write 2.0f for 'Const"},
      {[](const Scope& s) {
         ops::Pack(s, {ops::Placeholder(s, ElementType::kFloat), Const(s, 1)});
       },
       "write 1.0f"},
  };
  for (const auto& [build, words] : cases) {
    Scope s = Scope::NewRoot();
    build(s);
    EXPECT_THAT(Message(s), HasSubstr(words));
  }
  Scope s = Scope::NewRoot();
  ops::Add(s, ops::Placeholder(s, ElementType::kFloat), ops::Placeholder(s, ElementType::kInt32));
  EXPECT_THAT(Message(s), testing::Not(HasSubstr("literal")));
}

TEST(GradientsTest, IntegersEndTheChain) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s, ElementType::kFloat);
  const Output y = ops::Cast(s, x, ElementType::kInt32);
  EXPECT_FALSE(Gradients(s, {y}, {x})[0].valid());
  EXPECT_TRUE(s.ok()) << s.status();
}

}  // namespace
}  // namespace troupe

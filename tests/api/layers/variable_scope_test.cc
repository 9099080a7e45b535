#include "api/variable_scope.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "api/control_flow.h"
#include "api/training/optimizers.h"
#include "api/training/weight_initializers.h"
#include "graph/meta_graph.h"
#include "graph/protos/meta_graph.pb.h"
#include "tests/api/layers/run_graph.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VariableScopeTest : public RunGraph {
 protected:
  absl::StatusCode Code() const { return s_.status().code(); }
};

TEST_F(VariableScopeTest, NamesOfVariablesAndOfNodes) {
  const Scope a = VariableScope(s_, "a");
  const ModelVariable w = GetVariable(a, "w", {2});
  EXPECT_EQ(w.name(), "a/w");
  const Scope nodes = a.NewSubScope("only_nodes");
  EXPECT_EQ(GetVariable(nodes, "v", {2}).name(), "a/v");
  const Scope again = VariableScope(s_, "a", {.reuse = Reuse::kYes});
  EXPECT_EQ(again.prefix(), "a_1/");
  EXPECT_EQ(GetVariable(again, "w", {2}).handle(), w.handle());
  const Scope within = VariableScope(again, "b", {.reuse = Reuse::kNo});
  EXPECT_FALSE(GetVariable(within, "u", {2}).valid());  // kYes holds within.
  EXPECT_EQ(Code(), absl::StatusCode::kNotFound);
}

TEST_F(VariableScopeTest, ReuseHoldsWithin) {
  const Scope any = VariableScope(s_, "any", {.reuse = Reuse::kAuto});
  const ModelVariable w = GetVariable(VariableScope(any, "in"), "w", {2});
  const Scope no = VariableScope(any, "in", {.reuse = Reuse::kNo});
  EXPECT_EQ(GetVariable(no, "w", {2}).handle(), w.handle());
  EXPECT_TRUE(GetVariable(no, "v", {2}).valid());
  const Scope yes = VariableScope(s_, "any", {.reuse = Reuse::kYes});
  const Scope inner = VariableScope(yes, "in", {.reuse = Reuse::kAuto});
  EXPECT_TRUE(GetVariable(inner, "u", {2}).valid()) << s_.status();
}

TEST_F(VariableScopeTest, DefaultNamesCountFromEachEntry) {
  const auto names = [](const Scope& scope) {
    return std::vector<std::string>{DefaultVariableScope(scope, "dense").variables()->prefix,
                                    DefaultVariableScope(scope, "dense").variables()->prefix};
  };
  const Scope net = VariableScope(s_, "net");
  EXPECT_THAT(names(net), ElementsAre("net/dense/", "net/dense_1/"));
  EXPECT_THAT(names(net.NewSubScope("nodes")), ElementsAre("net/dense_2/", "net/dense_3/"));
  EXPECT_THAT(names(VariableScope(net, "in")), ElementsAre("net/in/dense/", "net/in/dense_1/"));
  const Scope again = VariableScope(s_, "net");
  VariableScope(again, "dense");
  EXPECT_THAT(names(again), ElementsAre("net/dense_1/", "net/dense_2/"));
  EXPECT_THAT(names(s_), ElementsAre("dense/", "dense_1/"));
  EXPECT_THAT(names(Scope(s_.graph())), ElementsAre("dense_2/", "dense_3/"));
}

TEST_F(VariableScopeTest, UniqueOnesAreNobodyElses) {
  for (const char* name : {"net/mean/", "net/mean_1/"}) {
    const Scope net = VariableScope(s_, "net", {.reuse = Reuse::kYes});
    const Scope mean = UniqueVariableScope(net, "mean");
    EXPECT_EQ(mean.variables()->prefix, name);
    EXPECT_TRUE(GetVariable(mean, "total", {}).valid()) << s_.status();
  }
}

TEST_F(VariableScopeTest, WhatIsThereIsNotMadeTwice) {
  GetVariable(s_, "w", {2});
  GetVariable(s_, "w", {2});
  EXPECT_EQ(Code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("'w'"));
}

TEST_F(VariableScopeTest, AnotherShapeIsRefused) {
  const Scope any = VariableScope(s_, "any", {.reuse = Reuse::kAuto});
  GetVariable(any, "w", {2});
  EXPECT_TRUE(GetVariable(any, "w", {2}).valid());
  GetVariable(any, "w", {3});
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(s_.status().message()), HasSubstr("any/w"));
}

TEST_F(VariableScopeTest, VariablesOfTensorFlowsGraphsAreFound) {
  for (const std::string kind : {"plain", "resource", "partitioned_resource"}) {
    const Scope s = Scope::NewRoot();
    MetaGraphDef def;
    ASSERT_EQ(ReadMetaGraph("tests/api/training/testdata/savers/" + kind + ".meta", &def),
              absl::OkStatus());
    ASSERT_TRUE(ImportMetaGraph(def, {.import_scope = "net"}, s.graph().get()).ok());
    const Scope net =
        VariableScope(s, "net", {.reuse = Reuse::kYes, .partitioner = FixedSizePartitioner(3)});
    auto session = Session::Create(s.graph());
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_EQ((*session)->RunTargets({s.graph()->FindNode("net/init")}), absl::OkStatus());
    Output value;
    if (kind == "partitioned_resource") {
      const PartitionedModelVariable table = GetPartitionedVariable(net, "table", {7, 2});
      ASSERT_EQ(table.parts().size(), 3u) << s.status();
      EXPECT_EQ(table.parts()[0].name(), "net/table/part_0");
      value = table.parts()[0].value();
    } else {
      const ModelVariable w = GetVariable(net, "w", {2, 3});
      ASSERT_TRUE(w.valid()) << s.status();
      EXPECT_EQ(w.name(), "net/w");
      value = w.value();
    }
    auto values = (*session)->Run({}, {value});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0].unchecked_data<float>()[1], kind == "partitioned_resource" ? 101 : 1.5);
    GetVariable(VariableScope(s, "net"), kind == "partitioned_resource" ? "table/part_0" : "w", {});
    EXPECT_EQ(s.status().code(), absl::StatusCode::kAlreadyExists) << s.status();
  }
}

TEST_F(VariableScopeTest, ANodeOfTheNameIsInTheWay) {
  ops::NoOp(s_.WithOpName("w"));
  EXPECT_FALSE(GetVariable(s_, "w", {2}).valid());
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(VariableScopeTest, DefaultsAreInherited) {
  const Scope outer = VariableScope(
      s_, "outer", {.initializer = ConstantInitializer(3), .type = ElementType::kDouble});
  const Scope inner = VariableScope(outer, "inner", {.regularizer = L1L2Regularizer(1, 2)});
  const ModelVariable w = GetVariable(inner, "w", {2, 2});
  const ModelVariable n =
      GetVariable(inner, "n", {}, {.regularizer = L2Regularizer(0), .type = ElementType::kInt64});
  EXPECT_EQ(w.type(), ElementType::kDouble);
  EXPECT_EQ(RegularizationLosses(s_).size(), 1u);
  const Output loss = RegularizationLoss(s_);
  Start();
  EXPECT_EQ(Value(loss).unchecked_scalar<double>(), 4 * 3 + 2 * 4 * 9 / 2);
  EXPECT_EQ(Value(n.value()).unchecked_scalar<int64_t>(), 3);
}

TEST_F(VariableScopeTest, VariablesOfLoopsAndBranchesAreOutside) {
  const OutputList end = WhileLoop(
      s_, {0, 1.0f},
      [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], 3); },
      [&](const Scope& s, absl::Span<const Output> v) {
        const Scope net = VariableScope(s, "net");
        const ModelVariable w = GetVariable(
            net, "w", {}, {.initializer = ConstantInitializer(2), .regularizer = L2Regularizer(1)});
        return std::vector<Output>{ops::Add(s, v[0], 1), ops::Mul(s, v[1], w.value())};
      });
  const Output loss = RegularizationLoss(s_);
  Start();
  EXPECT_EQ(Number(end[1]), 8);
  EXPECT_EQ(Number(loss), 2);
  EXPECT_EQ(ModelVariable::Trainable(*s_.graph())[0].name(), "net/w");
}

TEST_F(VariableScopeTest, GettersWrapOneAnother) {
  std::vector<std::string> calls;
  const auto getter = [&](const std::string& who) -> VariableGetter {
    return [&calls, who](const Scope& scope, VariableRequest request, const auto& next) {
      calls.push_back(who);
      request.name += "_" + who;
      return next(scope, request);
    };
  };
  const Scope outer = VariableScope(s_, "o", {.getter = getter("outer")});
  const Scope inner = VariableScope(outer, "i", {.getter = getter("inner")});
  EXPECT_EQ(GetVariable(inner, "w", {}).name(), "o/i/w_inner_outer");
  EXPECT_THAT(calls, ElementsAre("inner", "outer"));
}

TEST_F(VariableScopeTest, PartsAreSharedAndPutTogether) {
  const Scope net = VariableScope(s_, "net", {.partitioner = FixedSizePartitioner(3)});
  const auto rows = [](const Scope& scope, const Shape& shape, ElementType) {
    std::vector<float> values(static_cast<size_t>(shape.num_elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return Const(scope, Floats(values, shape));
  };
  const auto whole = GetPartitionedVariable(net, "w", {7, 2}, {.initializer = rows});
  ASSERT_EQ(whole.parts().size(), 3u);
  EXPECT_EQ(whole.parts()[0].name(), "net/w/part_0");
  EXPECT_EQ(whole.parts()[0].shape(), PartialShape({3, 2}));
  EXPECT_EQ(whole.parts()[2].shape(), PartialShape({2, 2}));
  const Scope again =
      VariableScope(s_, "net", {.reuse = Reuse::kYes, .partitioner = FixedSizePartitioner(3)});
  const auto same = GetPartitionedVariable(again, "w", {7, 2});
  ASSERT_EQ(same.parts().size(), 3u);
  EXPECT_EQ(same.parts()[1].handle(), whole.parts()[1].handle());
  const Output all = same.Value(s_), found = same.Lookup(s_, {5, 0});
  const auto columns = GetPartitionedVariable(
      VariableScope(s_, "c", {.partitioner = FixedSizePartitioner(2, 1)}), "w", {2, 3});
  const Output value = columns.Value(s_);
  Start();
  EXPECT_THAT(Numbers(all), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13));
  EXPECT_THAT(Numbers(found), ElementsAre(10, 11, 0, 1));
  EXPECT_EQ(Value(value).shape(), Shape({2, 3}));
  columns.Lookup(s_, {0});
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(VariableScopeTest, PartsAreSlicesOfOneValue) {
  const Scope net = VariableScope(s_, "net", {.partitioner = FixedSizePartitioner(3)});
  const auto identity =
      GetPartitionedVariable(net, "identity", {4, 2}, {.initializer = IdentityInitializer(5)});
  const auto values = GetPartitionedVariable(
      net, "values", {4}, {.initializer = ConstantInitializer(Floats({1, 2, 3, 4}, {4}))});
  const auto turned = GetPartitionedVariable(
      VariableScope(s_, "columns", {.partitioner = FixedSizePartitioner(2, 1)}), "orthogonal",
      {3, 3}, {.initializer = OrthogonalInitializer()});
  ASSERT_TRUE(s_.ok()) << s_.status();
  EXPECT_EQ(turned.parts()[0].shape(), PartialShape({3, 2}));
  const Output whole = turned.Value(s_);
  const Output product = ops::MatMul(s_, whole, whole, {.transpose_a = true});
  const Output identities = identity.Value(s_), all = values.Value(s_);
  Start();
  EXPECT_THAT(Numbers(identities), ElementsAre(5, 0, 0, 5, 0, 0, 0, 0));
  EXPECT_THAT(Numbers(all), ElementsAre(1, 2, 3, 4));
  const std::vector<float> ones = Numbers(product);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(ones[i], i % 4 == 0 ? 1 : 0, 1e-5);
}

TEST_F(VariableScopeTest, RandomPartsAreScaledByTheWhole) {
  s_.SetGraphSeed(5);
  const Scope net = VariableScope(s_, "net", {.partitioner = FixedSizePartitioner(4)});
  const Shape shape = {4096, 16};
  struct Row {
    std::string name;
    Initializer initializer;
    double limit;
  };
  const Row rows[] = {{"glorot", nullptr, std::sqrt(6.0 / (4096 + 16))},
                      {"he", HeUniformInitializer(), std::sqrt(6.0 / 4096)},
                      {"unit", UniformUnitScalingInitializer(), std::sqrt(3.0 / 4096)}};
  std::vector<PartitionedModelVariable> variables;
  for (const Row& row : rows) {
    variables.push_back(
        GetPartitionedVariable(net, row.name, shape, {.initializer = row.initializer}));
  }
  // None of the nodes has the size of the whole.
  for (const Node* node : s_.graph()->nodes()) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      EXPECT_NE(node->output_shape(i), PartialShape(shape)) << node->name();
    }
  }
  Start();
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> first;
    for (const ModelVariable& part : variables[i].parts()) {
      const std::vector<float> values = Numbers(part.value());
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      EXPECT_NEAR(*least, -rows[i].limit, rows[i].limit / 500) << rows[i].name;
      EXPECT_NEAR(*most, rows[i].limit, rows[i].limit / 500) << rows[i].name;
      EXPECT_NE(values, first) << "each part draws its own numbers";
      if (first.empty()) first = values;
    }
  }
}

TEST_F(VariableScopeTest, OtherPartsThanThereAreAreRefused) {
  GetPartitionedVariable(VariableScope(s_, "net", {.partitioner = FixedSizePartitioner(2)}), "w",
                         {6});
  GetPartitionedVariable(
      VariableScope(s_, "net", {.reuse = Reuse::kAuto, .partitioner = FixedSizePartitioner(3)}),
      "w", {6});
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument) << s_.status();
}

TEST(PartitionerTest, BySize) {
  const Partitioner kilobyte = BySizePartitioner(1000);
  EXPECT_THAT(kilobyte({100, 10}, ElementType::kFloat), ElementsAre(4, 1));
  EXPECT_THAT(kilobyte({10, 1000}, ElementType::kFloat), ElementsAre(10, 1));
  EXPECT_THAT(kilobyte({0, 1000}, ElementType::kFloat), ElementsAre(1, 1));
  EXPECT_THAT(kilobyte({}, ElementType::kFloat), ElementsAre());
  EXPECT_THAT(BySizePartitioner(1000, 1, 2)({10, 1000}, ElementType::kFloat), ElementsAre(1, 2));
}

TEST_F(VariableScopeTest, InitialValuesOfOneAnother) {
  const ModelVariable a(s_, Const(s_, 5.0f), "a");
  const ModelVariable b(s_, ops::Mul(s_, InitializedValue(s_, a), 2.0f), "b");
  Start();  // In whatever order.
  EXPECT_EQ(Number(b.value()), 10);
}

TEST_F(VariableScopeTest, ConstraintsHoldAfterUpdates) {
  const ModelVariable w =
      GetVariable(s_, "w", {2, 2}, {.initializer = OnesInitializer(), .constraint = MaxNorm(1.0)});
  const ModelVariable u =
      GetVariable(s_, "u", {3}, {.initializer = OnesInitializer(), .constraint = UnitNorm()});
  const ModelVariable free = GetVariable(s_, "free", {}, {.initializer = OnesInitializer()});
  const Output sum = ops::Add(s_, ops::Sum(s_, w.value(), {0, 1}),
                              ops::Add(s_, ops::Sum(s_, u.value(), {0}), free.value()));
  Node* train = GradientDescentOptimizer(-2.0f).Minimize(s_, sum);
  Start();
  ASSERT_EQ(session_->RunTargets({train}), absl::OkStatus());
  for (const float value : Numbers(w.value())) EXPECT_NEAR(value, std::sqrt(.5f), 1e-6);
  for (const float value : Numbers(u.value())) EXPECT_NEAR(value, std::sqrt(1 / 3.0f), 1e-6);
  EXPECT_EQ(Number(free.value()), 3);
}

TEST_F(VariableScopeTest, AnImportedGraphGetsItsConstraintsAgain) {
  const VariableOptions options = {.initializer = OnesInitializer(), .constraint = NonNegative()};
  {
    const Scope saved = Scope::NewRoot();
    GetVariable(VariableScope(saved, "net"), "w", {2}, options);
    GetPartitionedVariable(VariableScope(saved, "p", {.partitioner = FixedSizePartitioner(2)}), "w",
                           {2}, options);
    MetaGraphDef def;
    ASSERT_EQ(ExportMetaGraph(*saved.graph(), {}, &def), absl::OkStatus());
    ASSERT_TRUE(ImportMetaGraph(def, {}, s_.graph().get()).ok());
  }
  const ModelVariable w =
      GetVariable(VariableScope(s_, "net", {.reuse = Reuse::kYes}), "w", {2}, options);
  const PartitionedModelVariable parts = GetPartitionedVariable(
      VariableScope(s_, "p", {.reuse = Reuse::kYes, .partitioner = FixedSizePartitioner(2)}), "w",
      {2}, options);
  const Output sum = ops::Add(s_, ops::Sum(s_, w.value(), {0}), ops::Sum(s_, parts.Value(s_), {0}));
  Node* train = GradientDescentOptimizer(3.0f).Minimize(s_, sum);
  Start();
  ASSERT_EQ(session_->RunTargets({train}), absl::OkStatus());
  EXPECT_THAT(Numbers(w.value()), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(parts.parts()[1].value()), ElementsAre(0));
}

}  // namespace
}  // namespace troupe

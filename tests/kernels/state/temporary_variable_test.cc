// Temporary variables, in whole steps: they live and die with them.
#include <string>
#include <vector>

#include "api/session.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

/// A graph with one temporary variable, to which `value` is assigned.
struct Temporary {
  Temporary(Graph* graph, const std::string& node, const std::string& name, Output value) {
    NodeSpec make("TemporaryVariable", node);
    make.Attr("shape", PartialShape({2})).Attr("dtype", ElementType::kFloat).Attr("var_name", name);
    variable = Output(*graph->AddNode(make), 0);
    NodeSpec assign("Assign", node + "/assign");
    assign.Input(variable).Input(value);
    assigned = Output(*graph->AddNode(assign), 0);
  }
  Output Destroy(Graph* graph, const std::string& node, const std::string& name, Output ref) {
    NodeSpec destroy("DestroyTemporaryVariable", node);
    destroy.Input(ref).Attr("var_name", name);
    return Output(*graph->AddNode(destroy), 0);
  }
  Output variable, assigned;
};

Output Constant(Graph* graph, const std::string& name, const Tensor& value) {
  NodeSpec spec("Const", name);
  spec.Attr("value", value).Attr("dtype", value.type());
  return Output(*graph->AddNode(spec), 0);
}

TEST(TemporaryVariables, EveryStepHasItsOwn) {
  auto graph = std::make_shared<Graph>();
  const Output x = Constant(graph.get(), "x", Tensor::Vector<float>({1, 2}));
  Temporary t(graph.get(), "t", "sum", x);
  NodeSpec add("AssignAdd", "add");
  add.Input(t.assigned).Input(x);
  const Output added(*graph->AddNode(add), 0);
  const Output fetches[] = {t.Destroy(graph.get(), "value", "sum", added)};
  auto session = Session::Create(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int step = 0; step < 3; ++step) {
    auto values = (*session)->Run(FeedMap{}, fetches);
    ASSERT_TRUE(values.ok()) << values.status();
    ExpectEqual((*values)[0], Tensor::Vector<float>({2, 4}));
  }
}

TEST(TemporaryVariables, AnotherNameIsNotFound) {
  auto graph = std::make_shared<Graph>();
  const Output x = Constant(graph.get(), "x", Tensor::Vector<float>({1, 2}));
  Temporary t(graph.get(), "t", "", x);  // Called like its node.
  const Output right[] = {t.Destroy(graph.get(), "right", "t", t.assigned)};
  const Output wrong[] = {t.Destroy(graph.get(), "wrong", "other", t.assigned)};
  auto session = Session::Create(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->Run(FeedMap{}, right).ok());
  auto values = (*session)->Run(FeedMap{}, wrong);
  EXPECT_EQ(values.status().code(), absl::StatusCode::kNotFound) << values.status();
}

TEST(TemporaryVariables, CannotBeDestroyedTwice) {
  auto graph = std::make_shared<Graph>();
  const Output x = Constant(graph.get(), "x", Tensor::Vector<float>({1, 2}));
  Temporary t(graph.get(), "t", "t", x);
  const Output both[] = {t.Destroy(graph.get(), "a", "t", t.assigned),
                         t.Destroy(graph.get(), "b", "t", t.assigned)};
  auto session = Session::Create(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int step = 0; step < 20; ++step) {
    auto values = (*session)->Run(FeedMap{}, both);
    EXPECT_EQ(values.status().code(), absl::StatusCode::kNotFound) << values.status();
  }
}

}  // namespace
}  // namespace troupe::testing

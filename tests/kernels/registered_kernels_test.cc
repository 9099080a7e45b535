#include "kernels/registered_kernels.h"

#include <gtest/gtest.h>

#include "graph/function_body.h"
#include "graph/protos/graph.pb.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace troupe {
namespace {

// Strings are scattered on the CPU only; all else that is used here has kernels there, too.
class RegisteredKernelsTest : public ::testing::Test {
 protected:
  RegisteredKernelsTest() { testing::BorrowKernels(); }
  static Node* Add(Graph& graph, const NodeSpec& spec) {
    auto node = graph.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Node* Add(const NodeSpec& spec) { return Add(*graph_, spec); }
  Node* Variable(const std::string& name) {
    return Add(NodeSpec("VariableV2", name)
                   .Attr("shape", PartialShape({2}))
                   .Attr("dtype", ElementType::kString));
  }
  Node* Const(const std::string& name, const Tensor& value) {
    return Add(NodeSpec("Const", name).Attr("value", value).Attr("dtype", value.type()));
  }
  static NodeSpec With(NodeSpec spec, const std::string& name) {
    const std::string text = "loc:@" + name;
    spec.Attr("_class", absl::Span<const std::string>(&text, 1));
    return spec;
  }
  Node* Scatter(const std::string& name, Output ref) {
    return Add(NodeSpec("ScatterUpdate", name)
                   .Input(ref)
                   .Input(Const(name + "/indices", Tensor::Vector<int32_t>({1})))
                   .Input(Const(name + "/updates", Tensor::Vector<std::string>({"c"}))));
  }
  /// The name of what lacks a kernel there; "": nothing does.
  std::string Lacking(const Node* node, const char* type = "SIM") {
    const Node* const lacking = RegisteredKernels(*graph_)(*node, type);
    return lacking == nullptr ? "" : lacking->name();
  }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

TEST_F(RegisteredKernelsTest, WhatTakesReferencesCountsForAllThatSharesThem) {
  Node* const a = Variable("a");
  Node* const b = Variable("b");
  Node* const c = Variable("c");
  Node* const one = Add(NodeSpec("RefSelect", "one")
                            .Input(Const("index", Tensor::Scalar<int32_t>(0)))
                            .Input({Output(a), Output(b)}));
  Node* const set = Add(NodeSpec("Assign", "set")
                            .Input(b)
                            .Input(Const("value", Tensor::Vector<std::string>({"a", "b"}))));
  for (const Node* node : {a, b, c, one, set}) EXPECT_EQ(Lacking(node), "") << node->name();
  Scatter("scatter", a);
  for (const Node* node : {a, b, one, set}) {
    EXPECT_EQ(Lacking(node), "scatter") << node->name();
    EXPECT_EQ(Lacking(node, "CPU"), "") << node->name();
  }
  EXPECT_EQ(Lacking(c), "");
  // Who takes the value may be elsewhere.
  Node* const value = Add(NodeSpec("Identity", "value_of_a").Input(a));
  EXPECT_EQ(Lacking(value), "");
}

TEST_F(RegisteredKernelsTest, SoDoesWhatIsColocated) {
  Node* const a = Variable("a");
  Node* const slot = Add(With(NodeSpec("VariableV2", "slot")
                                  .Attr("shape", PartialShape({2}))
                                  .Attr("dtype", ElementType::kString),
                              "a"));
  EXPECT_EQ(Lacking(a), "");
  Node* const scatter = Scatter("scatter", slot);
  for (const Node* node : {a, slot, scatter}) EXPECT_EQ(Lacking(node), "scatter") << node->name();
  // Without state each step decides for itself.
  Node* const x = Const("x", Tensor::Vector<int32_t>({1}));
  Node* const negative =
      Add(With(NodeSpec("Neg", "negative").Input(Const("one", Tensor::Scalar(1.0f))), "x"));
  EXPECT_EQ(Lacking(negative, "NEW"), "negative");
  EXPECT_EQ(Lacking(x, "NEW"), "");
}

TEST_F(RegisteredKernelsTest, SoDoBodiesThatAreGivenHandles) {
  const auto handle = [&](const std::string& name) {
    return Add(NodeSpec("VarHandleOp", name)
                   .Attr("shape", PartialShape({2}))
                   .Attr("dtype", ElementType::kString));
  };
  const auto define = [&](const std::string& name, const std::string& op) {
    Graph body;
    const auto constant = [&](const std::string& input, const Tensor& value) {
      return Add(body, NodeSpec("Const", input).Attr("value", value).Attr("dtype", value.type()));
    };
    Node* const arg = Add(body, NodeSpec("Placeholder", "v").Attr("dtype", ElementType::kResource));
    NodeSpec spec(op, "change");
    spec.Input(arg);
    if (op == "ResourceScatterUpdate") spec.Input(constant("at", Tensor::Vector<int32_t>({1})));
    spec.Input(constant("value", Tensor::Vector<std::string>({"a"})));
    Node* const change = Add(body, spec);
    FunctionDefOptions options;
    options.control_outputs = {change};
    auto def = GraphToFunctionDef(body, name, {Output(arg)}, {}, options);
    ASSERT_TRUE(def.ok()) << def.status();
    FunctionDefLibrary library;
    *library.add_function() = *std::move(def);
    ASSERT_TRUE(graph_->AddLibrary(library).ok());
  };
  define("Set", "AssignVariableOp");
  define("Scatter", "ResourceScatterUpdate");
  const auto call = [&](const std::string& function, Node* of) {
    NodeDef def;
    def.set_name(function + "_call");
    def.set_op("PartitionedCall");
    def.add_input(of->name());
    (*def.mutable_attr())["Tin"].mutable_list()->add_type(DT_RESOURCE);
    (*def.mutable_attr())["Tout"].mutable_list();
    (*def.mutable_attr())["f"].mutable_func()->set_name(function);
    auto node = graph_->AddNode(def);
    EXPECT_TRUE(node.ok()) << node.status();
    return *node;
  };
  Node* const a = handle("a");
  Node* const b = handle("b");
  Node* const set = call("Set", a);
  Node* const scatter = call("Scatter", b);
  for (const Node* node : {a, set}) EXPECT_EQ(Lacking(node), "") << node->name();
  for (const Node* node : {b, scatter}) {
    EXPECT_EQ(Lacking(node), "Scatter_call") << node->name();
    EXPECT_EQ(Lacking(node, "CPU"), "") << node->name();
  }
}

// The nodes of a step are those of a lowered graph, which has that step only.
TEST_F(RegisteredKernelsTest, NodesOfLoweredGraphsAreKnownByName) {
  Scatter("scatter", Variable("a"));
  Graph lowered;
  const auto variable = [&](const std::string& name) {
    return Add(lowered, NodeSpec("VariableV2", name)
                            .Attr("shape", PartialShape({2}))
                            .Attr("dtype", ElementType::kString));
  };
  EXPECT_EQ(Lacking(variable("a")), "scatter");
  EXPECT_EQ(Lacking(variable("inlined")), "");
}

}  // namespace
}  // namespace troupe

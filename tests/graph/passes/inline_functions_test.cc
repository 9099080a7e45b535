#include "graph/passes/inline_functions.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr char kTwice[] = R"pb(
  library {
    function {
      signature {
        name: "Twice"
        input_arg { name: "x" type_attr: "T" }
        output_arg { name: "y" type_attr: "T" }
        attr { name: "T" type: "type" }
      }
      node_def {
        name: "sum"
        op: "Add"
        input: "x"
        input: "x"
        attr {
          key: "T"
          value { placeholder: "T" }
        }
      }
      ret { key: "y" value: "sum:z:0" }
    }
  }
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
  }
)pb";

GraphDef Parse(const std::string& text) {
  GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  return def;
}

std::string Call(const std::string& name, const std::string& input) {
  return "node { name: \"" + name + "\" op: \"Twice\" input: \"" + input +
         "\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";
}

absl::Status Import(const GraphDef& def) {
  Graph graph;
  return ImportGraphDef(def, ImportOptions(), &graph);
}

TEST(InlineFunctionsTest, ACallBecomesItsBodyUnderTheCallsName) {
  const GraphDef def = Parse(kTwice + Call("a", "x") + Call("b", "a"));
  ASSERT_TRUE(CallsFunctions(def));
  Graph graph;
  ASSERT_TRUE(ImportGraphDef(def, ImportOptions(), &graph).ok());
  ASSERT_NE(graph.FindNode("a/sum"), nullptr);
  EXPECT_EQ(graph.FindNode("a/sum")->op(), "Add");
  EXPECT_EQ(graph.FindNode("a")->op(), "IdentityN");
  EXPECT_EQ(graph.FindNode("b/sum")->input(0).name(), "a:0");
  EXPECT_EQ(graph.library().function_size(), 1);
}

TEST(InlineFunctionsTest, ControlInputsHoldUpTheWholeBody) {
  GraphDef def = Parse(kTwice + Call("a", "x"));
  NodeDef* before = def.add_node();
  before->set_name("before");
  before->set_op("NoOp");
  def.mutable_node(1)->add_input("^before");
  auto inlined = InlineFunctionCalls(def, *OpRegistry::Global());
  ASSERT_TRUE(inlined.ok()) << inlined.status();
  for (const NodeDef& node : inlined->node()) {
    if (node.name() != "a/sum" && node.name() != "a") continue;
    EXPECT_EQ(node.input(node.input_size() - 1), "^before") << node.name();
  }
}

TEST(InlineFunctionsTest, BadCallsAreRefused) {
  struct Case {
    const char* what;
    GraphDef def;
    const char* says;
  };
  std::vector<Case> cases;
  cases.push_back({"too few inputs", Parse(kTwice + Call("a", "x")), "argument"});
  cases.back().def.mutable_node(1)->clear_input();
  cases.push_back({"too many inputs", Parse(kTwice + Call("a", "x")), "takes"});
  cases.back().def.mutable_node(1)->add_input("x");
  cases.push_back({"no attribute", Parse(kTwice + Call("a", "x")), "T"});
  cases.back().def.mutable_node(1)->clear_attr();
  cases.push_back({"a result from nowhere", Parse(kTwice + Call("a", "x")), "nothing"});
  (*cases.back().def.mutable_library()->mutable_function(0)->mutable_ret())["y"] = "nothing:z:0";
  cases.push_back({"no result", Parse(kTwice + Call("a", "x")), "nowhere"});
  cases.back().def.mutable_library()->mutable_function(0)->clear_ret();
  cases.push_back({"an unknown input", Parse(kTwice + Call("a", "x")), "ghost"});
  cases.back().def.mutable_library()->mutable_function(0)->mutable_node_def(0)->set_input(0,
                                                                                          "ghost");
  for (const Case& c : cases) {
    const absl::Status status = Import(c.def);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.what << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says)) << c.what;
  }
}

TEST(InlineFunctionsTest, WhatCannotBeInlinedStaysACall) {
  // A body that calls itself: once it is known to, the call is one.
  GraphDef def = Parse(kTwice + Call("a", "x"));
  FunctionDef* function = def.mutable_library()->mutable_function(0);
  NodeDef* body = function->mutable_node_def(0);
  body->set_op("Twice");
  body->mutable_input()->RemoveLast();
  (*function->mutable_ret())["y"] = "sum:y:0";
  auto inlined = InlineFunctionCalls(def, *OpRegistry::Global());
  ASSERT_TRUE(inlined.ok()) << inlined.status();
  ASSERT_EQ(inlined->node_size(), 3);
  EXPECT_EQ(inlined->node(1).name(), "a/sum");
  EXPECT_EQ(inlined->node(1).op(), "Twice");
  EXPECT_TRUE(Import(*inlined).ok());
  // A function that has a gradient of its own.
  def = Parse(kTwice + Call("a", "x"));
  GradientDef* gradient = def.mutable_library()->add_gradient();
  gradient->set_function_name("Twice");
  gradient->set_gradient_func("Twice");
  inlined = InlineFunctionCalls(def, *OpRegistry::Global());
  ASSERT_TRUE(inlined.ok()) << inlined.status();
  EXPECT_EQ(inlined->node(1).op(), "Twice");
}

TEST(InlineFunctionsTest, HostileDoublingIsBounded) {
  if (kSlowBuild) GTEST_SKIP() << "it takes a million nodes to find out";
  // f0 calls f1 twice, f1 calls f2 twice, and so on: 2^40 nodes.
  GraphDef def = Parse(kTwice);
  const FunctionDef last = def.library().function(0);
  for (int i = 0; i < 40; ++i) {
    FunctionDef* function = def.mutable_library()->add_function();
    *function = last;
    function->mutable_signature()->set_name("f" + std::to_string(i));
    const std::string callee = i == 39 ? "Twice" : "f" + std::to_string(i + 1);
    NodeDef* first = function->mutable_node_def(0);
    first->set_op(callee);
    first->mutable_input()->RemoveLast();
    NodeDef* second = function->add_node_def();
    *second = *first;
    second->set_name("second");
    (*function->mutable_ret())["y"] = "sum:y:0";
  }
  NodeDef* call = def.add_node();
  call->set_name("a");
  call->set_op("f0");
  call->add_input("x");
  (*call->mutable_attr())["T"].set_type(DT_FLOAT);
  EXPECT_EQ(Import(def).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe

#include "graph/passes/lower_functions.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "devices/status_macros.h"
#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// While f: (i, n) -> (i + 1, n) as long as i < n; If with a constant in a branch; a call.
constexpr char kLibrary[] = R"pb(
  library {
    function {
      signature {
        name: "LessThan"
        input_arg { name: "i" type: DT_INT32 }
        input_arg { name: "n" type: DT_INT32 }
        output_arg { name: "r" type: DT_BOOL }
      }
      node_def {
        name: "l"
        op: "Less"
        input: "i"
        input: "n"
        attr {
          key: "T"
          value { type: DT_INT32 }
        }
      }
      ret { key: "r" value: "l:z:0" }
    }
    function {
      signature {
        name: "Step"
        input_arg { name: "i" type: DT_INT32 }
        input_arg { name: "n" type: DT_INT32 }
        output_arg { name: "r" type: DT_INT32 }
        output_arg { name: "same" type: DT_INT32 }
      }
      node_def {
        name: "one"
        op: "Const"
        attr {
          key: "dtype"
          value { type: DT_INT32 }
        }
        attr {
          key: "value"
          value {
            tensor {
              dtype: DT_INT32
              tensor_shape {}
              int_val: 1
            }
          }
        }
      }
      node_def {
        name: "a"
        op: "Add"
        input: "i"
        input: "one:output:0"
        attr {
          key: "T"
          value { type: DT_INT32 }
        }
      }
      ret { key: "r" value: "a:z:0" }
      ret { key: "same" value: "n" }
    }
    function {
      signature {
        name: "Endless"
        input_arg { name: "x" type: DT_INT32 }
        output_arg { name: "r" type: DT_INT32 }
      }
      node_def {
        name: "again"
        op: "PartitionedCall"
        input: "x"
        attr {
          key: "Tin"
          value { list { type: DT_INT32 } }
        }
        attr {
          key: "Tout"
          value { list { type: DT_INT32 } }
        }
        attr {
          key: "f"
          value { func { name: "Endless" } }
        }
      }
      ret { key: "r" value: "again:output:0" }
    }
    function {
      signature {
        name: "Pass"
        input_arg { name: "x" type: DT_INT32 }
        output_arg { name: "r" type: DT_INT32 }
      }
      ret { key: "r" value: "x" }
    }
    function {
      signature {
        name: "Three"
        input_arg { name: "x" type: DT_INT32 }
        output_arg { name: "r" type: DT_INT32 }
      }
      node_def {
        name: "three"
        op: "Const"
        attr {
          key: "dtype"
          value { type: DT_INT32 }
        }
        attr {
          key: "value"
          value {
            tensor {
              dtype: DT_INT32
              tensor_shape {}
              int_val: 3
            }
          }
        }
      }
      ret { key: "r" value: "three:output:0" }
    }
  }
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_INT32 }
    }
  }
  node {
    name: "p"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_BOOL }
    }
  }
)pb";

constexpr char kWhile[] = R"pb(
  node {
    name: "w"
    op: "While"
    input: "x"
    input: "x"
    attr {
      key: "T"
      value { list { type: DT_INT32 type: DT_INT32 } }
    }
    attr {
      key: "cond"
      value { func { name: "LessThan" } }
    }
    attr {
      key: "body"
      value { func { name: "Step" } }
    }
    attr {
      key: "parallel_iterations"
      value { i: 7 }
    }
  }
  node {
    name: "after"
    op: "Identity"
    input: "w:1"
    attr {
      key: "T"
      value { type: DT_INT32 }
    }
  }
)pb";

GraphDef Parse(const std::string& text) {
  GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kLibrary + text, &def));
  return def;
}

std::string If(const std::string& then_branch, const std::string& else_branch) {
  return StrCat("node { name: 'if' op: 'If' input: 'p' input: 'x' input: '^x' ",
                "attr { key: 'Tcond' value { type: DT_BOOL } } ",
                "attr { key: 'Tin' value { list { type: DT_INT32 } } } ",
                "attr { key: 'Tout' value { list { type: DT_INT32 } } } ",
                "attr { key: 'then_branch' value { func { name: '", then_branch, "' } } } ",
                "attr { key: 'else_branch' value { func { name: '", else_branch, "' } } } }");
}

std::string Call(const std::string& function) {
  return StrCat("node { name: 'call' op: 'PartitionedCall' input: 'x' ",
                "attr { key: 'Tin' value { list { type: DT_INT32 } } } ",
                "attr { key: 'Tout' value { list { type: DT_INT32 } } } ",
                "attr { key: 'f' value { func { name: '", function, "' } } } }");
}

absl::StatusOr<GraphDef> Lower(const GraphDef& def) {
  return LowerFunctionalOps(def, *OpRegistry::Global(), [](const NodeDef&) { return true; });
}

std::map<std::string, NodeDef> NodesOf(const GraphDef& def) {
  std::map<std::string, NodeDef> nodes;
  for (const NodeDef& node : def.node()) nodes[node.name()] = node;
  return nodes;
}

TEST(LowerFunctionsTest, AWhileBecomesALoopOfItsName) {
  auto lowered = Lower(Parse(kWhile));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  auto nodes = NodesOf(*lowered);
  EXPECT_EQ(nodes["w"].op(), "IdentityN");
  EXPECT_EQ(nodes["after"].input(0), "w:1");
  int enters = 0;
  for (const auto& [name, node] : nodes) {
    if (node.op() != "Enter") continue;
    ++enters;
    EXPECT_EQ(node.attr().at("frame_name").s(), "w");
    EXPECT_EQ(node.attr().at("parallel_iterations").i(), 7);
  }
  EXPECT_EQ(enters, 2);
  // What the body passes on unchanged does not go round.
  EXPECT_FALSE(nodes["w/enter_0"].attr().at("is_constant").b());
  EXPECT_TRUE(nodes["w/enter_1"].attr().at("is_constant").b());
  EXPECT_EQ(nodes.count("w/exit_0"), 1u);
  EXPECT_EQ(nodes.count("w/exit_1"), 0u);
  EXPECT_EQ(nodes["w"].input(1), "x");
  // A constant of the body is in the loop.
  ASSERT_EQ(nodes["w/body/one"].input_size(), 1);
  EXPECT_EQ(nodes["w/body/one"].input(0), "^w/pivot");
  Graph graph;
  EXPECT_TRUE(ImportGraphDef(*lowered, {}, &graph).ok());
}

TEST(LowerFunctionsTest, AnIfBecomesSwitchesAndMerges) {
  auto lowered = Lower(Parse(If("Pass", "Three")));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  auto nodes = NodesOf(*lowered);
  EXPECT_EQ(nodes["if"].op(), "IdentityN");
  ASSERT_EQ(nodes["if/merge_0"].input_size(), 2);
  EXPECT_EQ(nodes["if/merge_0"].input(0), "if/else/three:0");
  EXPECT_EQ(nodes["if/merge_0"].input(1), "if/switch_0:1");
  EXPECT_EQ(nodes["if/else/three"].input(0), "^if/else_pivot");
  // What the node waits for, its branches wait for.
  EXPECT_EQ(nodes["if/pred"].input(1), "^x");
  Graph graph;
  EXPECT_TRUE(ImportGraphDef(*lowered, {}, &graph).ok());
}

TEST(LowerFunctionsTest, OnlyWhatIsWantedIsLowered) {
  const GraphDef def = Parse(std::string(kWhile) + If("Pass", "Three"));
  auto lowered = LowerFunctionalOps(def, *OpRegistry::Global(),
                                    [](const NodeDef& node) { return node.op() == "If"; });
  ASSERT_TRUE(lowered.ok());
  auto nodes = NodesOf(*lowered);
  EXPECT_EQ(nodes["w"].op(), "While");
  EXPECT_EQ(nodes["if"].op(), "IdentityN");
  EXPECT_EQ(lowered->library().function_size(), def.library().function_size());
}

TEST(LowerFunctionsTest, NamesThatAreTakenAreAvoided) {
  auto lowered = Lower(Parse(std::string(kWhile) +
                             "node { name: 'w/body/a' op: 'NoOp' } node { name: 'w/pivot' op: "
                             "'NoOp' }"));
  ASSERT_TRUE(lowered.ok());
  std::set<std::string> names;
  for (const NodeDef& node : lowered->node()) EXPECT_TRUE(names.insert(node.name()).second);
  Graph graph;
  EXPECT_TRUE(ImportGraphDef(*lowered, {}, &graph).ok());
}

TEST(LowerFunctionsTest, WhatCannotBePutInIsRefusedByName) {
  struct Case {
    const char* what;
    std::string nodes;
    absl::StatusCode code;
    const char* says;
  };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const Case cases[] = {
      {"recursion", Call("Endless"), kInvalid, "Endless"},
      {"a missing function", Call("Nobody"), absl::StatusCode::kNotFound, "Nobody"},
      {"a missing branch", If("Pass", "Nobody"), absl::StatusCode::kNotFound, "Nobody"},
      {"too few arguments", Call("LessThan"), kInvalid, "Less"},
      {"a result of another type", If("Pass", "LessThan"), kInvalid, "Less"},
  };
  for (const Case& c : cases) {
    auto lowered = Lower(Parse(c.nodes));
    EXPECT_EQ(lowered.status().code(), c.code) << c.what << ": " << lowered.status();
    EXPECT_THAT(std::string(lowered.status().message()), HasSubstr(c.says)) << c.what;
    EXPECT_THAT(std::string(lowered.status().message()), HasSubstr("node '")) << c.what;
  }
  GraphDef def = Parse(kWhile);
  def.mutable_node(2)->mutable_attr()->erase("body");
  EXPECT_EQ(Lower(def).status().code(), kInvalid);
  def = Parse(kWhile);
  (*def.mutable_node(2)->mutable_attr())["cond"].mutable_func()->set_name("Step");
  EXPECT_EQ(Lower(def).status().code(), kInvalid);
}

}  // namespace
}  // namespace troupe

// Graphs that hold ops which nobody has registered here.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/function_body.h"
#include "graph/gradients/add_gradients.h"
#include "graph/graph_def.h"
#include "graph/passes/prune.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Code = absl::StatusCode;

GraphDef Text(const std::string& text) {
  GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

std::string Type(const char* name, const char* type) {
  return std::string(" attr { key: '") + name + "' value { type: " + type + " } } ";
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

/// x -> y = Neg(x); Loader gives a float and an int32; a saver that takes y.
std::string Training() {
  return "node { name: 'x' op: 'Placeholder' " + Type("dtype", "DT_FLOAT") +
         "} node { name: 'y' op: 'Neg' input: 'x' " + Type("T", "DT_FLOAT") +
         "} node { name: 'load' op: 'Loader' } "
         "node { name: 'scaled' op: 'Mul' input: 'load:1' input: 'y' " +
         Type("T", "DT_FLOAT") + "} node { name: 'label' op: 'Neg' input: 'load:3' " +
         Type("T", "DT_INT32") +
         "} node { name: 'save' op: 'Saver' input: 'y' input: 'load:2' input: '^label' } "
         "node { name: 'saved' op: 'NoOp' input: '^save' } versions { producer: 27 }";
}

class UnknownOpsTest : public testing::Test {
 protected:
  void Import(const std::string& text, const ImportOptions& options = {}) {
    const absl::Status status = ImportGraphDef(Text(text), options, graph_.get());
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::Status Step(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
                    const std::vector<std::string>& targets = {}) {
    std::vector<Output> fed, fetched;
    std::vector<Node*> nodes;
    for (const std::string& name : feeds) fed.push_back(graph_->FindOutput(name).value());
    for (const std::string& name : fetches) fetched.push_back(graph_->FindOutput(name).value());
    for (const std::string& name : targets) nodes.push_back(graph_->FindNode(name));
    return Prune(*graph_, fed, fetched, nodes).status();
  }
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

TEST_F(UnknownOpsTest, ComeAlongAndTakeTheirTypesFromThoseThatTakeThem) {
  Import(Training());
  const Node* load = graph_->FindNode("load");
  ASSERT_NE(load, nullptr);
  EXPECT_FALSE(load->op_known());
  EXPECT_EQ(load->op(), "Loader");
  EXPECT_EQ(load->op_def().name(), "Loader");
  EXPECT_EQ(load->num_outputs(), 4);
  EXPECT_EQ(load->output_type(1), ElementType::kFloat);
  EXPECT_EQ(load->output_type(2), ElementType::kInvalid) << "only an unknown op takes it";
  EXPECT_EQ(load->output_type(3), ElementType::kInt32);
  EXPECT_TRUE(load->output_shape(1).unknown_rank());
  // Known ops behind it go by their own attributes.
  EXPECT_TRUE(graph_->FindNode("label")->op_known());
  EXPECT_EQ(graph_->FindNode("label")->output_type(0), ElementType::kInt32);
  EXPECT_EQ(graph_->FindNode("save")->num_inputs(), 2);
  EXPECT_EQ(graph_->FindNode("save")->control_inputs().size(), 1u);
  // Whether it has more outputs is not known.
  EXPECT_TRUE(graph_->FindOutput("load:100").ok());
  EXPECT_EQ(graph_->FindOutput("load:100")->type(), ElementType::kInvalid);
  EXPECT_EQ(graph_->FindOutput("load:1000000000").status().code(), Code::kInvalidArgument);
}

TEST_F(UnknownOpsTest, StepsThatNeedThemAreRefusedWithAllOfThemNamed) {
  Import(Training() + "node { name: 'again' op: 'Saver' input: 'label' }" +
         "node { name: 'z' op: 'Zip' input: 'save' input: 'again' }");
  EXPECT_TRUE(Step({"x"}, {"y"}).ok()) << "it needs none";
  const absl::Status status = Step({"x"}, {"scaled"}, {"z"});
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("Loader (node 'load'), Saver (node '"));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("and 1 more), Zip (node 'z')")));
  EXPECT_EQ(Step({}, {}, {"saved"}).code(), Code::kNotFound) << "behind a control edge";
  EXPECT_EQ(Step({}, {"save"}).code(), Code::kNotFound) << "an output that nobody takes";
  EXPECT_EQ(Step({}, {"load:17"}).code(), Code::kNotFound);
}

TEST_F(UnknownOpsTest, WhatTheyGiveCanBeFed) {
  Import(Training());
  EXPECT_TRUE(Step({"x", "load:1"}, {"scaled"}).ok());
  EXPECT_EQ(graph_->FindOutput("load:1")->type(), ElementType::kFloat);
  const absl::Status status = Step({"load:2"}, {"y"});
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(Message(status), HasSubstr("its type is not known"));
}

TEST_F(UnknownOpsTest, AreExportedByteForByte) {
  const std::string odd =
      "node { name: 'p' op: 'Placeholder' " + Type("dtype", "DT_FLOAT") +
      " attr { key: 'shape' "
      "value { shape { unknown_rank: true } } } }"
      "node { name: 'u' op: 'Odd' input: 'p:0' input: 'v:1' input: '^p' device: '/device:TPU:0' "
      "attr { key: '_output_shapes' value { list { shape { dim { size: 3 } } } } } "
      "attr { key: 'f' value { func { name: 'g' attr { key: 'T' value { i: 1 } } } } } "
      "attr { key: 'p' value { placeholder: 'q' } } attr { key: 'e' value { list {} } } "
      "experimental_debug_info { original_node_names: 'w' } }"
      "node { name: 'v' op: 'Odder' input: '^p' }";
  Import(odd);
  GraphDef out;
  graph_->ToGraphDef(&out);
  const GraphDef in = Text(odd);
  ASSERT_EQ(out.node_size(), 3);
  for (const NodeDef& node : out.node()) {
    for (const NodeDef& was : in.node()) {
      if (was.name() == node.name()) {
        EXPECT_EQ(node.ShortDebugString(), was.ShortDebugString());
      }
    }
  }
  // With other names the inputs follow.
  Import(odd, {.prefix = "again"});
  graph_->ToGraphDef(&out);
  const NodeDef& u = out.node(5);
  EXPECT_EQ(u.name(), "again/u");
  EXPECT_THAT(u.input(), testing::ElementsAre("again/p", "again/v:1", "^again/p"));
}

TEST_F(UnknownOpsTest, HostileGraphsAreRefused) {
  const std::pair<std::string, const char*> cases[] = {
      {"node { name: 'u' op: 'Odd' } node { name: 'n' op: 'Odd' input: 'u:2147483647' }", "u"},
      {"node { name: 'u' op: 'Odd' } node { name: 'n' op: 'Odd' input: 'u:65536' }", "65536"},
      {"node { name: 'u' op: 'Odd' } node { name: 'a' op: 'Neg' input: 'u' " +
           Type("T", "DT_FLOAT") + "} node { name: 'b' op: 'Neg' input: 'u' " +
           Type("T", "DT_INT32") + "}",
       "input 0 should be int32 but 'u:0' is float"},
      {"node { name: 'u' op: 'Odd' } node { name: 'a' op: 'Mul' input: 'u' input: 'u' }", "'T'"},
      {"node { name: 'u' op: 'Odd' input: 'u' }", "cycle"},
      {"node { name: 'u' op: 'Odd' input: 'nobody' }", "nobody"},
      {"node { name: 'u' op: 'Odd' input: '^u' input: 'u' }", "after control"},
      {"node { name: 'u' op: '' }", "op"},
  };
  for (const auto& [text, words] : cases) {
    const absl::Status status = ImportGraphDef(Text(text), {}, graph_.get());
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(Message(status), HasSubstr(words));
    EXPECT_EQ(graph_->num_nodes(), 2) << "nothing stays of what is refused: " << text;
  }
}

TEST_F(UnknownOpsTest, ReferencesAreSeenByThoseThatTakeThem) {
  Import("node { name: 'u' op: 'Odd' } node { name: 'c' op: 'Identity' input: 'u' " +
         Type("T", "DT_FLOAT") + "} node { name: 'a' op: 'Assign' input: 'u' input: 'c' " +
         Type("T", "DT_FLOAT") + "}");
  EXPECT_EQ(graph_->FindNode("u")->output_type(0), MakeRefType(ElementType::kFloat));
}

TEST_F(UnknownOpsTest, NodesCanBeAddedBehindThem) {
  Import(Training());
  const Output scaled = graph_->FindOutput("load:1").value();
  absl::StatusOr<Node*> neg = graph_->AddNode(NodeSpec("Neg", "n").Input(scaled));
  ASSERT_TRUE(neg.ok()) << neg.status();
  EXPECT_EQ((*neg)->output_type(0), ElementType::kFloat);
  const Output fresh = graph_->FindOutput("load:9").value();
  EXPECT_EQ(graph_->AddNode(NodeSpec("Neg", "m").Input(fresh)).status().code(),
            Code::kInvalidArgument)
      << "of which type?";
  ASSERT_TRUE(
      graph_->AddNode(NodeSpec("Neg", "m").Input(fresh).Attr("T", ElementType::kDouble)).ok());
  EXPECT_EQ(fresh.type(), ElementType::kDouble);
  // Ops that are asked for by name must be there.
  EXPECT_EQ(graph_->AddNode(NodeSpec("Loader", "l")).status().code(), Code::kNotFound);
}

TEST_F(UnknownOpsTest, LaterImportsMayTakeMoreOfTheirOutputs) {
  Import(Training());
  ImportOptions options;
  options.input_map["load:7"] = graph_->FindOutput("load:7").value();
  Import("node { name: 'w' op: 'Neg' input: 'load:7' " + Type("T", "DT_FLOAT") + "}", options);
  EXPECT_EQ(graph_->FindNode("load")->num_outputs(), 8);
  EXPECT_EQ(graph_->FindNode("load")->output_type(7), ElementType::kFloat);
}

TEST_F(UnknownOpsTest, InsideFunctionsThatAStepCalls) {
  const std::string body = " ret { key: 'r' value: 'n:y:0' } ";
  const std::string signature =
      " input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'r' type: DT_FLOAT } } ";
  const std::string neg =
      "node_def { name: 'n' op: 'Neg' input: 'a' " + Type("T", "DT_FLOAT") + "}";
  Import("library { function { signature { name: 'Inner' " + signature + neg + body +
         "  node_def { name: 'log' op: 'Logger' input: 'n:y:0' } }"
         " function { signature { name: 'Outer' " +
         signature + neg +
         " ret { key: 'r' "
         "value: 'c:r:0' } node_def { name: 'c' op: 'Inner' input: 'n:y:0' } }"
         " function { signature { name: 'Plain' " +
         signature + neg + body +
         "}"
         " function { signature { name: 'Unused' " +
         signature + neg + body +
         "  node_def { name: 'x' op: 'Never' } } }"
         "node { name: 'x' op: 'Placeholder' " +
         Type("dtype", "DT_FLOAT") +
         "} node { name: 'outer' op: 'Outer' input: 'x' } node { name: 'plain' op: 'Plain' "
         "input: 'x' } node { name: 'call' op: 'PartitionedCall' input: 'x' "
         "attr { key: 'f' value { func { name: 'Outer' } } } "
         "attr { key: 'Tin' value { list { type: DT_FLOAT } } } "
         "attr { key: 'Tout' value { list { type: DT_FLOAT } } } }");
  EXPECT_TRUE(Step({"x"}, {"plain"}).ok());
  for (const char* fetch : {"outer", "call"}) {
    const absl::Status status = Step({"x"}, {fetch});
    EXPECT_EQ(status.code(), Code::kNotFound) << fetch;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("Logger (node 'log' of function 'Inner')"),
                                       Not(HasSubstr("Never"))));
  }
}

TEST_F(UnknownOpsTest, GradientsThroughThemAreRefused) {
  Import("node { name: 'x' op: 'Placeholder' " + Type("dtype", "DT_FLOAT") +
         "} node { name: 'u' op: 'Odd' input: 'x' } node { name: 'v' op: 'Odder' input: 'u' }"
         "node { name: 'y' op: 'Neg' input: 'v' " +
         Type("T", "DT_FLOAT") + "} node { name: 'other' op: 'Neg' input: 'x' " +
         Type("T", "DT_FLOAT") + "}");
  std::vector<Output> grads;
  const Output x = graph_->FindOutput("x").value();
  const absl::Status status =
      AddSymbolicGradients({graph_->FindOutput("y").value()}, {x}, {}, &grads);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("'v'"), HasSubstr("Odder"), HasSubstr("register")));
  EXPECT_EQ(AddSymbolicGradients({graph_->FindOutput("u").value()}, {x}, {}, &grads).code(),
            Code::kNotFound);
  EXPECT_TRUE(AddSymbolicGradients({graph_->FindOutput("other").value()}, {x}, {}, &grads).ok());
}

TEST_F(UnknownOpsTest, CannotBePutIntoAFunction) {
  Import(Training());
  const absl::StatusOr<FunctionDef> function =
      GraphToFunctionDef(*graph_, "F", {}, {graph_->FindOutput("scaled").value()}, {});
  EXPECT_EQ(function.status().code(), Code::kNotFound);
  EXPECT_THAT(Message(function.status()), HasSubstr("Loader"));
}

}  // namespace
}  // namespace troupe

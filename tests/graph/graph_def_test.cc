#include "graph/graph_def.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "graph/protos/graph.pb.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {
namespace {

using Code = absl::StatusCode;

/// A few ops of our own, so that the tests do not depend on which ones are registered.
const OpRegistry* Ops() {
  static OpRegistry* registry = [] {
    auto* r = new OpRegistry;
    r->Register(
        OpDefBuilder("In").Output("y: T").Attr("T: type = DT_FLOAT").SetShapeFn(ScalarShape));
    r->Register(
        OpDefBuilder("Id").Input("x: T").Output("y: T").Attr("T: type").SetShapeFn(UnchangedShape));
    r->Register(OpDefBuilder("Add2")
                    .Input("x: T")
                    .Input("y: T")
                    .Output("z: T")
                    .Attr("T: {float, int32}")
                    .SetShapeFn(MergeInputsShape));
    r->Register(OpDefBuilder("Var").Output("v: Ref(float)"));
    r->Register(
        OpDefBuilder("Set").Input("v: Ref(float)").Input("x: float").Output("o: Ref(float)"));
    r->Register(OpDefBuilder("Nop"));
    r->Register(OpDefBuilder("Many").Input("x: N * float").Attr("N: int >= 2"));
    r->Register(OpDefBuilder("Mode")
                    .Attr("m: {'A', 'B'} = 'A'")
                    .Attr("s: shape = {}")
                    .Attr("l: list(int) >= 1 = [1]"));
    r->Register(OpDefBuilder("Gone").Deprecated(10, "Use Id."));
    r->Register(OpDefBuilder("Merge")
                    .Input("inputs: N * T")
                    .Output("output: T")
                    .Output("index: int32")
                    .Attr("T: type")
                    .Attr("N: int >= 1"));
    r->Register(OpDefBuilder("Enter")
                    .Input("data: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("frame_name: string"));
    r->Register(OpDefBuilder("NextIteration").Input("data: T").Output("output: T").Attr("T: type"));
    return r;
  }();
  return registry;
}

GraphDef Text(const std::string& text) {
  GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

absl::Status Import(const std::string& text, Graph* graph, const ImportOptions& options = {}) {
  return ImportGraphDef(Text(text), options, graph);
}

constexpr char kFloat[] = " attr { key: 'T' value { type: DT_FLOAT } } ";

TEST(ImportGraphDef, AnyOrder) {
  Graph graph(Ops());
  ASSERT_TRUE(Import(std::string("node { name: 'b' op: 'Id' input: 'a' input: '^n' ") + kFloat +
                         "} node { name: 'a' op: 'In' } node { name: 'n' op: 'Nop' }",
                     &graph)
                  .ok());
  Node* b = graph.FindNode("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->input(0).name(), "a:0");
  EXPECT_EQ(b->control_inputs()[0]->name(), "n");
  EXPECT_EQ(b->output_shape(0), PartialShape({}));
  EXPECT_EQ(graph.FindNode("a")->attrs().Get<ElementType>("T").value(), ElementType::kFloat);
}

TEST(ImportGraphDef, RoundTrip) {
  Graph graph(Ops());
  ASSERT_TRUE(Import(std::string("node { name: 'a' op: 'In' device: '/cpu:0' } "
                                 "node { name: 'b' op: 'Add2' input: 'a' input: 'a' ") +
                         kFloat + "} versions { producer: 20 }",
                     &graph)
                  .ok());
  EXPECT_EQ(graph.producer(), 20);
  GraphDef def;
  graph.ToGraphDef(&def);
  Graph again(Ops());
  ASSERT_TRUE(ImportGraphDef(def, {}, &again).ok());
  EXPECT_EQ(again.num_nodes(), graph.num_nodes());
  EXPECT_EQ(again.FindNode("a")->requested_device(), "/cpu:0");
}

TEST(ImportGraphDef, Loops) {
  const std::string loop = std::string("node { name: 'a' op: 'In' } ") +
                           "node { name: 'm' op: 'Merge' input: 'a' input: 'next'"
                           "  attr { key: 'N' value { i: 2 } }" +
                           kFloat + "} node { name: 'i' op: 'Id' input: 'm'" + kFloat +
                           "} node { name: 'next' op: 'NextIteration' input: 'i'" + kFloat + "}";
  Graph graph(Ops());
  const absl::Status status = Import(loop, &graph);
  ASSERT_TRUE(status.ok()) << status;
  Node* merge = graph.FindNode("m");
  EXPECT_EQ(merge->input(1).name(), "next:0");
  EXPECT_EQ(graph.FindNode("next")->out_edges().size(), 1u);
  GraphDef def;
  graph.ToGraphDef(&def);
  Graph again(Ops());
  EXPECT_TRUE(ImportGraphDef(def, {}, &again).ok());
}

TEST(ImportGraphDef, Options) {
  Graph graph(Ops());
  Node* x = graph.AddNode(NodeSpec("In", "x")).value();
  ASSERT_TRUE(graph.AddNode(NodeSpec("Nop", "first")).ok());
  ImportOptions options;
  options.prefix = "p";
  options.input_map["a:0"] = x;
  options.control_dependencies = {"first"};
  options.default_device = "/cpu:1";
  const std::string def = std::string("node { name: 'a' op: 'In' } node { name: 'b' op: 'Id' ") +
                          "input: 'a' attr { key: '_class' value { list { s: 'loc:@a' } } }" +
                          kFloat + "}";
  ASSERT_TRUE(Import(def, &graph, options).ok());
  Node* b = graph.FindNode("p/b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->input(0), Output(x));
  EXPECT_EQ(b->requested_device(), "/cpu:1");
  EXPECT_EQ(b->attrs().Get<std::vector<std::string>>("_class").value()[0], "loc:@p/a");
  EXPECT_EQ(graph.FindNode("p/a")->control_inputs().size(), 1u);
  EXPECT_EQ(Import(def, &graph, options).code(), Code::kInvalidArgument);  // names are taken
  options.uniquify_names = true;
  ASSERT_TRUE(Import(def, &graph, options).ok());
  EXPECT_NE(graph.FindNode("p/b_1"), nullptr);
}

TEST(ImportGraphDef, LoopsThatAreImportedTwiceAreTwo) {
  const std::string def =
      std::string("node { name: 'a' op: 'In' } node { name: 'e' op: 'Enter' input: 'a' attr { ") +
      "key: 'frame_name' value { s: 'loop' } }" + kFloat + "}";
  Graph graph(Ops());
  const auto frame = [&](const char* name) {
    return graph.FindNode(name)->attrs().Get<std::string>("frame_name").value();
  };
  ImportOptions options;
  ASSERT_TRUE(Import(def, &graph, options).ok());
  options.uniquify_names = true;
  ASSERT_TRUE(Import(def, &graph, options).ok());
  options.prefix = "p";
  ASSERT_TRUE(Import(def, &graph, options).ok());
  ASSERT_TRUE(Import(def, &graph, options).ok());
  EXPECT_EQ(frame("e"), "loop");
  EXPECT_EQ(frame("e_1"), "loop_1");
  EXPECT_EQ(frame("p/e"), "p/loop");
  EXPECT_EQ(frame("p/e_1"), "p/loop_1");
}

TEST(ImportGraphDef, NotedShapesAreUsed) {
  Graph graph(Ops());
  const std::string noted =
      "node { name: 'v' op: 'Var' attr { key: '_output_shapes' value { list { shape { dim { size: "
      "2 "
      "} } } } } }";
  ASSERT_TRUE(Import(noted, &graph).ok());
  EXPECT_EQ(graph.FindNode("v")->output_shape(0), PartialShape({2}));
  EXPECT_FALSE(graph.FindNode("v")->attrs().Has("_output_shapes"));
}

struct Bad {
  const char* what;
  std::string def;
  Code code = Code::kInvalidArgument;
};

std::vector<Bad> BadDefs() {
  const std::string a = "node { name: 'a' op: 'In' } ";
  const std::string t = kFloat;
  const std::string ints = " attr { key: 'T' value { type: DT_INT32 } } ";
  return {
      {"no op", "node { name: 'a' }"},
      {"no name", "node { op: 'In' }"},
      {"bad name", "node { name: 'a b' op: 'In' }"},
      {"bad name", "node { name: '_a' op: 'In' }"},
      {"bad name", "node { name: 'a:0' op: 'In' }"},
      {"bad name", "node { name: '^a' op: 'In' }"},
      {"bad name", "node { name: 'a>' op: 'In' }"},
      {"twice", a + a},
      {"removed op", "node { name: 'a' op: 'Gone' } versions { producer: 10 }",
       Code::kUnimplemented},
      {"unknown input", "node { name: 'b' op: 'Id' input: 'a'" + t + "}"},
      {"unknown control", "node { name: 'b' op: 'Nop' input: '^a' }"},
      {"port", a + "node { name: 'b' op: 'Id' input: 'a:1'" + t + "}"},
      {"port", a + "node { name: 'b' op: 'Id' input: 'a:-1'" + t + "}"},
      {"port", a + "node { name: 'b' op: 'Id' input: 'a:99999999999999999999'" + t + "}"},
      {"port", a + "node { name: 'b' op: 'Id' input: 'a:x'" + t + "}"},
      {"empty input", a + "node { name: 'b' op: 'Id' input: ''" + t + "}"},
      {"empty control", a + "node { name: 'b' op: 'Nop' input: '^' }"},
      {"control port", a + "node { name: 'b' op: 'Nop' input: '^a:0' }"},
      {"control first", a + "node { name: 'b' op: 'Id' input: '^a' input: 'a'" + t + "}"},
      {"too few", a + "node { name: 'b' op: 'Add2' input: 'a'" + t + "}"},
      {"too many", a + "node { name: 'b' op: 'Id' input: 'a' input: 'a'" + t + "}"},
      {"type", a + "node { name: 'b' op: 'Id' input: 'a'" + ints + "}"},
      {"no type", a + "node { name: 'b' op: 'Id' input: 'a' }"},
      {"type not allowed",
       "node { name: 'a' op: 'In' attr { key: 'T' value { type: DT_BOOL } } } "
       "node { name: 'b' op: 'Add2' input: 'a' input: 'a' attr { key: 'T' "
       "value { type: DT_BOOL } } }"},
      {"invalid type", "node { name: 'a' op: 'In' attr { key: 'T' value { type: DT_INVALID } } }"},
      {"reference type",
       "node { name: 'a' op: 'In' attr { key: 'T' value { type: DT_FLOAT_REF } } }"},
      {"kind", "node { name: 'a' op: 'In' attr { key: 'T' value { i: 1 } } }"},
      {"kind", "node { name: 'a' op: 'In' attr { key: 'T' value { } } }"},
      {"kind", "node { name: 'a' op: 'In' attr { key: 'T' value { list { type: DT_FLOAT } } } }"},
      {"placeholder", "node { name: 'a' op: 'In' attr { key: 'T' value { placeholder: 'T' } } }"},
      {"text not allowed", "node { name: 'a' op: 'Mode' attr { key: 'm' value { s: 'C' } } }"},
      {"list too short", "node { name: 'a' op: 'Mode' attr { key: 'l' value { list { } } } }"},
      {"list of others", "node { name: 'a' op: 'Mode' attr { key: 'l' value { list { f: 1 } } } }"},
      {"negative shape",
       "node { name: 'a' op: 'Mode' attr { key: 's' value { shape { dim { size: "
       "-2 } } } } }"},
      {"below minimum",
       a + "node { name: 'b' op: 'Many' input: 'a' attr { key: 'N' value { i: 1 } } }"},
      {"negative number", "node { name: 'b' op: 'Many' attr { key: 'N' value { i: -5 } } }"},
      {"huge number",
       "node { name: 'b' op: 'Many' attr { key: 'N' value { i: 9223372036854775807 } } }"},
      {"value as reference", a + "node { name: 'b' op: 'Set' input: 'a' input: 'a' }"},
      {"self", "node { name: 'b' op: 'Id' input: 'b'" + t + "}"},
      {"control cycle",
       "node { name: 'b' op: 'Nop' input: '^c' } node { name: 'c' op: 'Nop' input: '^b' }"},
      {"cycle", "node { name: 'b' op: 'Id' input: 'c'" + t +
                    "} node { name: 'c' op: 'Id' input: 'b'" + t + "}"},
      {"merge cycle without iteration",
       a + "node { name: 'm' op: 'Merge' input: 'a' input: 'i' attr { key: 'N' value { i: 2 } }" +
           t + "} node { name: 'i' op: 'Id' input: 'm'" + t + "}"},
      {"loop that is never entered",
       "node { name: 'm' op: 'Merge' input: 'n' attr { key: 'N' value { i: 1 } }" + t +
           "} node { name: 'n' op: 'NextIteration' input: 'm'" + t + "}"},
      {"back edge port",
       a + "node { name: 'm' op: 'Merge' input: 'a' input: 'n:3' attr { key: 'N' value { i: 2 } }" +
           t + "} node { name: 'n' op: 'NextIteration' input: 'm'" + t + "}"},
      {"back edge into another op", "node { name: 'b' op: 'Id' input: 'n'" + t +
                                        "} node { name: 'n' op: 'NextIteration' input: 'b'" + t +
                                        "}"},
      {"colocated with nobody",
       "node { name: 'a' op: 'In' attr { key: '_class' value { list { s: 'loc:@z' } } } }"},
      {"too new", a + "versions { producer: 99999 min_consumer: 99999 }"},
      {"negative version", a + "versions { producer: -1 }"},
      {"shape contradicts",
       "node { name: 'a' op: 'In' attr { key: '_output_shapes' value { list { "
       "shape { dim { size: 2 } } } } } }"},
      {"function named as an op", "library { function { signature { name: 'Id' } } }"},
      {"function without a name", "library { function { signature { } } }"},
      {"two functions of one name",
       "library { function { signature { name: 'F' } } function { signature { name: 'F' "
       "is_stateful: "
       "true } } }"},
      {"two gradients",
       "library { gradient { function_name: 'F' gradient_func: 'G' } gradient { "
       "function_name: 'F' gradient_func: 'H' } }"},
  };
}

TEST(ImportGraphDef, RefusesBadDefinitionsAndLeavesNothingBehind) {
  for (const Bad& bad : BadDefs()) {
    Graph graph(Ops());
    Node* old = graph.AddNode(NodeSpec("Nop", "old")).value();
    GraphDef def = Text(bad.def);
    NodeDef* good = def.add_node();  // comes before some of the bad ones
    good->set_name("good");
    good->set_op("Nop");
    ImportOptions options;
    options.control_dependencies = {"old"};
    const absl::Status status = ImportGraphDef(def, options, &graph);
    EXPECT_EQ(status.code(), bad.code) << bad.what << ": " << status;
    EXPECT_FALSE(status.message().empty()) << bad.what;
    EXPECT_EQ(graph.num_nodes(), 3) << bad.what;
    EXPECT_TRUE(old->out_edges().empty()) << bad.what;
    EXPECT_EQ(graph.FindNode("good"), nullptr) << bad.what;
    EXPECT_EQ(graph.library().function_size() + graph.library().gradient_size(), 0) << bad.what;
  }
}

TEST(ImportGraphDef, UnknownAttributesAndOldVersionsAreAccepted) {
  Graph graph(Ops());
  EXPECT_TRUE(
      Import("node { name: 'a' op: 'Gone' attr { key: 'what' value { i: 1 } } }", &graph).ok());
}

TEST(ImportGraphDef, ACallOfAFunctionWithoutBodyIsRefused) {
  Graph graph(Ops());
  EXPECT_EQ(Import("node { name: 'a' op: 'In' } node { name: 'f' op: 'F' input: 'a' } library { "
                   "function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
                   "output_arg { name: 'y' type: DT_INT32 } } } }",
                   &graph)
                .code(),
            Code::kInvalidArgument);
  EXPECT_EQ(graph.FindNode("a"), nullptr);
}

TEST(ImportGraphDef, DeepGraphsNeedNoDeepStack) {
  GraphDef def;
  constexpr int kNodes = 200000;
  // Backwards, so that every node waits for the next one.
  for (int i = kNodes - 1; i >= 0; --i) {
    NodeDef* node = def.add_node();
    node->set_name("n" + std::to_string(i));
    node->set_op("Nop");
    if (i > 0) node->add_input("^n" + std::to_string(i - 1));
  }
  Graph graph(Ops());
  EXPECT_TRUE(ImportGraphDef(def, {}, &graph).ok());
  EXPECT_EQ(graph.num_nodes(), kNodes + 2);
  def.mutable_node(kNodes - 1)->add_input("^n" + std::to_string(kNodes - 1));
  Graph other(Ops());
  EXPECT_EQ(ImportGraphDef(def, {}, &other).code(), Code::kInvalidArgument);
}

TEST(ParseGraphDef, TellsTextFromBinary) {
  const GraphDef def = Text("node { name: 'a' op: 'In' } versions { producer: 3 }");
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(def, &text));
  for (const std::string& bytes : {text, def.SerializeAsString()}) {
    GraphDef parsed;
    ASSERT_TRUE(ParseGraphDef(bytes, &parsed).ok());
    EXPECT_EQ(parsed.node(0).name(), "a");
    EXPECT_EQ(parsed.versions().producer(), 3);
  }
  GraphDef empty;
  EXPECT_TRUE(ParseGraphDef("", &empty).ok());
}

TEST(ParseGraphDef, RefusesWhatIsNone) {
  const std::string good =
      Text("node { name: 'some_name' op: 'SomeOp' input: 'x' input: 'y' }").SerializeAsString();
  std::vector<std::string> bad = {
      "nonsense",
      "node { name: 'a'",
      "node { name: 3 }",
      "node: 7",
      std::string("\x00\x00\x00", 3),
      std::string("\x0a\xff\xff\xff\xff\x07", 6),
      std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff", 9),
      std::string(100, '\xff'),
      std::string("\x0a\x03\x0a\x01\xff", 5),  // a name that is no UTF-8
  };
  for (size_t size = 2; size < good.size(); ++size) bad.push_back(good.substr(0, size));
  // Messages in messages without end, in both forms.
  std::string deep_text = "node { name: 'a' op: 'B' attr { key: 'f' value { ";
  for (int i = 0; i < 10000; ++i) deep_text += "func { attr { key: 'f' value { ";
  bad.push_back(deep_text);
  AttrValue value;
  value.set_i(1);
  for (int i = 0; i < 200; ++i) {
    AttrValue outer;
    (*outer.mutable_func()->mutable_attr())["f"] = value;
    value = outer;
  }
  GraphDef deep;
  (*deep.add_node()->mutable_attr())["f"] = value;
  bad.push_back(deep.SerializeAsString());
  for (const std::string& bytes : bad) {
    GraphDef def;
    const absl::Status status = ParseGraphDef(bytes, &def);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << bytes.substr(0, 60);
    EXPECT_EQ(def.node_size(), 0);
  }
}

TEST(ReadGraphDef, MissingFileIsNamed) {
  GraphDef def;
  const absl::Status status = ReadGraphDef("/no/such/file.pb", &def);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(std::string(status.message()).find("/no/such/file.pb"), std::string::npos);
}

TEST(ReadGraphDef, ADirectoryIsRefused) {
  GraphDef def;
  const absl::Status status = ReadGraphDef(testing::TempDir(), &def);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("is a directory"), std::string::npos) << status;
}

TEST(ParseGraphDef, SaysWhichOfTensorFlowsFilesItIsGiven) {
  SavedModel saved_model;
  saved_model.set_saved_model_schema_version(1);
  MetaGraphDef* meta_graph = saved_model.add_meta_graphs();
  OpDef* op = meta_graph->mutable_meta_info_def()->mutable_stripped_op_list()->add_op();
  op->set_name("Placeholder");
  op->set_description(std::string(300, 'd'));
  NodeDef* node = meta_graph->mutable_graph_def()->add_node();
  node->set_name("x");
  node->set_op("Placeholder");
  std::string text;
  for (const auto& [message, kind] :
       {std::pair<const google::protobuf::Message*, const char*>(&saved_model, "SavedModel"),
        {meta_graph, "MetaGraphDef"}}) {
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(*message, &text));
    for (const std::string& bytes : {message->SerializeAsString(), text, "# written\n\n" + text}) {
      GraphDef def;
      const absl::Status status = ParseGraphDef(bytes, &def);
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << status;
      EXPECT_NE(status.message().find(kind), std::string::npos) << status;
    }
  }
}

}  // namespace
}  // namespace troupe

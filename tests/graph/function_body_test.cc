#include "graph/function_body.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "devices/status_macros.h"
#include "graph/graph_def.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Node* Add(Graph& graph, const NodeSpec& spec) {
  absl::StatusOr<Node*> node = graph.AddNode(spec);
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? *node : nullptr;
}

/// square(x) + y, and a split of y in two.
struct Example {
  Graph graph;
  Node *x, *y, *square, *sum, *split;

  Example() {
    x = Add(graph, NodeSpec("Placeholder", "In/X").Attr("dtype", ElementType::kFloat));
    y = Add(graph, NodeSpec("Placeholder", "y").Attr("dtype", ElementType::kFloat));
    square = Add(graph, NodeSpec("Square", "square").Input(Output(x)));
    sum = Add(graph, NodeSpec("AddV2", "sum").Input(Output(square)).Input(Output(y)));
    Node* axis = Add(graph, NodeSpec("Const", "axis")
                                .Attr("dtype", ElementType::kInt32)
                                .Attr("value", Tensor::Scalar<int32_t>(0)));
    split =
        Add(graph,
            NodeSpec("Split", "split").Input(Output(axis)).Input(Output(y)).Attr("num_split", 2));
  }
  absl::StatusOr<FunctionDef> Make(const FunctionDefOptions& options = {}) const {
    return GraphToFunctionDef(graph, "F", {x, y}, {sum, Output(split, 1), y}, options);
  }
};

absl::StatusOr<FunctionBody> Instantiate(const FunctionDefLibrary& library,
                                         const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return InstantiateFunction(FunctionLibrary(library, *OpRegistry::Global()), function, 1000);
}

TEST(FunctionBodyTest, AGraphBecomesAFunctionAndAGraphAgain) {
  Example e;
  auto def = e.Make();
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_EQ(def->signature().input_arg(0).name(), "in_x");
  EXPECT_EQ(def->signature().output_arg_size(), 3);
  EXPECT_FALSE(def->signature().is_stateful());
  FunctionDefLibrary library;
  *library.add_function() = *def;
  auto body = Instantiate(library, "F");
  ASSERT_TRUE(body.ok()) << body.status();
  ASSERT_EQ(body->args.size(), 2u);
  ASSERT_EQ(body->results.size(), 3u);
  EXPECT_EQ(body->results[0].node->op(), "AddV2");
  EXPECT_EQ(body->results[1].name(), "split:1");
  EXPECT_EQ(body->results[2], body->args[1]);
  EXPECT_TRUE(body->effects.empty());
}

TEST(FunctionBodyTest, ArgAndRetvalNodesMarkTheEnds) {
  Graph graph;
  Node* a = Add(graph, NodeSpec("_Arg", "a").Attr("T", ElementType::kInt32).Attr("index", 0));
  Node* neg = Add(graph, NodeSpec("Neg", "neg").Input(Output(a)));
  Add(graph, NodeSpec("_Retval", "r").Input(Output(neg)).Attr("index", 0));
  Node* effect = Add(graph, NodeSpec("Assert", "check")
                                .Input(Output(Add(graph, NodeSpec("Const", "true")
                                                             .Attr("dtype", ElementType::kBool)
                                                             .Attr("value", Tensor::Scalar(true)))))
                                .Input(absl::Span<const Output>({Output(a)})));
  auto def = GraphToFunctionDef(graph, "G");
  ASSERT_TRUE(def.ok()) << def.status();
  EXPECT_TRUE(def->signature().is_stateful());
  EXPECT_EQ(def->control_ret().count(effect->name()), 1u);
  Add(graph, NodeSpec("_Retval", "r3").Input(Output(neg)).Attr("index", 2));
  EXPECT_EQ(GraphToFunctionDef(graph, "G").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FunctionBodyTest, LibrariesSurviveExportAndImport) {
  Example e;
  FunctionDefLibrary library;
  *library.add_function() = *e.Make();
  GradientDef* gradient = library.add_gradient();
  gradient->set_function_name("F");
  gradient->set_gradient_func("F");
  Graph first, second;
  ASSERT_TRUE(first.AddLibrary(library).ok());
  GraphDef exported;
  first.ToGraphDef(&exported);
  ASSERT_TRUE(ImportGraphDef(exported, {}, &second).ok());
  GraphDef again;
  second.ToGraphDef(&again);
  EXPECT_EQ(again.library().function_size(), 1);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(again.library(), library));
  EXPECT_TRUE(Instantiate(second.library(), "F").ok());
}

TEST(FunctionBodyTest, BadGraphsMakeNoFunction) {
  Example e;
  Graph other;
  Node* stranger = Add(other, NodeSpec("Placeholder", "s").Attr("dtype", ElementType::kFloat));
  FunctionDefOptions names;
  names.output_names = {"a", "a", "b"};
  for (const auto& made : {
           GraphToFunctionDef(e.graph, "", {e.x}, {e.square}),
           GraphToFunctionDef(e.graph, "F", {e.x, e.x}, {e.square}),
           GraphToFunctionDef(e.graph, "F", {stranger}, {e.square}),
           GraphToFunctionDef(e.graph, "F", {e.x}, {Output()}),
           GraphToFunctionDef(e.graph, "F", {e.x}, {Output(e.square, 1)}),
           e.Make(names),
       }) {
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << made.status();
  }
}

TEST(FunctionBodyTest, ErrorsNameFunctionAndNode) {
  Example e;
  struct Case {
    const char* what;
    std::function<void(FunctionDef*)> spoil;
    absl::StatusCode code;
    const char* says;
  };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const Case cases[] = {
      {"no body", [](FunctionDef* f) { f->clear_node_def(); }, kInvalid, "sum"},
      {"an unknown op", [](FunctionDef* f) { f->mutable_node_def(0)->set_op("Nothing"); },
       absl::StatusCode::kNotFound, "square"},
      {"an unknown attribute",
       [](FunctionDef* f) {
         (*f->mutable_node_def(0)->mutable_attr())["T"].set_placeholder("Unknown");
       },
       kInvalid, "Unknown"},
      {"an input from nowhere",
       [](FunctionDef* f) { f->mutable_node_def(0)->set_input(0, "ghost"); }, kInvalid, "ghost"},
      {"an output that the op lacks",
       [](FunctionDef* f) { f->mutable_node_def(1)->set_input(0, "square:z:0"); }, kInvalid,
       "square:z:0"},
      {"two nodes of one name", [](FunctionDef* f) { *f->add_node_def() = f->node_def(0); },
       kInvalid, "square"},
      {"a result from nowhere", [](FunctionDef* f) { f->clear_ret(); }, kInvalid, "result"},
      {"a control result from nowhere",
       [](FunctionDef* f) { (*f->mutable_control_ret())["c"] = "ghost"; }, kInvalid, "ghost"},
      {"a result of another type",
       [](FunctionDef* f) { f->mutable_signature()->mutable_output_arg(0)->set_type(DT_INT32); },
       kInvalid, "result 0"},
  };
  for (const Case& c : cases) {
    FunctionDefLibrary library;
    *library.add_function() = *e.Make();
    c.spoil(library.mutable_function(0));
    const absl::Status status = Instantiate(library, "F").status();
    EXPECT_EQ(status.code(), c.code) << c.what << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("function 'F'")) << c.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says)) << c.what;
  }
  EXPECT_EQ(Instantiate({}, "F").status().code(), absl::StatusCode::kNotFound);
}

TEST(FunctionBodyTest, TheGradientOfAFunctionTakesArgumentsAndGradients) {
  Example e;
  FunctionDefLibrary library;
  *library.add_function() = *GraphToFunctionDef(e.graph, "F", {e.x, e.y}, {e.sum, e.square});
  NameAttrList gradient;
  gradient.set_name("SymbolicGradient");
  (*gradient.mutable_attr())["f"].mutable_func()->set_name("F");
  auto body = InstantiateFunction(FunctionLibrary(library, *OpRegistry::Global()), gradient, 1000);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->args.size(), 4u);
  EXPECT_EQ(body->results.size(), 2u);
  (*gradient.mutable_attr())["f"].mutable_func()->set_name("Nobody");
  EXPECT_EQ(InstantiateFunction(FunctionLibrary(library, *OpRegistry::Global()), gradient, 1000)
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe

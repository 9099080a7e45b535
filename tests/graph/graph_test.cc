#include "graph/graph.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using Code = absl::StatusCode;

class GraphTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_->AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.ok() ? *node : nullptr;
  }
  absl::Status Fail(const NodeSpec& spec) {
    const int before = graph_->num_nodes();
    auto node = graph_->AddNode(spec);
    EXPECT_FALSE(node.ok()) << "accepted";
    EXPECT_EQ(graph_->num_nodes(), before);
    return node.status();
  }
  Node* Placeholder(const std::string& name, const PartialShape& shape,
                    ElementType type = ElementType::kFloat) {
    return Add(NodeSpec("Placeholder", name).Attr("dtype", type).Attr("shape", shape));
  }
  Node* Const(const std::string& name, const Tensor& value) {
    return Add(NodeSpec("Const", name).Attr("value", value).Attr("dtype", value.type()));
  }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

TEST_F(GraphTest, InfersAttributesAndShapes) {
  Node* x = Placeholder("x", {-1, 3});
  Node* y = Placeholder("y", {3, 5});
  Node* product = Add(NodeSpec("MatMul", "product").Input(x).Input(y));
  EXPECT_EQ(product->id(), 4);
  EXPECT_EQ(product->output_type(0), ElementType::kFloat);
  EXPECT_EQ(product->output_shape(0), PartialShape({-1, 5}));
  EXPECT_EQ(product->attrs().Get<ElementType>("T").value(), ElementType::kFloat);
  EXPECT_FALSE(product->attrs().Get<bool>("transpose_a").value());
  EXPECT_EQ(product->input(1), Output(y));
  EXPECT_EQ(graph_->FindNode("product"), product);
  const Output list[] = {x, x};
  Node* pack = Add(NodeSpec("Pack", "pack").Input(absl::MakeConstSpan(list)));
  EXPECT_EQ(pack->attrs().Get<int64_t>("N").value(), 2);
  EXPECT_EQ(pack->output_shape(0), PartialShape({2, -1, 3}));
  EXPECT_EQ(pack->InputRange("values"), std::make_pair(0, 2));
  EXPECT_EQ(pack->OutputRange("output"), std::make_pair(0, 1));
  EXPECT_EQ(pack->OutputRange("nothing"), std::make_pair(-1, -1));
}

TEST_F(GraphTest, RefusesWrongNodes) {
  Node* x = Placeholder("x", {2, 3});
  Node* n = Placeholder("n", {2, 3}, ElementType::kInt32);
  Graph other_graph;
  Node* other =
      other_graph.AddNode(NodeSpec("Placeholder", "o").Attr("dtype", ElementType::kFloat)).value();
  const Output list[] = {x, x};
  EXPECT_EQ(Fail(NodeSpec("NoSuchOp", "a")).code(), Code::kNotFound);
  EXPECT_EQ(Fail(NodeSpec("Neg", "x").Input(x)).code(), Code::kAlreadyExists);
  EXPECT_EQ(Fail(NodeSpec("Neg", "").Input(x)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a b").Input(x)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "_a").Input(x)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a")).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a").Input(x).Input(x)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a").Input(absl::MakeConstSpan(list))).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Pack", "a").Input(x)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a").Input(Output())).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a").Input(Output(x, 1))).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a").Input(Output(x, -1))).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Neg", "a").Input(other)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("NoOp", "a").ControlInput(other)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("NoOp", "a").ControlInput(nullptr)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Mul", "a").Input(x).Input(n)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Placeholder", "a")).code(), Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Placeholder", "a").Attr("dtype", 3)).code(), Code::kInvalidArgument);
  EXPECT_EQ(
      Fail(NodeSpec("Placeholder", "a").Attr("dtype", MakeRefType(ElementType::kFloat))).code(),
      Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("Pack", "a").Input(absl::Span<const Output>())).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Fail(NodeSpec("MatMul", "a").Input(x).Input(x).Attr("T", ElementType::kString)).code(),
            Code::kInvalidArgument);
  const absl::Status shapes = Fail(NodeSpec("MatMul", "a").Input(x).Input(x));
  EXPECT_EQ(shapes.code(), Code::kInvalidArgument);
  for (const char* part : {"'a'", "MatMul", "[2,3]"}) {
    EXPECT_NE(std::string(shapes.message()).find(part), std::string::npos) << shapes;
  }
}

TEST_F(GraphTest, FindsTensors) {
  Node* x = Placeholder("scope/x", {});
  EXPECT_EQ(graph_->FindOutput("scope/x").value(), Output(x));
  EXPECT_EQ(graph_->FindOutput("scope/x:0").value(), Output(x));
  EXPECT_EQ(graph_->FindOutput("y").status().code(), Code::kNotFound);
  for (const char* bad : {"scope/x:1", "scope/x:", "scope/x:-1", "^scope/x", "", ":0",
                          "scope/x:99999999999", "scope/x:0x"}) {
    EXPECT_EQ(graph_->FindOutput(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST_F(GraphTest, ReferencesFeedValuesButNotTheOtherWayRound) {
  Node* v = Add(NodeSpec("VariableV2", "v")
                    .Attr("shape", PartialShape({2}))
                    .Attr("dtype", ElementType::kFloat));
  EXPECT_TRUE(IsRefType(v->output_type(0)));
  Node* x = Placeholder("x", {2});
  EXPECT_NE(Add(NodeSpec("Neg", "read").Input(v)), nullptr);
  EXPECT_NE(Add(NodeSpec("Assign", "assign").Input(v).Input(x)), nullptr);
  EXPECT_EQ(Fail(NodeSpec("Assign", "bad").Input(x).Input(x)).code(), Code::kInvalidArgument);
}

TEST_F(GraphTest, ControlEdgesAreKeptOnce) {
  Node* a = Add(NodeSpec("NoOp", "a"));
  Node* b = Add(NodeSpec("NoOp", "b").ControlInput(a).ControlInput(a));
  EXPECT_EQ(b->control_inputs().size(), 1u);
  EXPECT_TRUE(graph_->AddControlEdge(a, b).ok());
  EXPECT_EQ(b->control_inputs().size(), 1u);
  EXPECT_EQ(graph_->AddControlEdge(a, a).code(), Code::kInvalidArgument);
  EXPECT_EQ(graph_->AddControlEdge(a, nullptr).code(), Code::kInvalidArgument);
}

TEST_F(GraphTest, SourceAndSinkJoinEverything) {
  Node* x = Placeholder("x", {});
  Node* y = Add(NodeSpec("Neg", "y").Input(x));
  EXPECT_EQ(graph_->source()->id(), 0);
  EXPECT_EQ(graph_->sink()->id(), 1);
  EXPECT_EQ(graph_->source()->name(), "_SOURCE");
  EXPECT_EQ(graph_->sink()->name(), "_SINK");
  ASSERT_EQ(graph_->source()->out_edges().size(), 1u);
  EXPECT_EQ(graph_->source()->out_edges()[0]->dst, x);
  ASSERT_EQ(graph_->sink()->in_edges().size(), 1u);
  EXPECT_EQ(graph_->sink()->in_edges()[0]->src, y);
  EXPECT_TRUE(graph_->sink()->in_edges()[0]->control());
}

TEST_F(GraphTest, NamesAreMadeUnique) {
  EXPECT_EQ(graph_->UniqueName("x"), "x");
  EXPECT_EQ(graph_->UniqueName("x"), "x_1");
  Placeholder("x_2", {});
  EXPECT_EQ(graph_->UniqueName("x"), "x_3");
  EXPECT_EQ(graph_->UniqueName("x_2"), "x_2_1");
}

TEST_F(GraphTest, SeedsAreTensorFlows) {
  using Seeds = std::pair<int64_t, int64_t>;
  const int64_t five = 5, zero = 0, negative = -1;
  EXPECT_EQ(graph_->OpSeeds(nullptr), Seeds(0, 0));
  EXPECT_EQ(graph_->OpSeeds(&five), Seeds(87654321, 5));
  graph_->set_seed(7);
  EXPECT_EQ(graph_->OpSeeds(&five), Seeds(7, 5));
  EXPECT_EQ(graph_->OpSeeds(nullptr), Seeds(7, 0));
  Placeholder("x", {});
  EXPECT_EQ(graph_->OpSeeds(nullptr), Seeds(7, 1));
  graph_->set_seed(0);
  EXPECT_EQ(graph_->OpSeeds(&zero), Seeds(0, 2147483647));
  EXPECT_EQ(graph_->OpSeeds(&negative), Seeds(0, 2147483646));
}

TEST_F(GraphTest, CollectionsKeepOrder) {
  graph_->AddToCollection("variables", "b");
  graph_->AddToCollection("variables", "a");
  graph_->AddToCollection("losses", "l");
  EXPECT_EQ(graph_->Collection("variables"), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(graph_->CollectionKeys(), (std::vector<std::string>{"losses", "variables"}));
  graph_->ClearCollection("variables");
  EXPECT_TRUE(graph_->Collection("variables").empty());
}

TEST_F(GraphTest, FinalizedGraphsDoNotGrow) {
  Node* x = Placeholder("x", {});
  graph_->Finalize();
  EXPECT_TRUE(graph_->finalized());
  EXPECT_EQ(Fail(NodeSpec("Neg", "y").Input(x)).code(), Code::kFailedPrecondition);
  EXPECT_EQ(graph_->AddControlEdge(x, x).code(), Code::kFailedPrecondition);
}

TEST_F(GraphTest, ShapesAreRefined) {
  Node* x = Placeholder("x", {-1, 3});
  EXPECT_TRUE(graph_->RefineShape(x, PartialShape({2, -1})).ok());
  EXPECT_EQ(x->output_shape(0), PartialShape({2, 3}));
  EXPECT_EQ(graph_->RefineShape(x, PartialShape({3, 3})).code(), Code::kInvalidArgument);
  EXPECT_EQ(graph_->RefineShape(Output(x, 1), PartialShape()).code(), Code::kInvalidArgument);
}

TEST_F(GraphTest, KnowsConstantsAndShapes) {
  Node* x = Placeholder("x", {-1, 3});
  Node* y = Placeholder("y", {5, 3});
  EXPECT_FALSE(graph_->ConstantValue(x).valid());
  Node* c = Const("c", Tensor::Vector<int32_t>({4, 6}));
  EXPECT_EQ(graph_->ConstantValue(c).unchecked_values<int32_t>()[1], 6);
  Node* shape_x = Add(NodeSpec("Shape", "shape_x").Input(x));
  Node* shape_y = Add(NodeSpec("Shape", "shape_y").Input(y));
  Node* rank = Add(NodeSpec("Rank", "rank").Input(x));
  EXPECT_FALSE(graph_->ConstantValue(shape_x).valid());
  ASSERT_TRUE(graph_->ConstantValue(shape_y).valid());
  EXPECT_EQ(graph_->ConstantValue(shape_y).unchecked_values<int32_t>()[0], 5);
  EXPECT_EQ(graph_->ConstantValue(rank).unchecked_scalar<int32_t>(), 2);

  Node* one = Const("one", Tensor::Scalar<float>(1));
  Node* fill = Add(NodeSpec("Fill", "fill").Input(shape_x).Input(one));
  EXPECT_EQ(fill->output_shape(0), PartialShape({-1, 3}));
  Node* axis = Const("axis", Tensor::Scalar<int32_t>(0));
  const Output parts[] = {shape_x, c};
  Node* concat = Add(NodeSpec("ConcatV2", "concat").Input(absl::MakeConstSpan(parts)).Input(axis));
  Node* fill2 = Add(NodeSpec("Fill", "fill2").Input(concat).Input(one));
  EXPECT_EQ(fill2->output_shape(0), PartialShape({-1, 3, 4, 6}));
  // A better shape makes more known.
  EXPECT_TRUE(graph_->RefineShape(x, PartialShape({7, 3})).ok());
  EXPECT_TRUE(graph_->ConstantValue(shape_x).valid());
}

TEST_F(GraphTest, ElementOfAPartlyKnownShape) {
  Node* x = Placeholder("x", {-1, 3});
  Node* shape = Add(NodeSpec("Shape", "shape").Input(x));
  Node* step = Const("step", Tensor::Vector<int32_t>({1}));
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    Node* begin = Const("b" + n, Tensor::Vector<int32_t>({i}));
    Node* end = Const("e" + n, Tensor::Vector<int32_t>({i + 1}));
    Node* element = Add(NodeSpec("StridedSlice", "s" + n)
                            .Input(shape)
                            .Input(begin)
                            .Input(end)
                            .Input(step)
                            .Attr("shrink_axis_mask", 1));
    const Tensor value = graph_->ConstantValue(element);
    EXPECT_EQ(value.valid(), i == 1);
    if (i == 1) {
      EXPECT_EQ(value.unchecked_scalar<int32_t>(), 3);
    }
  }
}

TEST_F(GraphTest, LongChainsOfConstantsDoNotExhaustTheStack) {
  Node* last = Const("c", Tensor::Vector<int32_t>({2, 3}));
  for (int i = 0; i < 20000; ++i) {
    last = Add(NodeSpec("Identity", "i" + std::to_string(i)).Input(last));
  }
  graph_->ConstantValue(last);
}

TEST_F(GraphTest, ExportsWhatItHolds) {
  Node* x = Placeholder("x", {2});
  Node* none = Add(NodeSpec("NoOp", "none").Device("/cpu:0"));
  Node* parts = Add(NodeSpec("Unpack", "parts").Input(x).Attr("num", 2));
  Add(NodeSpec("Neg", "neg").Input(Output(parts, 1)).ControlInput(none));
  GraphDef def;
  graph_->ToGraphDef(&def);
  ASSERT_EQ(def.node_size(), 4);
  EXPECT_EQ(def.node(1).device(), "/cpu:0");
  EXPECT_EQ(def.node(2).input(0), "x");
  ASSERT_EQ(def.node(3).input_size(), 2);
  EXPECT_EQ(def.node(3).input(0), "parts:1");
  EXPECT_EQ(def.node(3).input(1), "^none");
  EXPECT_EQ(def.versions().producer(), graph_->producer());
}

TEST_F(GraphTest, AddsFromDefinitions) {
  Placeholder("x", {2});
  NodeDef def;
  def.set_name("y");
  def.set_op("Neg");
  def.add_input("x:0");
  (*def.mutable_attr())["T"].set_type(DT_FLOAT);
  ASSERT_TRUE(graph_->AddNode(def).ok());
  def.set_name("z");
  def.set_input(0, "w");
  EXPECT_EQ(graph_->AddNode(def).status().code(), Code::kInvalidArgument);
  def.set_input(0, "x:7");
  EXPECT_EQ(graph_->AddNode(def).status().code(), Code::kInvalidArgument);
  def.set_input(0, "^x");
  def.add_input("x");
  EXPECT_EQ(graph_->AddNode(def).status().code(), Code::kInvalidArgument);
  def.set_op("Nothing");
  EXPECT_EQ(graph_->AddNode(def).status().code(), Code::kNotFound);
}

TEST_F(GraphTest, ManyThreadsBuild) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) {
        const std::string name = graph_->UniqueName("n");
        EXPECT_TRUE(graph_->AddNode(NodeSpec("NoOp", name)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(graph_->num_nodes(), 402);
  std::set<std::string> names;
  for (Node* node : graph_->nodes()) names.insert(node->name());
  EXPECT_EQ(names.size(), 402u);
}

}  // namespace
}  // namespace troupe

#include "graph/passes/simplify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/passes/loosen_constants.h"
#include "graph/passes/prune.h"
#include "graph/protos/graph.pb.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

const OpRegistry* Ops() {
  static OpRegistry* registry = [] {
    auto* r = new OpRegistry;
    auto add = [r](const OpDefBuilder& builder) { r->Register(builder); };
    add(OpDefBuilder("Placeholder").Output("y: float"));
    add(OpDefBuilder("Const")
            .Output("y: dtype")
            .Attr("value: tensor")
            .Attr("dtype: type")
            .SetShapeFn([](InferenceContext* c) {
              const AttrValue* value = c->attrs().Find("value");
              c->set_output(0, *Shape::FromProto(value->tensor().tensor_shape()));
              return absl::OkStatus();
            }));
    add(OpDefBuilder("Neg").Input("x: float").Output("y: float").Attr("k: int = 0"));
    add(OpDefBuilder("Add").Input("x: float").Input("y: float").Output("z: float"));
    add(OpDefBuilder("Fail").Input("x: float").Output("y: float"));
    add(OpDefBuilder("Big").Input("x: float").Output("y: float"));
    add(OpDefBuilder("Random").Output("y: float").SetIsStateful());
    add(OpDefBuilder("Var").Output("v: Ref(float)").SetIsStateful());
    add(OpDefBuilder("Identity").Input("x: T").Output("y: T").Attr("T: type"));
    add(OpDefBuilder("NoOp"));
    add(OpDefBuilder("Effect").Input("x: float").SetIsStateful());
    add(OpDefBuilder("Switch")
            .Input("x: float")
            .Input("p: bool")
            .Output("f: float")
            .Output("t: float"));
    add(OpDefBuilder("Merge").Input("inputs: N * float").Output("y: float").Attr("N: int"));
    return r;
  }();
  return registry;
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const Node& node, absl::Span<const Tensor> inputs) {
  const float x = inputs[0].unchecked_scalar<float>();
  if (node.op() == "Neg") return std::vector<Tensor>{Tensor::Scalar<float>(-x)};
  if (node.op() == "Identity") return std::vector<Tensor>{inputs[0]};
  if (node.op() == "Add") {
    return std::vector<Tensor>{Tensor::Scalar<float>(x + inputs[1].unchecked_scalar<float>())};
  }
  if (node.op() == "Big") {
    return std::vector<Tensor>{Tensor::Uninitialized(ElementType::kFloat, Shape({4 << 20}))};
  }
  return absl::InvalidArgumentError("fails");
}

class SimplifyTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Node* Const(const std::string& name, float value) {
    return Add(NodeSpec("Const", name)
                   .Attr("value", Tensor::Scalar<float>(value))
                   .Attr("dtype", ElementType::kFloat));
  }
  Node* Neg(const std::string& name, Output x) { return Add(NodeSpec("Neg", name).Input(x)); }
  Subgraph Run(const SimplifyOptions& options, std::vector<Output> feeds,
               std::vector<Output> fetches, std::vector<Node*> targets = {}) {
    auto subgraph = Prune(graph_, feeds, fetches, targets);
    EXPECT_TRUE(subgraph.ok()) << subgraph.status();
    Simplify(options, Evaluate, &*subgraph);
    Check(*subgraph);
    return *std::move(subgraph);
  }
  /// What holds of every subgraph.
  static void Check(const Subgraph& subgraph) {
    for (size_t i = 0; i < subgraph.nodes.size(); ++i) {
      const SubNode& node = subgraph.nodes[i];
      for (const SubOutput& input : node.inputs) {
        EXPECT_LT(input.node, static_cast<int>(i));
        EXPECT_LT(input.port, subgraph.nodes[input.node].num_outputs());
      }
      EXPECT_TRUE(std::is_sorted(node.control_inputs.begin(), node.control_inputs.end()));
      for (int32_t control : node.control_inputs) {
        EXPECT_LT(control, static_cast<int>(i));
        EXPECT_EQ(subgraph.nodes[control].kind, SubNode::Kind::kOp);
      }
    }
  }
  static std::string Names(const Subgraph& subgraph) {
    std::string names;
    for (const SubNode& node : subgraph.nodes) {
      if (node.kind == SubNode::Kind::kFeed) names += "feed:";
      if (node.kind == SubNode::Kind::kConstant) names += "const:";
      names += node.original->name() + " ";
    }
    return names;
  }

  static constexpr SimplifyOptions kNothing{false, false, false, false};
  static constexpr SimplifyOptions kFold{true, false, false, false};
  static constexpr SimplifyOptions kCommon{false, true, false, false};
  static constexpr SimplifyOptions kIdentities{false, false, true, false};
  static constexpr SimplifyOptions kUnused{false, false, false, true};

  Graph graph_{Ops()};
};

TEST_F(SimplifyTest, WhoTakesAConstantWaitsInItsPlace) {
  Node* first = Add(NodeSpec("Effect", "first").Input(Const("z", 0)));
  const auto after_first = [&](const std::string& name) {
    return Add(NodeSpec("Const", name)
                   .Attr("value", Tensor::Scalar<float>(2))
                   .Attr("dtype", ElementType::kFloat)
                   .ControlInput(first));
  };
  Node* rate = after_first("rate");
  Node* fetched = after_first("fetched");
  Node* update = Add(NodeSpec("Effect", "update").Input(rate));
  AttrValue many;  // 1 GiB of one value.
  many.mutable_tensor()->set_dtype(DT_FLOAT);
  many.mutable_tensor()->add_float_val(2);
  many.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1 << 28);
  Node* large = Add(NodeSpec("Const", "large")
                        .Attr("value", many)
                        .Attr("dtype", ElementType::kFloat)
                        .ControlInput(first));
  Node* fill = Add(NodeSpec("Effect", "fill").Input(large));
  Node* waits =
      Add(NodeSpec("Effect", "waits").Input(Const("w", 1)).ControlInput(after_first("k")));
  const std::vector<Output> fetches = {fetched};
  const std::vector<Node*> targets = {update, fill, waits};
  auto subgraph = Prune(graph_, {}, fetches, targets);
  ASSERT_TRUE(subgraph.ok()) << subgraph.status();
  LoosenConstants(SimplifyOptions().max_folded_bytes, &*subgraph);
  Check(*subgraph);
  const auto find = [&](const std::string& name) {
    return std::find_if(subgraph->nodes.begin(), subgraph->nodes.end(),
                        [&](const SubNode& node) { return node.original->name() == name; });
  };
  EXPECT_EQ(find("rate")->kind, SubNode::Kind::kConstant);
  ASSERT_EQ(find("update")->control_inputs.size(), 1u);
  EXPECT_EQ(subgraph->nodes[find("update")->control_inputs[0]].original, first);
  EXPECT_EQ(find("large")->kind, SubNode::Kind::kOp);
  // What is fetched, or only waited for, stays where it is in the order.
  EXPECT_EQ(find("fetched")->kind, SubNode::Kind::kOp);
  EXPECT_EQ(find("k")->kind, SubNode::Kind::kOp);
}

TEST_F(SimplifyTest, FoldsConstants) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* a = Const("a", 2);
  Node* sum = Add(NodeSpec("Add", "sum").Input(Neg("n", a)).Input(a));
  Node* y = Add(NodeSpec("Add", "y").Input(sum).Input(x));
  EXPECT_EQ(Names(Run(kNothing, {x}, {y})), "feed:x a n sum y ");
  const Subgraph folded = Run(kFold, {x}, {y});
  EXPECT_EQ(Names(folded), "feed:x const:sum y ");
  EXPECT_EQ(folded.nodes[1].values[0].unchecked_scalar<float>(), 0);
  const Subgraph fetched = Run(kFold, {}, {sum});
  EXPECT_EQ(Names(fetched), "const:sum ");
  EXPECT_EQ(fetched.fetches[0], (SubOutput{0, 0}));
}

TEST_F(SimplifyTest, LeavesWhatFailsOrGrows) {
  Node* a = Const("a", 2);
  Node* fail = Add(NodeSpec("Fail", "fail").Input(a));
  Node* big = Add(NodeSpec("Big", "big").Input(a));
  EXPECT_EQ(Names(Run(kFold, {}, {fail, big})), "const:a fail big ");
  EXPECT_EQ(Names(Run({}, {}, {Add(NodeSpec("Random", "r"))})), "r ");
}

TEST_F(SimplifyTest, ConstantsUnderControlStay) {
  Node* first = Add(NodeSpec("Effect", "first").Input(Const("z", 0)));
  Node* a = Add(NodeSpec("Const", "a")
                    .Attr("value", Tensor::Scalar<float>(1))
                    .Attr("dtype", ElementType::kFloat)
                    .ControlInput(first));
  EXPECT_EQ(Names(Run({}, {}, {Neg("n", a)})), "const:z first a n ");
  Node* b = Const("b", 1);
  Node* after = Add(NodeSpec("Effect", "after").Input(b).ControlInput(b));
  const Subgraph subgraph = Run({}, {}, {}, {after, b});
  EXPECT_TRUE(subgraph.nodes.back().control_inputs.empty());
  EXPECT_EQ(subgraph.targets.size(), 1u);
}

TEST_F(SimplifyTest, ConstantsThatAMergeWaitsForStay) {
  const Output inputs[] = {Const("a", 1), Const("b", 1)};
  Node* merge = Add(NodeSpec("Merge", "m").Input(absl::MakeConstSpan(inputs)));
  EXPECT_EQ(Names(Run({}, {}, {merge})), "a b m ");
}

TEST_F(SimplifyTest, EliminatesCommonSubexpressions) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* a = Neg("a", x);
  Node* b = Neg("b", x);
  Node* other = Add(NodeSpec("Neg", "other").Input(x).Attr("k", 1));
  Node* aa = Neg("aa", a);
  Node* bb = Neg("bb", b);
  Node* sum = Add(NodeSpec("Add", "sum").Input(aa).Input(bb));
  const Subgraph subgraph = Run(kCommon, {x}, {sum, bb, other}, {b});
  EXPECT_EQ(Names(subgraph), "feed:x a other aa sum ");
  EXPECT_EQ(subgraph.nodes[4].inputs, (std::vector<SubOutput>{{3, 0}, {3, 0}}));
  EXPECT_EQ(subgraph.fetches[1], (SubOutput{3, 0}));
  EXPECT_EQ(subgraph.targets, (std::vector<int32_t>{1}));
}

TEST_F(SimplifyTest, StatefulNodesAreNotCommon) {
  Node* a = Add(NodeSpec("Random", "a"));
  Node* b = Add(NodeSpec("Random", "b"));
  EXPECT_EQ(Names(Run({}, {}, {a, b})), "a b ");
  // Different orders of execution make different nodes.
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* e = Add(NodeSpec("Effect", "e").Input(x));
  Node* c = Neg("c", x);
  Node* d = Add(NodeSpec("Neg", "d").Input(x).ControlInput(e));
  EXPECT_EQ(Names(Run(kCommon, {x}, {c, d})), "feed:x e c d ");
}

TEST_F(SimplifyTest, EqualConstantsAreOne) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* y = Add(NodeSpec("Add", "y").Input(x).Input(Const("a", 3)));
  Node* z = Add(NodeSpec("Add", "z").Input(y).Input(Const("b", 3)));
  EXPECT_EQ(Names(Run({}, {x}, {z})), "feed:x const:a y z ");
}

TEST_F(SimplifyTest, RemovesIdentities) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* last = Neg("n", x);
  for (int i = 0; i < 3; ++i) {
    last = Add(NodeSpec("Identity", "i" + std::to_string(i)).Input(last));
  }
  Node* e = Add(NodeSpec("Effect", "e").Input(last).ControlInput(last));
  const Subgraph subgraph = Run(kIdentities, {x}, {last}, {e});
  EXPECT_EQ(Names(subgraph), "feed:x n e ");
  EXPECT_EQ(subgraph.fetches[0], (SubOutput{1, 0}));
  EXPECT_EQ(subgraph.nodes[2].control_inputs, (std::vector<int32_t>{1}));
}

TEST_F(SimplifyTest, IdentityOfAReferenceIsASnapshot) {
  Node* v = Add(NodeSpec("Var", "v"));
  Node* i = Add(NodeSpec("Identity", "i").Input(v));
  EXPECT_EQ(Names(Run({}, {}, {i})), "v i ");
}

TEST_F(SimplifyTest, IdentityPassesItsControlInputsOn) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* e = Add(NodeSpec("Effect", "e").Input(x));
  Node* i = Add(NodeSpec("Identity", "i").Input(x).ControlInput(e));
  Node* n = Neg("n", i);
  const Subgraph one = Run(kIdentities, {x}, {n});
  EXPECT_EQ(Names(one), "feed:x e n ");
  EXPECT_EQ(one.nodes[2].control_inputs, (std::vector<int32_t>{1}));
  EXPECT_EQ(one.nodes[2].inputs[0], (SubOutput{0, 0}));
  EXPECT_EQ(Names(Run(kIdentities, {x}, {i})), "feed:x e i ");  // the fetch waits for the effect
  Node* m = Neg("m", i);
  EXPECT_EQ(Names(Run(kIdentities, {x}, {n, m})), "feed:x e i n m ");
}

TEST_F(SimplifyTest, PivotsOfBranchesStay) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* p = Add(NodeSpec("Const", "p")
                    .Attr("value", Tensor::Scalar<bool>(true))
                    .Attr("dtype", ElementType::kBool));
  Node* s = Add(NodeSpec("Switch", "s").Input(x).Input(p));
  Node* pivot = Add(NodeSpec("Identity", "pivot").Input(Output(s, 1)));
  Node* c = Add(NodeSpec("Const", "c")
                    .Attr("value", Tensor::Scalar<float>(true))
                    .Attr("dtype", ElementType::kFloat)
                    .ControlInput(pivot));
  EXPECT_EQ(Names(Run({}, {x}, {Neg("n", c)})), "feed:x const:p s pivot c n ");
}

TEST_F(SimplifyTest, RemovesWhatIsOnlyWaitedFor) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* r = Add(NodeSpec("Random", "r"));
  Node* e = Add(NodeSpec("Effect", "e").Input(x));
  Node* a = Neg("a", r);
  Node* b = Add(NodeSpec("Add", "b").Input(a).Input(x).ControlInput(e));
  Node* n = Add(NodeSpec("Neg", "n").Input(x).ControlInput(b));
  // Shapes that might not fit are an error that somebody may be waiting for.
  EXPECT_EQ(Names(Run(kUnused, {x}, {n})), "feed:x r e a b n ");
  ASSERT_TRUE(graph_.RefineShape(x, PartialShape({})).ok());
  ASSERT_TRUE(graph_.RefineShape(a, PartialShape({})).ok());
  // Whoever waited for a sum, of which one term is needed for nothing else, waits for what the
  // terms came from.
  const Subgraph subgraph = Run(kUnused, {x}, {n});
  EXPECT_EQ(Names(subgraph), "feed:x r e n ");
  EXPECT_EQ(subgraph.nodes[3].control_inputs, (std::vector<int32_t>{1, 2}));
  // What is fetched, targeted or has effects stays, and so does what it needs.
  EXPECT_EQ(Names(Run(kUnused, {x}, {n, b})), "feed:x r e a b n ");
  EXPECT_EQ(Names(Run(kUnused, {x}, {n}, {a})), "feed:x r e a n ");
  Node* f = Add(NodeSpec("Effect", "f").Input(b));
  EXPECT_EQ(Names(Run(kUnused, {x}, {n}, {f})), "feed:x r e a b n f ");
}

TEST_F(SimplifyTest, PivotsAreWaitedFor) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* p = Add(NodeSpec("Const", "p")
                    .Attr("value", Tensor::Scalar<bool>(true))
                    .Attr("dtype", ElementType::kBool));
  Node* s = Add(NodeSpec("Switch", "s").Input(x).Input(p));
  Node* pivot = Add(NodeSpec("Identity", "pivot").Input(Output(s, 1)));
  Node* second = Neg("second", pivot);
  Node* n = Add(NodeSpec("Neg", "n").Input(x).ControlInput(second));
  const Subgraph subgraph = Run(kUnused, {x}, {n});
  EXPECT_EQ(Names(subgraph), "feed:x p s pivot n ");
  EXPECT_EQ(subgraph.nodes[4].control_inputs, (std::vector<int32_t>{3}));
}

TEST_F(SimplifyTest, RemovesNoOps) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* e = Add(NodeSpec("Effect", "e").Input(x));
  Node* f = Add(NodeSpec("Effect", "f").Input(x));
  Node* group = Add(NodeSpec("NoOp", "group").ControlInput(e).ControlInput(f));
  Node* n = Add(NodeSpec("Neg", "n").Input(x).ControlInput(group));
  const Subgraph subgraph = Run(kIdentities, {x}, {n});
  EXPECT_EQ(Names(subgraph), "feed:x e f n ");
  EXPECT_EQ(subgraph.nodes[3].control_inputs, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(Names(Run(kIdentities, {x}, {}, {group})), "feed:x e f group ");
  // Three to three would make nine edges of six.
  Node* g = Add(NodeSpec("Effect", "g").Input(x));
  Node* wide = Add(NodeSpec("NoOp", "wide").ControlInput(e).ControlInput(f).ControlInput(g));
  std::vector<Output> fetches;
  for (int i = 0; i < 3; ++i) {
    fetches.emplace_back(Add(NodeSpec("Neg", "w" + std::to_string(i)).Input(x).ControlInput(wide)));
  }
  EXPECT_EQ(Names(Run(kIdentities, {x}, fetches)), "feed:x e f g wide w0 w1 w2 ");
}

}  // namespace
}  // namespace troupe

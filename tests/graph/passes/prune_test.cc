#include "graph/passes/prune.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/passes/simplify.h"

namespace troupe {
namespace {

using Code = absl::StatusCode;

const OpRegistry* Ops() {
  static OpRegistry* registry = [] {
    auto* r = new OpRegistry;
    r->Register(OpDefBuilder("Placeholder").Output("y: float"));
    r->Register(OpDefBuilder("Neg").Input("x: float").Output("y: float"));
    r->Register(OpDefBuilder("Two").Input("x: float").Output("y: float").Output("z: float"));
    r->Register(OpDefBuilder("Add").Input("x: float").Input("y: float").Output("z: float"));
    r->Register(OpDefBuilder("Var").Output("v: Ref(float)").SetIsStateful());
    r->Register(
        OpDefBuilder("Set").Input("v: Ref(float)").Input("x: float").Output("o: Ref(float)"));
    r->Register(OpDefBuilder("NoOp"));
    r->Register(
        OpDefBuilder("Merge").Input("inputs: N * float").Output("output: float").Attr("N: int"));
    r->Register(OpDefBuilder("NextIteration").Input("data: float").Output("output: float"));
    return r;
  }();
  return registry;
}

class PruneTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Subgraph Prune(std::vector<Output> feeds, std::vector<Output> fetches,
                 std::vector<Node*> targets = {}) {
    auto subgraph = troupe::Prune(graph_, feeds, fetches, targets);
    EXPECT_TRUE(subgraph.ok()) << subgraph.status();
    return *std::move(subgraph);
  }
  Code Failure(std::vector<Output> feeds, std::vector<Output> fetches,
               std::vector<Node*> targets = {}) {
    return troupe::Prune(graph_, feeds, fetches, targets).status().code();
  }
  static std::string Names(const Subgraph& subgraph) {
    std::string names;
    for (const SubNode& node : subgraph.nodes) {
      if (node.kind == SubNode::Kind::kFeed) names += "feed:";
      names += node.original->name() + " ";
    }
    return names;
  }

  Graph graph_{Ops()};
};

TEST_F(PruneTest, TakesWhatIsNeededInOrder) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* a = Add(NodeSpec("Neg", "a").Input(x));
  Add(NodeSpec("Neg", "unused").Input(a));
  Node* before = Add(NodeSpec("NoOp", "before"));
  Node* b = Add(NodeSpec("Add", "b").Input(a).Input(x).ControlInput(before));
  const Subgraph subgraph = Prune({x}, {b, a, b});
  EXPECT_EQ(Names(subgraph), "feed:x a before b ");
  EXPECT_EQ(subgraph.feeds, (std::vector<int32_t>{0}));
  EXPECT_EQ(subgraph.nodes[3].inputs, (std::vector<SubOutput>{{1, 0}, {0, 0}}));
  EXPECT_EQ(subgraph.nodes[3].control_inputs, (std::vector<int32_t>{2}));
  EXPECT_EQ(subgraph.fetches, (std::vector<SubOutput>{{3, 0}, {1, 0}, {3, 0}}));
}

TEST_F(PruneTest, CutsAtFeedsInTheMiddle) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* two = Add(NodeSpec("Two", "two").Input(x));
  Node* sum = Add(NodeSpec("Add", "sum").Input(Output(two, 0)).Input(Output(two, 1)));
  EXPECT_EQ(Names(Prune({Output(two, 0), Output(two, 1)}, {sum})), "feed:two feed:two sum ");
  const Subgraph half = Prune({x, Output(two, 1)}, {sum});
  EXPECT_EQ(Names(half), "feed:x feed:two two sum ");
  EXPECT_EQ(half.nodes[3].inputs, (std::vector<SubOutput>{{2, 0}, {1, 0}}));
  EXPECT_EQ(half.nodes[1].fed_port, 1);
}

TEST_F(PruneTest, ControlEdgesFromFedPlaceholdersVanish) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* n = Add(NodeSpec("NoOp", "n").ControlInput(x));
  const Subgraph fed = Prune({x}, {}, {n, n, x});
  EXPECT_EQ(Names(fed), "feed:x n ");
  EXPECT_TRUE(fed.nodes[1].control_inputs.empty());
  EXPECT_EQ(fed.targets, (std::vector<int32_t>{1}));
  EXPECT_EQ(Names(Prune({}, {}, {n})), "x n ");
}

TEST_F(PruneTest, LateControlEdgesAreOrdered) {
  Node* a = Add(NodeSpec("NoOp", "a"));
  Node* b = Add(NodeSpec("NoOp", "b"));
  Node* c = Add(NodeSpec("NoOp", "c").ControlInput(a));
  ASSERT_TRUE(graph_.AddControlEdge(b, a).ok());
  EXPECT_EQ(Names(Prune({}, {}, {c})), "b a c ");
  ASSERT_TRUE(graph_.AddControlEdge(c, b).ok());
  EXPECT_EQ(Failure({}, {}, {c}), Code::kInvalidArgument);
}

TEST_F(PruneTest, LoopsKeepTheirBackEdges) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  const Output inputs[] = {x, Output()};
  Node* merge = Add(NodeSpec("Merge", "m").Input(absl::MakeConstSpan(inputs)));
  Node* neg = Add(NodeSpec("Neg", "neg").Input(merge));
  EXPECT_EQ(Failure({x}, {neg}), Code::kInvalidArgument);  // not joined yet
  Node* next = Add(NodeSpec("NextIteration", "next").Input(neg));
  ASSERT_TRUE(graph_.AddBackEdge(next, merge, 1).ok());
  const Subgraph subgraph = Prune({x}, {neg});
  EXPECT_EQ(Names(subgraph), "feed:x m neg next ");
  EXPECT_EQ(subgraph.nodes[1].inputs, (std::vector<SubOutput>{{0, 0}, {3, 0}}));
  EXPECT_EQ(graph_.AddBackEdge(next, neg, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(graph_.AddBackEdge(next, merge, 2).code(), Code::kInvalidArgument);
}

TEST_F(PruneTest, RefusesWrongSignatures) {
  Node* x = Add(NodeSpec("Placeholder", "x"));
  Node* v = Add(NodeSpec("Var", "v"));
  Node* set = Add(NodeSpec("Set", "set").Input(v).Input(x));
  Node* neg = Add(NodeSpec("Neg", "neg").Input(v));
  Graph other(Ops());
  Node* stranger = other.AddNode(NodeSpec("Placeholder", "s")).value();
  EXPECT_EQ(Failure({x, x}, {neg}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({x}, {x}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({v}, {set}), Code::kInvalidArgument);  // wanted as a reference
  EXPECT_EQ(Failure({}, {Output()}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({}, {Output(x, 1)}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({Output(x, -1)}, {}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({}, {stranger}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({}, {}, {stranger}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({}, {}, {nullptr}), Code::kInvalidArgument);
  EXPECT_EQ(Failure({}, {}, {graph_.source()}), Code::kInvalidArgument);
  const Subgraph fed = Prune({v}, {neg});  // wanted as a value
  EXPECT_EQ(fed.nodes[0].output_type(0), ElementType::kFloat);
}

}  // namespace
}  // namespace troupe

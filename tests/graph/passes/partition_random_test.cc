// Random graphs, cut at random, do what they do whole.
#include "tests/graph/passes/partition_fixture.h"

namespace troupe {
namespace {

/// Random graphs with branches, loops within loops, control edges and constants.
class RandomGraph : public PartitionTest {
 protected:
  struct Context {
    std::vector<Output> values;
    std::vector<Node*> nodes;  ///< For control edges.
    bool inside = false;       ///< Of a branch or loop, where constants must hang on something.
  };

  int Random(int n) { return static_cast<int>(random_() % n); }
  Output Pick(const Context& c) { return c.values[Random(static_cast<int>(c.values.size()))]; }
  std::string Name(const std::string& what) { return StrCat(what, "_", ++number_); }
  void Keep(Context* c, Node* node) {
    c->values.emplace_back(node);
    c->nodes.push_back(node);
  }

  void Grow(Context* c, int steps, int depth) {
    for (int s = 0; s < steps; ++s) {
      const int what = Random(depth > 0 ? 10 : 7);
      if (what < 4) {
        const char* const ops[] = {"AddV2", "Sub", "Minimum"};
        NodeSpec spec(ops[Random(3)], Name("op"));
        spec.Input(Pick(*c)).Input(Pick(*c));
        if (Random(4) == 0) spec.ControlInput(c->nodes[Random(static_cast<int>(c->nodes.size()))]);
        Keep(c, Add(spec));
      } else if (what == 4) {
        Keep(c, Unary("Neg", Name("neg"), Pick(*c)));
      } else if (what == 5) {
        const bool free = !c->inside && Random(2) == 0;
        Node* control = c->nodes[Random(static_cast<int>(c->nodes.size()))];
        Keep(c, Const(Name("const"), static_cast<float>(Random(7)), free ? nullptr : control));
      } else if (what == 6) {
        Node* control = c->nodes[Random(static_cast<int>(c->nodes.size()))];
        c->nodes.push_back(Add(NodeSpec("NoOp", Name("noop")).ControlInput(control)));
      } else if (what == 7) {
        Branch(c, depth - 1);
      } else {
        While(c, depth - 1);
      }
    }
  }

  void Branch(Context* c, int depth) {
    Node* pred = Binary("Less", Name("pred"), Pick(*c), Pick(*c));
    Context sides[2];
    for (int k = 0; k < 2; ++k) {
      Node* branch = Binary("Switch", Name("switch"), Pick(*c), pred);
      for (int side : {0, 1}) {
        sides[side].inside = true;
        Keep(&sides[side], Unary("Identity", Name("branch"), Output(branch, side)));
      }
    }
    for (Context& side : sides) Grow(&side, 1 + Random(3), depth);
    Keep(c, Merge(Name("merge"), sides[0].values.back(), sides[1].values.back()));
  }

  void While(Context* c, int depth) {
    const std::string frame = Name("frame");
    Node* control = c->nodes.back();
    Node* zero = Const(Name("zero"), 0, control);
    Node* one = Const(Name("one"), 1, control);
    Node* times = Const(Name("times"), static_cast<float>(Random(4)), control);
    Node* counter = LoopMerge(Name("counter"), Enter(Name("enter"), zero, frame));
    Node* less = Binary("Less", Name("less"), counter, Enter(Name("times_in"), times, frame, true));
    Node* cond = Unary("LoopCond", Name("cond"), less);
    Node* counter_switch = Binary("Switch", Name("switch"), counter, cond);
    Context body;
    body.inside = true;
    Node* in = Unary("Identity", Name("body"), Output(counter_switch, 1));
    Keep(&body, in);
    Back(Binary("AddV2", Name("increment"), in, Enter(Name("one_in"), one, frame, true)), counter,
         Name("next"));
    struct Variable {
      Node *merge, *branch;
    };
    std::vector<Variable> variables(1 + Random(2));
    for (Variable& v : variables) {
      v.merge = LoopMerge(Name("var"), Enter(Name("enter"), Pick(*c), frame));
      v.branch = Binary("Switch", Name("switch"), v.merge, cond);
      Keep(&body, Unary("Identity", Name("body"), Output(v.branch, 1)));
    }
    if (Random(2) == 0) {
      Node* invariant = Enter(Name("invariant"), Pick(*c), frame, true);
      Keep(&body, Binary("AddV2", Name("op"), invariant, in));
    }
    Grow(&body, 1 + Random(4), depth);
    for (size_t v = 0; v < variables.size(); ++v) {
      Output value = body.values[body.values.size() - 1 - v];
      Back(Binary("AddV2", Name("last"), value, in), variables[v].merge, Name("next"));
      Keep(c, Unary("Exit", Name("exit"), Output(variables[v].branch, 0)));
    }
    if (Random(2) == 0) Keep(c, Unary("Exit", Name("exit"), Output(counter_switch, 0)));
  }

  std::mt19937 random_;
  int number_ = 0;
};

class RandomGraphTest : public RandomGraph, public ::testing::WithParamInterface<int> {};

TEST_P(RandomGraphTest, PartsDoWhatTheWholeDoes) {
  for (int k = 0; k < 10; ++k) {
    const int seed = GetParam() * 10 + k;
    SCOPED_TRACE(StrCat("seed ", seed));
    random_.seed(seed);
    Context root;
    std::vector<Output> feeds;
    const std::string prefix = StrCat("x", k, "_");
    for (int i = 0; i < 3; ++i) {
      Keep(&root, Placeholder(StrCat(prefix, i)));
      feeds.push_back(root.values.back());
    }
    root.nodes.push_back(Add(NodeSpec("NoOp", Name("start"))));
    root.nodes.erase(root.nodes.begin(), root.nodes.end() - 1);
    Grow(&root, 3 + Random(12), 3);
    std::vector<Output> fetches;
    for (int i = 0; i < 4; ++i) fetches.push_back(root.values[root.values.size() - 1 - i]);
    std::erase_if(fetches, [&](const Output& fetch) {
      return std::find(feeds.begin(), feeds.end(), fetch) != feeds.end();
    });
    auto pruned = Prune(graph_, feeds, fetches, {root.nodes.back()});
    ASSERT_TRUE(pruned.ok()) << pruned.status();
    Subgraph whole = *std::move(pruned);
    const int num_devices = 2 + Random(3);
    const int spread = 1 + Random(3);
    for (SubNode& node : whole.nodes) {
      node.device = NumberedDevice(Random(spread) == 0 ? Random(num_devices) : 0);
    }
    const PartitionedGraph cut = Cut(whole);
    Compare(whole, cut, {static_cast<double>(Random(9)), 2, -1}, 3);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphTest, ::testing::Range(0, 30));

}  // namespace
}  // namespace troupe

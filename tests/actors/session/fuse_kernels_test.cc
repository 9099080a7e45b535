#include "actors/session/fuse_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/fusible.h"
#include "tests/how_many.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Input = PlanSpec::Input;

struct NullKernel : Kernel {
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

/// What stands for several.
struct Together final : NullKernel {
  explicit Together(FusedCalls c) : calls(std::move(c)) {}
  FusedCalls calls;
};

struct Fusible final : NullKernel, FusibleKernel {
  Fusible(const void* f, size_t m) : family_(f), most(m) {}
  const void* family() const override { return family_; }
  std::shared_ptr<Kernel> Fuse(const FusedCalls& calls) const override {
    return calls.calls.size() > most ? nullptr : std::make_shared<Together>(calls);
  }
  const void* family_;
  size_t most;
};

constexpr char kFloats = 0, kDoubles = 0;

class FuseKernelsTest : public ::testing::Test {
 protected:
  int Add(std::string name, PlanSpec::Node node) {
    node.name = std::move(name);
    node.op = "Op";
    spec_.nodes.push_back(std::move(node));
    return static_cast<int>(spec_.nodes.size()) - 1;
  }
  int Feed() { return Add("feed", {.num_outputs = 1}); }
  int Whole(std::string name, std::vector<Input> inputs, int frame = 0) {
    return Add(std::move(name), {.kernel = std::make_shared<NullKernel>(),
                                 .inputs = std::move(inputs),
                                 .num_outputs = 1,
                                 .frame = frame});
  }
  int Part(std::string name, std::vector<Input> inputs, int frame = 0,
           const void* family = &kFloats) {
    return Add(std::move(name), {.kernel = std::make_shared<Fusible>(family, most_),
                                 .inputs = std::move(inputs),
                                 .num_outputs = 1,
                                 .frame = frame});
  }
  int Flow(FlowOp flow, std::vector<Input> inputs, int num_outputs = 1, int frame = 0,
           int enters = 0) {
    return Add("flow", {.inputs = std::move(inputs),
                        .num_outputs = num_outputs,
                        .flow = flow,
                        .frame = frame,
                        .enters = enters});
  }
  void Fetch(int node) { spec_.fetches.push_back({node, 0}); }

  /// Per fused node: the names of those that it computes.
  std::vector<std::vector<std::string>> Fused() {
    FuseKernels(&spec_);
    std::vector<std::vector<std::string>> all;
    for (const PlanSpec::Node& node : spec_.nodes) {
      const auto* const together = dynamic_cast<const Together*>(node.kernel.get());
      if (together == nullptr) continue;
      for (auto& names = all.emplace_back(); const auto& call : together->calls.calls) {
        names.push_back(call.node.substr(0, call.node.find(' ')));
      }
    }
    return all;
  }

  size_t most_ = 100;
  PlanSpec spec_;
};

TEST_F(FuseKernelsTest, WhatOthersTakeIsAnOutput) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int b = Part("b", {{a, 0}, {x, 0}});
  const int c = Part("c", {{b, 0}, {a, 0}});
  Fetch(c);
  Fetch(Whole("w", {{b, 0}}));
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b", "c")));
  ASSERT_EQ(spec_.nodes.size(), 3);
  const PlanSpec::Node& fused = spec_.nodes[1];
  EXPECT_EQ(fused.name, "c");
  EXPECT_EQ(fused.inputs.size(), 1);
  EXPECT_EQ(fused.num_outputs, 2);
  const auto& calls = static_cast<const Together*>(fused.kernel.get())->calls;
  EXPECT_EQ(calls.num_inputs, 1);
  EXPECT_THAT(calls.calls[2].operands, ElementsAre(2, 1));
  EXPECT_THAT(calls.outputs, ElementsAre(2, 3));
  EXPECT_EQ(spec_.fetches[0].node, 1);
  EXPECT_EQ(spec_.fetches[0].port, 1);
  EXPECT_EQ(spec_.nodes[2].inputs[0].port, 0);
}

// They run as targets.
TEST_F(FuseKernelsTest, OfWhatNobodyTakesTheLastOneIsAnOutput) {
  most_ = 3;
  int last = Feed();
  for (const char* name : {"a", "b", "c", "d"}) last = Part(name, {{last, 0}});
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d")));
  ASSERT_EQ(spec_.nodes.size(), 3);
  const auto& calls = static_cast<const Together*>(spec_.nodes[2].kernel.get())->calls;
  EXPECT_THAT(calls.outputs, ElementsAre(2));
  EXPECT_EQ(spec_.nodes[2].num_outputs, 1);
}

TEST_F(FuseKernelsTest, AWayThroughAnotherNodeKeepsThemApart) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int w = Whole("w", {{a, 0}});
  Fetch(Part("b", {{a, 0}, {w, 0}}));
  EXPECT_THAT(Fused(), ElementsAre());
}

TEST_F(FuseKernelsTest, SoDoesAControlEdge) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int w = Whole("w", {{x, 0}});
  spec_.nodes[w].control_inputs = {a};
  const int b = Part("b", {{a, 0}});
  spec_.nodes[b].control_inputs = {w};
  Fetch(b);
  EXPECT_THAT(Fused(), ElementsAre());
}

TEST_F(FuseKernelsTest, ControlEdgesStay) {
  const int x = Feed();
  const int before = Whole("before", {{x, 0}});
  const int a = Part("a", {{x, 0}});
  spec_.nodes[a].control_inputs = {before};
  const int b = Part("b", {{a, 0}});
  spec_.nodes[b].control_inputs = {a, before};
  const int after = Whole("after", {{x, 0}});
  spec_.nodes[after].control_inputs = {a, b};
  Fetch(b);
  Fetch(after);
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b")));
  EXPECT_THAT(spec_.nodes[2].control_inputs, ElementsAre(1));
  EXPECT_THAT(spec_.nodes[3].control_inputs, ElementsAre(2));
}

TEST_F(FuseKernelsTest, OnlyThoseOfAFamily) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int b = Part("b", {{a, 0}}, 0, &kDoubles);
  const int c = Part("c", {{b, 0}}, 0, &kDoubles);
  Fetch(Part("d", {{c, 0}}, 0, nullptr));
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("b", "c")));
}

TEST_F(FuseKernelsTest, ValuesInOneMemory) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int b = Part("b", {{a, 0}});
  const int c = Part("c", {{b, 0}, {x, 0}});
  Fetch(Part("d", {{c, 0}}));
  for (const int i : {a, b}) {
    spec_.nodes[i].spaces = {{MemorySpace::kDevice}, {MemorySpace::kDevice}};
  }
  spec_.nodes[c].spaces = {{MemorySpace::kDevice, MemorySpace::kHost}, {MemorySpace::kDevice}};
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b")));
  EXPECT_EQ(spec_.nodes[1].spaces.input(0), MemorySpace::kDevice);
  EXPECT_EQ(spec_.nodes[1].spaces.output(0), MemorySpace::kDevice);
}

TEST_F(FuseKernelsTest, TooManyAreDivided) {
  most_ = 3;
  int last = Feed();
  for (const char* name : {"a", "b", "c", "d", "e"}) last = Part(name, {{last, 0}});
  Fetch(last);
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d", "e")));
}

// Between two receives another device may wait for the first one's value.
TEST_F(FuseKernelsTest, NotAcrossReceives) {
  const int r = Flow(FlowOp::kRecv, {});
  const int a = Part("a", {{r, 0}});
  const int b = Part("b", {{a, 0}});
  Flow(FlowOp::kSend, {{b, 0}}, 0);
  const int s = Flow(FlowOp::kRecv, {});
  const int c = Part("c", {{b, 0}, {s, 0}});
  Fetch(Part("d", {{c, 0}}));
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d")));
}

struct Waiting : AsyncKernel {
  explicit Waiting(bool for_nodes) : for_nodes(for_nodes) {}
  void ComputeAsync(KernelContext&, KernelDone) override {}
  bool WaitsForNodes() const override { return for_nodes; }
  const bool for_nodes;
};

// A dequeue waits for the enqueue of what the first one gives, which no edge says.
TEST_F(FuseKernelsTest, NotAcrossWhatWaitsForNodes) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int b = Part("b", {{a, 0}});
  Fetch(Whole("enqueue", {{b, 0}}));
  const int dequeue = Add("dequeue", {.kernel = std::make_shared<Waiting>(true), .num_outputs = 1});
  const int c = Part("c", {{b, 0}, {dequeue, 0}});
  Fetch(Part("d", {{c, 0}}));
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d")));
}

// A ControlTrigger runs in any case, but not before what it waits for.
TEST_F(FuseKernelsTest, NotAcrossATriggerOfThat) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  Fetch(Whole("enqueue", {{a, 0}}));
  const int dequeue = Add("dequeue", {.kernel = std::make_shared<Waiting>(true), .num_outputs = 1});
  const int trigger = Flow(FlowOp::kControlTrigger, {}, 0);
  spec_.nodes[trigger].control_inputs = {dequeue};
  const int b = Part("b", {{a, 0}});
  spec_.nodes[b].control_inputs = {trigger};
  Fetch(b);
  EXPECT_THAT(Fused(), ElementsAre());
}

// The read of a variable waits for its updates, which wait for nothing.
TEST_F(FuseKernelsTest, AcrossWhatWaitsForNoNodes) {
  const int x = Feed();
  const int a = Part("a", {{x, 0}});
  const int read = Add("read", {.kernel = std::make_shared<Waiting>(false), .num_outputs = 1});
  const int b = Part("b", {{a, 0}, {read, 0}});
  Fetch(Part("c", {{b, 0}, {a, 0}}));
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b", "c")));
}

TEST_F(FuseKernelsTest, NotAcrossConditions) {
  spec_.frames.resize(1);
  const int x = Feed(), p = Feed();
  const int a = Part("a", {{x, 0}});
  const int s = Flow(FlowOp::kSwitch, {{a, 0}, {p, 0}}, 2);
  const int t = Flow(FlowOp::kSwitch, {{x, 0}, {p, 0}}, 2);
  const int b = Part("b", {{s, 1}, {a, 0}});  // If p.
  const int c = Part("c", {{b, 0}, {t, 1}});
  const int d = Part("d", {{t, 0}, {a, 0}});  // If not.
  const int e = Part("e", {{d, 0}, {s, 0}});
  const int m = Flow(FlowOp::kMerge, {{c, 0}, {e, 0}}, 2);
  const int f = Part("f", {{m, 0}, {a, 0}});
  Fetch(Part("g", {{f, 0}}));
  EXPECT_THAT(Fused(), UnorderedElementsAre(ElementsAre("b", "c"), ElementsAre("d", "e"),
                                            ElementsAre("f", "g")));
}

TEST_F(FuseKernelsTest, PredicatesMayBeFed) {
  const int x = Feed(), p = Feed();
  spec_.nodes[p].op = "Identity";
  const int s = Flow(FlowOp::kSwitch, {{x, 0}, {p, 0}}, 2);
  const int a = Part("a", {{s, 1}});
  Fetch(Part("b", {{a, 0}}));
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("a", "b")));
}

// Two reads of a reference to a variable may give different values.
TEST_F(FuseKernelsTest, PredicatesMayChange) {
  const int x = Feed(), variable = Whole("variable", {});
  const auto read = [&] {
    const int identity = Whole("read", {{variable, 0}});
    spec_.nodes[identity].op = "Identity";
    spec_.nodes[identity].inputs[0].snapshot = true;
    return identity;
  };
  const int p = read(), q = read();
  const auto on = [&](int predicate, bool snapshot) {
    const int s = Flow(FlowOp::kSwitch, {{x, 0}, {predicate, 0}}, 2);
    spec_.nodes[s].inputs[1].snapshot = snapshot;
    return s;
  };
  const int a = Part("a", {{on(p, false), 1}});
  const int b = Part("b", {{a, 0}, {on(q, false), 1}});
  const int c = Part("c", {{on(variable, true), 1}});
  const int d = Part("d", {{c, 0}, {on(variable, true), 1}});
  const int e = Part("e", {{on(p, false), 1}});
  Fetch(Part("f", {{e, 0}, {on(p, false), 1}}));
  Fetch(b);
  Fetch(d);
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("e", "f")));
}

/// A loop of two variables and a constant; `enters`: what the second one begins with.
class FuseLoopTest : public FuseKernelsTest {
 protected:
  void Loop(Input enters) {
    spec_.frames.resize(2);
    spec_.frames[1].parent = 0;
    const int x = Feed();
    if (enters.node < 0) enters = {x, 0};
    const int e1 = Flow(FlowOp::kEnter, {{x, 0}}, 1, 0, 1);
    const int e2 = Flow(FlowOp::kEnter, {enters}, 1, 0, 1);
    const int k = Flow(FlowOp::kConstantEnter, {{x, 0}}, 1, 0, 1);
    const int m1 = Flow(FlowOp::kMerge, {{e1, 0}, {0, 0}}, 2, 1);
    const int m2 = Flow(FlowOp::kMerge, {{e2, 0}, {0, 0}}, 2, 1);
    const int less = Whole("less", {{m1, 0}, {k, 0}}, 1);
    const int cond = Flow(FlowOp::kLoopCond, {{less, 0}}, 1, 1);
    const int s1 = Flow(FlowOp::kSwitch, {{m1, 0}, {cond, 0}}, 2, 1);
    const int s2 = Flow(FlowOp::kSwitch, {{m2, 0}, {cond, 0}}, 2, 1);
    const int a = Part("a", {{s1, 1}}, 1);
    const int b = Part("b", {{s2, 1}, {a, 0}}, 1);
    const int c = Part("c", {{b, 0}}, 1);
    const int n1 = Flow(FlowOp::kNextIteration, {{b, 0}}, 1, 1);
    const int n2 = Flow(FlowOp::kNextIteration, {{c, 0}}, 1, 1);
    const int exit = Flow(FlowOp::kExit, {{s2, 0}}, 1, 1);
    const int d = Part("d", {{exit, 0}, {enters.node, enters.port}});
    Fetch(Part("e", {{d, 0}, {x, 0}}));
    spec_.nodes[m1].inputs[1] = {n1, 0};
    spec_.nodes[m2].inputs[1] = {n2, 0};
  }
};

TEST_F(FuseLoopTest, VariablesOfALoopAreAliveTogether) {
  Loop({-1, 0});
  EXPECT_THAT(Fused(), UnorderedElementsAre(ElementsAre("a", "b", "c"), ElementsAre("d", "e")));
  for (size_t i = 0; i < spec_.nodes.size(); ++i) {
    if (spec_.nodes[i].flow != FlowOp::kMerge) continue;
    EXPECT_EQ(spec_.nodes[spec_.nodes[i].inputs[1].node].flow, FlowOp::kNextIteration);
    EXPECT_GT(spec_.nodes[i].inputs[1].node, static_cast<int>(i));
  }
}

TEST_F(FuseLoopTest, UnlessOneMayNotEnter) {
  const int y = Feed(), p = Feed();
  const int s = Flow(FlowOp::kSwitch, {{y, 0}, {p, 0}}, 2);
  Loop({s, 1});
  EXPECT_THAT(Fused(), UnorderedElementsAre(ElementsAre("b", "c"), ElementsAre("d", "e")));
}

// Of what is within a loop, some runs in the first iteration alone, and a variable that does not
// enter as it is may begin late.
TEST_F(FuseKernelsTest, BeforeTheVariablesOfALoop) {
  spec_.frames.resize(2);
  spec_.frames[1].parent = 0;
  const int x = Feed(), p = Feed();
  const int a = Part("a", {{x, 0}});
  const int e = Flow(FlowOp::kEnter, {{a, 0}}, 1, 0, 1);
  const int k = Flow(FlowOp::kConstantEnter, {{p, 0}}, 1, 0, 1);
  const int every = Part("every", {{k, 0}}, 1);
  const int first = Part("first", {{every, 0}, {e, 0}}, 1);
  const int elsewhere = Flow(FlowOp::kRecv, {}, 1, 1);  // What another device makes of `first`.
  const int m = Flow(FlowOp::kMerge, {{elsewhere, 0}, {0, 0}}, 2, 1);
  const int cond = Flow(FlowOp::kLoopCond, {{k, 0}}, 1, 1);
  const int s = Flow(FlowOp::kSwitch, {{m, 0}, {cond, 0}}, 2, 1);
  Flow(FlowOp::kSend, {{first, 0}}, 0, 1);
  const int next = Whole("next", {{s, 1}, {every, 0}}, 1);
  spec_.nodes[m].inputs[1] = {Flow(FlowOp::kNextIteration, {{next, 0}}, 1, 1), 0};
  const int exit = Flow(FlowOp::kExit, {{s, 0}}, 1, 1);
  Fetch(Part("b", {{a, 0}, {exit, 0}}));
  EXPECT_THAT(Fused(), ElementsAre());
}

// By way of the next iteration.
TEST_F(FuseKernelsTest, WhatComesOutOfALoopDependsOnAllThatGoesIn) {
  spec_.frames.resize(2);
  spec_.frames[1].parent = 0;
  const int x = Feed(), p = Feed();
  const int a = Part("a", {{x, 0}});
  const int e1 = Flow(FlowOp::kEnter, {{a, 0}}, 1, 0, 1);
  const int e2 = Flow(FlowOp::kEnter, {{x, 0}}, 1, 0, 1);
  const int k = Flow(FlowOp::kConstantEnter, {{p, 0}}, 1, 0, 1);
  const int m1 = Flow(FlowOp::kMerge, {{e1, 0}, {0, 0}}, 2, 1);
  const int m2 = Flow(FlowOp::kMerge, {{e2, 0}, {0, 0}}, 2, 1);
  const int cond = Flow(FlowOp::kLoopCond, {{k, 0}}, 1, 1);
  const int s1 = Flow(FlowOp::kSwitch, {{m1, 0}, {cond, 0}}, 2, 1);
  const int s2 = Flow(FlowOp::kSwitch, {{m2, 0}, {cond, 0}}, 2, 1);
  const int exit = Flow(FlowOp::kExit, {{s2, 0}}, 1, 1);
  const int b = Part("b", {{a, 0}, {exit, 0}});
  Fetch(Part("c", {{b, 0}}));
  const int sum = Whole("sum", {{s1, 1}, {s2, 1}}, 1);
  spec_.nodes[m1].inputs[1] = {Flow(FlowOp::kNextIteration, {{s1, 1}}, 1, 1), 0};
  spec_.nodes[m2].inputs[1] = {Flow(FlowOp::kNextIteration, {{sum, 0}}, 1, 1), 0};
  EXPECT_THAT(Fused(), ElementsAre(ElementsAre("b", "c")));
}

// Random graphs: the same values, and whatever waited for a node still does.
TEST_F(FuseKernelsTest, RandomGraphsMeanTheSame) {
  const auto combine = [](const std::string& what, const std::vector<size_t>& operands) {
    size_t value = std::hash<std::string>()(what);
    for (const size_t operand : operands) value = value * 31 + operand;
    return value;
  };
  // In the order in which the nodes stand; also says, by name, where each one is computed.
  const auto evaluate = [&](std::map<std::string, size_t>* places) {
    std::vector<std::vector<size_t>> values(spec_.nodes.size());
    std::map<std::string, size_t> at;
    for (size_t i = 0; i < spec_.nodes.size(); ++i) {
      const PlanSpec::Node& node = spec_.nodes[i];
      std::vector<size_t> operands;
      for (const Input& input : node.inputs) {
        EXPECT_LT(input.node, static_cast<int>(i));
        operands.push_back(values[input.node].at(input.port));
      }
      for (const int before : node.control_inputs) EXPECT_LT(before, static_cast<int>(i));
      if (const auto* fused = dynamic_cast<const Together*>(node.kernel.get())) {
        for (const auto& call : fused->calls.calls) {
          std::vector<size_t> of_call;
          for (const int operand : call.operands) of_call.push_back(operands.at(operand));
          operands.push_back(combine(call.node, of_call));
          at[call.node] = i;
        }
        for (const int output : fused->calls.outputs) values[i].push_back(operands.at(output));
      } else {
        values[i] = {combine(node.name + " (Op)", operands)};
        at[node.name + " (Op)"] = i;
      }
    }
    *places = at;
    std::vector<size_t> fetched;
    for (const Input& fetch : spec_.fetches) fetched.push_back(values[fetch.node].at(fetch.port));
    return fetched;
  };
  int fused = 0;
  for (int seed = 0; seed < HowMany("TROUPE_SEEDS", 300); ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
    spec_ = {};
    most_ = 2 + static_cast<size_t>(below(20));
    Feed();
    const int parts = 1 + below(9);
    std::vector<std::pair<std::string, std::string>> controls;
    for (int i = 1; i < 60; ++i) {
      std::vector<Input> inputs;
      for (int k = 1 + below(2); k >= 0; --k) inputs.push_back({std::max(0, i - 1 - below(8)), 0});
      const std::string name = "n" + std::to_string(i);
      if (below(10) < parts) {
        Part(name, inputs, 0, below(8) == 0 ? &kDoubles : &kFloats);
      } else {
        Whole(name, inputs);
      }
      if (i > 2 && below(4) == 0) {
        const int before = 1 + below(i - 1);
        spec_.nodes[i].control_inputs = {before};
        controls.emplace_back(spec_.nodes[before].name + " (Op)", name + " (Op)");
      }
      if (below(10) == 0) Fetch(i);
    }
    Fetch(59);
    std::map<std::string, size_t> before, after;
    const std::vector<size_t> expected = evaluate(&before);
    const size_t nodes = spec_.nodes.size();
    FuseKernels(&spec_);
    fused += spec_.nodes.size() < nodes ? 1 : 0;
    EXPECT_EQ(evaluate(&after), expected) << seed;
    for (const auto& [first, second] : controls) {
      const size_t a = after.at(first), b = after.at(second);
      if (a == b) continue;
      const std::vector<int>& waits = spec_.nodes[b].control_inputs;
      EXPECT_EQ(std::count(waits.begin(), waits.end(), static_cast<int>(a)), 1) << seed;
    }
  }
  EXPECT_GT(fused, HowMany("TROUPE_SEEDS", 300) / 3);
}

}  // namespace
}  // namespace troupe

// Primitive control flow in graphs as other programs write them, well-formed and not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "actors/executor/executor_role.h"
#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using testing::HasSubstr;

/// A graph written node by node, in the text form of a GraphDef.
class GraphText {
 public:
  GraphText& Node(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs, const std::string& attrs = "") {
    text_ += StrCat("node { name: \"", name, "\" op: \"", op, "\" ");
    for (const std::string& input : inputs) text_ += StrCat("input: \"", input, "\" ");
    text_ += StrCat(attrs, " }\n");
    return *this;
  }
  GraphText& Int(const std::string& name, int value,
                 const std::vector<std::string>& controls = {}) {
    return Node(
        name, "Const", controls,
        StrCat("attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \"value\" value { "
               "tensor { dtype: DT_INT32 tensor_shape {} int_val: ",
               value, " } } }"));
  }
  GraphText& Bool(const std::string& name, bool value) {
    return Node(
        name, "Const", {},
        StrCat("attr { key: \"dtype\" value { type: DT_BOOL } } attr { key: \"value\" value { "
               "tensor { dtype: DT_BOOL tensor_shape {} bool_val: ",
               value ? "true" : "false", " } } }"));
  }
  GraphText& Enter(const std::string& name, const std::string& input, const std::string& frame,
                   bool constant = false, int parallel = 10) {
    return Node(
        name, "Enter", {input},
        StrCat(kT, "attr { key: \"frame_name\" value { s: \"", frame,
               "\" } } attr { key: \"is_constant\" value { b: ", constant ? "true" : "false",
               " } } attr { key: \"parallel_iterations\" value { i: ", parallel, " } }"));
  }
  GraphText& Op(const std::string& name, const std::string& op,
                const std::vector<std::string>& inputs) {
    return Node(name, op, inputs, kT);
  }
  GraphText& Merge(const std::string& name, const std::string& a, const std::string& b) {
    return Node(name, "Merge", {a, b}, StrCat(kT, "attr { key: \"N\" value { i: 2 } }"));
  }
  /// for (i = <start>; i < <limit>; i += 1): `frame`/exit is the last i.
  GraphText& CountingLoop(const std::string& frame, const std::string& start,
                          const std::string& limit, int parallel = 10) {
    auto n = [&](const char* name) { return StrCat(frame, "/", name); };
    Enter(n("i"), start, frame, false, parallel).Enter(n("limit"), limit, frame, true, parallel);
    Merge(n("merge"), n("i"), n("next"));
    Op(n("less"), "Less", {n("merge"), n("limit")});
    Node(n("cond"), "LoopCond", {n("less")});
    Op(n("switch"), "Switch", {n("merge"), n("cond")});
    Op(n("body"), "Identity", {StrCat(n("switch"), ":1")});
    Int(n("one"), 1, {StrCat("^", n("body"))});
    Op(n("add"), "Add", {n("body"), n("one")});
    Op(n("next"), "NextIteration", {n("add")});
    return Op(n("exit"), "Exit", {n("switch")});
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr const char* kT = "attr { key: \"T\" value { type: DT_INT32 } } ";
  std::string text_;
};

struct Loaded {
  absl::Status status;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::unique_ptr<Session> session;
};

Loaded Load(const GraphText& text, bool optimize = true) {
  Loaded loaded;
  GraphDef def;
  loaded.status = ParseGraphDef(text.text(), &def);
  if (loaded.status.ok()) loaded.status = ImportGraphDef(def, {}, loaded.graph.get());
  SessionOptions options;
  options.threads = 2;
  options.optimize = optimize;
  loaded.session = *Session::Create(loaded.graph, options);
  return loaded;
}

/// The value of an integer tensor, or the error.
absl::StatusOr<int> Fetch(Loaded& loaded, const std::string& name, const NamedTensors& feeds = {},
                          RunOptions options = {}) {
  if (!loaded.status.ok()) return loaded.status;
  if (options.timeout == absl::InfiniteDuration()) options.timeout = absl::Seconds(20);
  std::vector<Tensor> values;
  absl::Status status = loaded.session->Run(options, feeds, {name}, {}, &values);
  if (!status.ok()) return status;
  return values[0].unchecked_scalar<int32_t>();
}

std::string Message(const absl::StatusOr<int>& result) {
  return std::string(result.status().message());
}

class ControlFlowTest : public testing::TestWithParam<bool> {
 protected:
  Loaded Load(const GraphText& text) { return troupe::Load(text, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Optimize, ControlFlowTest, testing::Bool());

TEST_P(ControlFlowTest, CountsWithAnyNumberOfParallelIterations) {
  for (int parallel : {1, 2, 10, 1000}) {
    GraphText g;
    g.Int("zero", 0).Int("limit", 100).CountingLoop("loop", "zero", "limit", parallel);
    Loaded loaded = Load(g);
    for (int run = 0; run < 3; ++run) {
      auto got = Fetch(loaded, "loop/exit");
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(*got, 100) << parallel;
    }
  }
}

// Whoever traces a step does not know how long it goes on.
TEST_P(ControlFlowTest, ATraceOfALongLoopIsBounded) {
  constexpr int kMost = kMostTraced;
  GraphText g;
  g.Int("zero", 0).Int("limit", kMost).CountingLoop("loop", "zero", "limit");
  Loaded loaded = Load(g);
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  std::vector<Tensor> values;
  const absl::Status ran = loaded.session->Run(options, {}, {"loop/exit"}, {}, &values, &metadata);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), kMost);
  ASSERT_EQ(metadata.step_stats().dev_stats_size(), 1);
  EXPECT_EQ(metadata.step_stats().dev_stats(0).node_stats_size(), kMost);
}

TEST_P(ControlFlowTest, LoopThatIsNotEnteredGivesItsStart) {
  GraphText g;
  g.Int("start", 7).Int("limit", 3).CountingLoop("loop", "start", "limit");
  Loaded loaded = Load(g);
  auto got = Fetch(loaded, "loop/exit");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, 7);
}

TEST_P(ControlFlowTest, LoopOnABranchThatIsNotTakenIsDead) {
  GraphText g;
  g.Bool("yes", true).Int("zero", 0).Int("five", 5).Int("ten", 10);
  g.Op("switch", "Switch", {"zero", "yes"});
  g.Op("limit", "Switch", {"ten", "yes"});
  g.CountingLoop("untaken", "switch", "limit").CountingLoop("taken", "switch:1", "limit:1");
  g.Merge("merge", "untaken/exit", "taken/exit");
  Loaded loaded = Load(g);
  auto got = Fetch(loaded, "merge");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, 10);
  auto index = Fetch(loaded, "merge:1");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(*index, 1);
  auto dead = Fetch(loaded, "untaken/exit");
  EXPECT_EQ(dead.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(dead), HasSubstr("dead"));
  // As a target it may be dead.
  EXPECT_TRUE(loaded.session->Run({}, {}, {"untaken/exit"}, nullptr).ok());
}

TEST_P(ControlFlowTest, ControlTriggerRunsAfterDeadInputs) {
  GraphText g;
  g.Bool("yes", true).Int("one", 1);
  g.Op("switch", "Switch", {"one", "yes"});
  g.Op("dead", "Identity", {"switch"});
  g.Node("trigger", "ControlTrigger", {"^dead"});
  g.Node("no_op", "NoOp", {"^dead"});
  g.Int("after", 3, {"^trigger"}).Int("never", 4, {"^no_op"});
  Loaded loaded = Load(g);
  auto after = Fetch(loaded, "after");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*after, 3);
  EXPECT_EQ(Fetch(loaded, "never").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ControlFlowTest, MergeOfTwoLiveInputsTakesOne) {
  GraphText g;
  g.Int("a", 3).Int("b", 3).Merge("merge", "a", "b");
  Loaded loaded = Load(g);
  auto got = Fetch(loaded, "merge");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, 3);
}

TEST_P(ControlFlowTest, PredicateMustBeAScalar) {
  GraphText g;
  g.Node("pred", "Placeholder", {}, "attr { key: \"dtype\" value { type: DT_BOOL } }");
  g.Int("one", 1).Op("switch", "Switch", {"one", "pred"}).Merge("merge", "switch", "switch:1");
  Loaded loaded = Load(g);
  auto got = Fetch(loaded, "merge", {{"pred:0", Tensor::Vector<bool>({true, false})}});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(got), HasSubstr("scalar"));
}

TEST_P(ControlFlowTest, EndlessLoopObeysDeadlineAndClose) {
  GraphText g;
  // i < limit for ever: the back edge passes i on unchanged.
  g.Int("zero", 0).Int("limit", 1);
  g.Enter("i", "zero", "f").Enter("l", "limit", "f", true);
  g.Merge("merge", "i", "next")
      .Op("less", "Less", {"merge", "l"})
      .Node("cond", "LoopCond", {"less"});
  g.Op("switch", "Switch", {"merge", "cond"}).Op("next", "NextIteration", {"switch:1"});
  g.Op("exit", "Exit", {"switch"});
  Loaded loaded = Load(g);
  RunOptions options;
  options.timeout = absl::Milliseconds(50);
  const auto start = std::chrono::steady_clock::now();
  auto late = Fetch(loaded, "exit", {}, options);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  // Whether the close finds the loop running or comes before it: the run is cancelled.
  std::promise<void> begun;
  std::thread runner([&] {
    begun.set_value();
    EXPECT_EQ(Fetch(loaded, "exit").status().code(), absl::StatusCode::kCancelled);
  });
  begun.get_future().wait();
  EXPECT_TRUE(loaded.session->Close().ok());
  runner.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_P(ControlFlowTest, FailureInAnIterationEndsTheStepAndLeavesNothing) {
  GraphText g;
  g.Int("zero", 0).Int("ten", 10).Int("minus", -1);
  g.CountingLoop("loop", "zero", "ten");
  // 1 / (i - 5) fails in the sixth iteration.
  g.Int("loop/five", 5, {"^loop/body"}).Op("loop/sub", "Sub", {"loop/body", "loop/five"});
  g.Op("loop/div", "FloorDiv", {"loop/one", "loop/sub"});
  g.Node("done", "NoOp", {"^loop/exit"});
  Loaded loaded = Load(g);
  for (int run = 0; run < 3; ++run) {
    absl::Status status = loaded.session->Run({}, {}, {"loop/div", "done"}, nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("loop/div"));
    auto got = Fetch(loaded, "loop/exit");
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, 10);
  }
}

TEST_P(ControlFlowTest, ConstantBehindAnEffectWaitsForIt) {
  GraphText g;
  const std::string attrs =
      "attr { key: \"dtype\" value { type: DT_INT32 } } attr { key: \"shape\" value { shape {} } }";
  g.Int("one", 1).Int("zero", 0).Int("ten", 10).Bool("yes", true);
  g.Node("v", "VarHandleOp", {}, attrs + " attr { key: \"shared_name\" value { s: \"v\" } }");
  g.Node("init", "AssignVariableOp", {"v", "zero"},
         "attr { key: \"dtype\" value { type: DT_INT32 } }");
  g.Node("add", "AssignAddVariableOp", {"v", "one"},
         "attr { key: \"dtype\" value { type: DT_INT32 } }");
  g.Int("start", 7, {"^add"});  // The only one that needs the update.
  g.CountingLoop("loop", "start", "ten");
  g.Node("read", "ReadVariableOp", {"v"}, "attr { key: \"dtype\" value { type: DT_INT32 } }");
  Loaded loaded = Load(g);
  ASSERT_TRUE(loaded.status.ok()) << loaded.status;
  ASSERT_TRUE(loaded.session->Run({}, {}, {"init"}, nullptr).ok());
  auto got = Fetch(loaded, "loop/exit");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, 10);
  auto value = Fetch(loaded, "read");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 1);
}

// --- what is not well-formed
// -----------------------------------------------------------------------

void ExpectRefused(const GraphText& text, const std::string& fetch,
                   const std::vector<std::string>& words) {
  for (bool optimize : {true, false}) {
    Loaded loaded = Load(text, optimize);
    auto got = Fetch(loaded, fetch);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
    for (const std::string& word : words) EXPECT_THAT(Message(got), HasSubstr(word));
  }
}

TEST(MalformedControlFlow, ExitWithoutEnter) {
  GraphText g;
  g.Int("one", 1).Op("exit", "Exit", {"one"});
  ExpectRefused(g, "exit", {"exit", "outside every loop"});
}

TEST(MalformedControlFlow, NextIterationOutsideALoop) {
  GraphText g;
  g.Int("one", 1).Op("next", "NextIteration", {"one"}).Op("y", "Identity", {"next"});
  ExpectRefused(g, "y", {"next", "outside every loop"});
}

TEST(MalformedControlFlow, FramesMixedUp) {
  GraphText g;
  g.Int("zero", 0).Int("limit", 3).CountingLoop("a", "zero", "limit");
  g.CountingLoop("b", "zero", "limit");
  g.Op("a/mixed", "Add", {"a/body", "b/body"}).Op("out", "Exit", {"a/mixed"});
  ExpectRefused(g, "out", {"a/mixed", "'a'", "'b'"});
}

TEST(MalformedControlFlow, ValueUsedInsideWithoutEnter) {
  GraphText g;
  g.Int("zero", 0).Int("limit", 3).CountingLoop("a", "zero", "limit");
  g.Op("a/mixed", "Add", {"a/body", "limit"}).Op("out", "Exit", {"a/mixed"});
  ExpectRefused(g, "out", {"a/mixed", "frame 'a'", "outside every loop"});
}

TEST(MalformedControlFlow, FetchInsideALoop) {
  GraphText g;
  g.Int("zero", 0).Int("limit", 3).CountingLoop("a", "zero", "limit");
  ExpectRefused(g, "a/body", {"a/body", "frame 'a'"});
}

TEST(MalformedControlFlow, OneFrameNameInTwoPlaces) {
  GraphText g;
  g.Int("zero", 0).Int("limit", 3).CountingLoop("a", "zero", "limit");
  g.Enter("again", "a/body", "a").Op("x1", "Exit", {"again"}).Op("x2", "Exit", {"x1"});
  ExpectRefused(g, "x2", {"again", "'a'"});
}

TEST(MalformedControlFlow, TwoConditions) {
  GraphText g;
  g.Int("zero", 0).Int("limit", 3).CountingLoop("a", "zero", "limit");
  g.Node("a/second", "LoopCond", {"a/less"}).Op("a/s2", "Switch", {"a/merge", "a/second"});
  g.Op("out", "Exit", {"a/s2"});
  GraphText both = g;
  both.Op("sum", "Add", {"out", "a/exit"});
  ExpectRefused(both, "sum", {"two conditions"});
}

TEST(MalformedControlFlow, MergeThatCanNeverFire) {
  GraphText g;
  // The loop ends in its first iteration; what the merge waits for is there from the second one on.
  g.Int("zero", 0).CountingLoop("a", "zero", "zero");
  g.Op("late", "Identity", {"a/next"}).Merge("stuck", "late", "again");
  g.Op("again", "NextIteration", {"stuck"}).Op("out", "Exit", {"stuck"});
  ExpectRefused(g, "out", {"node out was never computed", "a Merge without a live input"});
  g.CountingLoop("b", "zero", "out");
  ExpectRefused(g, "b/exit",
                {"node b/exit was never computed",
                 "loops that wait for something that never came: frame 'b'"});
}

TEST(MalformedControlFlow, MergeOfDeadInputs) {
  GraphText g;
  g.Bool("yes", true).Int("one", 1).Op("switch", "Switch", {"one", "yes"});
  g.Op("dead", "Identity", {"switch"}).Op("dead2", "Identity", {"switch"});
  g.Merge("merge", "dead", "dead2");
  ExpectRefused(g, "merge", {"merge", "dead"});
}

}  // namespace
}  // namespace troupe

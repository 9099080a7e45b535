// Calls of functions: branches, loops, recursion, errors, many at once; run directly and lowered.
#include "actors/session/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kInt = "attr { key: 'T' value { type: DT_INT32 } } ";

/// Functions of int32 scalars, in the text form of a FunctionDef.
std::string Function(const std::string& name, const std::vector<std::string>& args,
                     const std::string& nodes, const std::vector<std::string>& results,
                     const std::string& result_type = "DT_INT32") {
  std::string text = StrCat("function { signature { name: '", name, "' ");
  for (const std::string& arg : args) {
    text += StrCat("input_arg { name: '", arg, "' type: DT_INT32 } ");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    text += StrCat("output_arg { name: 'r", i, "' type: ", result_type, " } ");
  }
  text += "} " + nodes;
  for (size_t i = 0; i < results.size(); ++i) {
    text += StrCat("ret { key: 'r", i, "' value: '", results[i], "' } ");
  }
  return text + "}\n";
}

std::string NodeText(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs, const std::string& attrs = kInt) {
  std::string text = StrCat("{ name: '", name, "' op: '", op, "' ");
  for (const std::string& input : inputs) text += StrCat("input: '", input, "' ");
  return text + attrs + "} ";
}
std::string Body(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& attrs = kInt) {
  return "node_def " + NodeText(name, op, inputs, attrs);
}
std::string Constant(const std::string& name, int value) {
  return Body(name, "Const", {},
              StrCat("attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { "
                     "tensor { dtype: DT_INT32 tensor_shape {} int_val: ",
                     value, " } } } "));
}
std::string Types(const std::string& attr, int n) {
  std::string text = StrCat("attr { key: '", attr, "' value { list { ");
  for (int i = 0; i < n; ++i) text += "type: DT_INT32 ";
  return text + "} } } ";
}
std::string Func(const std::string& attr, const std::string& name) {
  return StrCat("attr { key: '", attr, "' value { func { name: '", name, "' } } } ");
}
std::string IfAttrs(const std::string& then_branch, const std::string& else_branch) {
  return "attr { key: 'Tcond' value { type: DT_BOOL } } " + Types("Tin", 1) + Types("Tout", 1) +
         Func("then_branch", then_branch) + Func("else_branch", else_branch);
}

/// The library of all tests.
std::string Library() {
  const std::string one = Constant("one", 1);
  return "library { " +
         Function("Inc", {"x"}, one + Body("a", "Add", {"x", "one:output:0"}), {"a:z:0"}) +
         Function("Dec", {"x"}, one + Body("a", "Sub", {"x", "one:output:0"}), {"a:z:0"}) +
         Function("Swap", {"x", "y"}, "", {"y", "x"}) + Function("Nothing", {}, "", {}) +
         Function("LessThan", {"i", "n"}, Body("l", "Less", {"i", "n"}), {"l:z:0"}, "DT_BOOL") +
         Function("Count", {"i", "n"}, one + Body("a", "Add", {"i", "one:output:0"}),
                  {"a:z:0", "n"}) +
         Function("Always", {"i", "n"}, Body("l", "LessEqual", {"n", "n"}), {"l:z:0"}, "DT_BOOL") +
         Function("AddTo", {"i", "s"}, Body("a", "Add", {"i", "s"}), {"a:z:0"}) +
         // SumTo(n) = n <= 0 ? 0 : n + SumTo(n - 1)
         Function("SumTo", {"n"},
                  Constant("zero", 0) + Body("go", "Less", {"zero:output:0", "n"}) +
                      Body("r", "StatelessIf", {"go:z:0", "n"}, IfAttrs("SumMore", "Pass")),
                  {"r:output:0"}) +
         Function("SumMore", {"n"},
                  one + Body("less", "Sub", {"n", "one:output:0"}) +
                      Body("rest", "SumTo", {"less:z:0"}, "") +
                      Body("s", "Add", {"n", "rest:r0:0"}),
                  {"s:z:0"}) +
         Function("Pass", {"n"}, "", {"n"}) +
         Function("Endless", {"n"}, Body("r", "Endless", {"n"}, ""), {"r:r0:0"}) +
         Function("EndlessCall", {"n"},
                  Body("r", "PartitionedCall", {"n"},
                       Types("Tin", 1) + Types("Tout", 1) + Func("f", "EndlessCall")),
                  {"r:output:0"}) +
         Function("Broken", {"x"}, Body("a", "Add", {"x", "ghost"}), {"a:z:0"}) + "} node " +
         NodeText("x", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_INT32 } } ") +
         "node " +
         NodeText("y", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_INT32 } } ") +
         "node " +
         NodeText("p", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_BOOL } } ");
}

constexpr const char* kLowered = "attr { key: '_lower_using_switch_merge' value { b: true } } ";

/// A session for the library and one node called "n".
struct Fixture {
  Fixture(const std::string& op, const std::vector<std::string>& inputs, const std::string& attrs,
          int threads = 2) {
    GraphDef def;
    status = ParseGraphDef(Library() + "node " + NodeText("n", op, inputs, attrs), &def);
    if (status.ok()) status = ImportGraphDef(def, {}, graph.get());
    SessionOptions options;
    options.threads = threads;
    session = *Session::Create(graph, options);
  }

  /// "1,2" or the error.
  std::string Run(const NamedTensors& feeds, int outputs = 1) {
    if (!status.ok()) return status.ToString();
    std::vector<std::string> fetches;
    for (int i = 0; i < outputs; ++i) fetches.push_back(StrCat("n:", i));
    std::vector<Tensor> values;
    RunOptions options;
    options.timeout = absl::Seconds(60);
    status = session->Run(options, feeds, fetches, {}, &values);
    if (!status.ok()) return std::exchange(status, absl::OkStatus()).ToString();
    std::string text;
    for (const Tensor& value : values) {
      if (!text.empty()) text += ",";
      text += std::to_string(value.unchecked_scalar<int32_t>());
    }
    return text;
  }

  absl::Status status;
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::unique_ptr<Session> session;
};

Tensor I(int32_t value) { return Tensor::Scalar(value); }

/// Every test of results runs in both ways.
class FunctionsTest : public testing::TestWithParam<bool> {
 protected:
  std::string Mark() const { return GetParam() ? kLowered : ""; }
};
INSTANTIATE_TEST_SUITE_P(DirectAndLowered, FunctionsTest, testing::Bool());

TEST_P(FunctionsTest, ACallGivesTheResults) {
  Fixture inc("PartitionedCall", {"x"},
              Types("Tin", 1) + Types("Tout", 1) + Func("f", "Inc") + Mark());
  EXPECT_EQ(inc.Run({{"x", I(4)}}), "5");
  EXPECT_EQ(inc.Run({{"x", I(-1)}}), "0");
  Fixture swap("StatefulPartitionedCall", {"x", "y"},
               Types("Tin", 2) + Types("Tout", 2) + Func("f", "Swap") + Mark());
  EXPECT_EQ(swap.Run({{"x", I(1)}, {"y", I(2)}}, 2), "2,1");
}

TEST_P(FunctionsTest, AFunctionOfNothingCanBeRun) {
  Fixture f("StatefulPartitionedCall", {},
            Types("Tin", 0) + Types("Tout", 0) + Func("f", "Nothing") + Mark());
  EXPECT_TRUE(f.session->Run({}, {}, {"n"}, nullptr).ok());
}

TEST_P(FunctionsTest, IfTakesOneBranch) {
  Fixture f("If", {"p", "x"}, IfAttrs("Inc", "Dec") + Mark());
  EXPECT_EQ(f.Run({{"p", Tensor::Scalar(true)}, {"x", I(4)}}), "5");
  EXPECT_EQ(f.Run({{"p", Tensor::Scalar(false)}, {"x", I(4)}}), "3");
}

TEST_P(FunctionsTest, CaseTakesTheLastBranchOutsideItsRange) {
  Fixture f("Case", {"x", "y"},
            Types("Tin", 1) + Types("Tout", 1) +
                "attr { key: 'branches' value { list { func { name: 'Inc' } func { name: 'Pass' } "
                "func { name: 'Dec' } } } } " +
                Mark());
  const int expected[] = {9, 11, 10, 9, 9};  // for -1 .. 3
  for (int i = -1; i < 4; ++i) {
    EXPECT_EQ(f.Run({{"x", I(i)}, {"y", I(10)}}), std::to_string(expected[i + 1])) << i;
  }
}

TEST_P(FunctionsTest, WhileGoesRound) {
  Fixture f("While", {"x", "y"},
            Types("T", 2) + Func("cond", "LessThan") + Func("body", "Count") + Mark());
  EXPECT_EQ(f.Run({{"x", I(0)}, {"y", I(10000)}}, 2), "10000,10000");
  EXPECT_EQ(f.Run({{"x", I(5)}, {"y", I(3)}}, 2), "5,3");
}

TEST_P(FunctionsTest, ForCountsBothWays) {
  auto attrs = Types("T", 1) + Func("body", "AddTo") + Mark();
  GraphDef def;
  std::string text = Library();
  for (const char* name : {"from", "to", "by"}) {
    text += "node " +
            NodeText(name, "Placeholder", {}, "attr { key: 'dtype' value { type: DT_INT32 } } ");
  }
  ASSERT_TRUE(
      ParseGraphDef(text + "node " + NodeText("n", "For", {"from", "to", "by", "x"}, attrs), &def)
          .ok());
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(def, {}, graph.get()).ok());
  auto session = *Session::Create(graph);
  auto run = [&](int from, int to, int by) -> absl::StatusOr<int> {
    std::vector<Tensor> values;
    absl::Status status = session->Run(
        {{"from", I(from)}, {"to", I(to)}, {"by", I(by)}, {"x", I(0)}}, {"n"}, {}, &values);
    if (!status.ok()) return status;
    return values[0].unchecked_scalar<int32_t>();
  };
  EXPECT_EQ(*run(0, 5, 1), 10);
  EXPECT_EQ(*run(0, 5, 2), 6);
  EXPECT_EQ(*run(5, 0, -1), 15);
  EXPECT_EQ(*run(3, 3, 0), 0);
  EXPECT_EQ(run(0, 5, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(0, 5, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(FunctionsTest, ErrorsOfBodiesNameFunctionAndNode) {
  Fixture broken("PartitionedCall", {"x"},
                 Types("Tin", 1) + Types("Tout", 1) + Func("f", "Broken") + Mark());
  const std::string error = broken.Run({{"x", I(4)}});
  EXPECT_THAT(error, HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(error, HasSubstr("'Broken'"));
  EXPECT_THAT(error, HasSubstr("ghost"));
  Fixture missing("PartitionedCall", {"x"},
                  Types("Tin", 1) + Types("Tout", 1) + Func("f", "Nobody") + Mark());
  EXPECT_THAT(missing.Run({{"x", I(4)}}), HasSubstr("Nobody"));
  Fixture count("PartitionedCall", {"x"},
                Types("Tin", 1) + Types("Tout", 1) + Func("f", "Count") + Mark());
  EXPECT_THAT(count.Run({{"x", I(4)}}), HasSubstr("INVALID_ARGUMENT"));
  Fixture type("While", {"x", "y"},
               Types("T", 2) + Func("cond", "LessThan") + Func("body", "LessThan") + Mark());
  EXPECT_THAT(type.Run({{"x", I(4)}, {"y", I(3)}}, 2), HasSubstr("INVALID_ARGUMENT"));
}

TEST(FunctionCallsTest, RecursionGoesAsDeepAsItMust) {
  for (int threads : {1, 2}) {
    Fixture f("SumTo", {"x"}, "", threads);
    EXPECT_EQ(f.Run({{"x", I(0)}}), "0");
    EXPECT_EQ(f.Run({{"x", I(10)}}), "55");
    EXPECT_EQ(f.Run({{"x", I(1000)}}), "500500");
    EXPECT_EQ(f.Run({{"x", I(5000)}}), "12502500") << threads;
    EXPECT_EQ(f.Run({{"x", I(3)}}), "6");
  }
}

TEST(FunctionCallsTest, RecursionWithoutEndIsAnError) {
  for (int threads : {1, 2}) {
    Fixture sum("SumTo", {"x"}, "", threads);
    EXPECT_THAT(sum.Run({{"x", I(1000000)}}), HasSubstr("RESOURCE_EXHAUSTED"));
    EXPECT_EQ(sum.Run({{"x", I(3)}}), "6");
    Fixture call("PartitionedCall", {"x"},
                 Types("Tin", 1) + Types("Tout", 1) + Func("f", "EndlessCall"), threads);
    const std::string error = call.Run({{"x", I(1)}});
    EXPECT_THAT(error, HasSubstr("RESOURCE_EXHAUSTED"));
    EXPECT_THAT(error, HasSubstr("EndlessCall"));
    EXPECT_LT(error.size(), size_t{1} << 16);  // Not every call of thousands.
    // Asked to be lowered, it cannot be, and is called all the same.
    Fixture lowered("PartitionedCall", {"x"},
                    Types("Tin", 1) + Types("Tout", 1) + Func("f", "EndlessCall") + kLowered,
                    threads);
    EXPECT_THAT(lowered.Run({{"x", I(1)}}), HasSubstr("RESOURCE_EXHAUSTED"));
    Fixture direct("Endless", {"x"}, "", threads);
    EXPECT_THAT(direct.Run({{"x", I(1)}}), HasSubstr("RESOURCE_EXHAUSTED"));
  }
}

/// Functions of one int32, each calling the next one, the last one giving its argument; `y` is the
/// call of the first one. Every level adds one to the result.
GraphDef Nested(int depth, const std::string& op, bool lowered) {
  GraphDef def;
  const auto call = [&](const std::string& function, const std::string& name,
                        const std::string& input, NodeDef* node) {
    node->set_name(name);
    node->set_op(op.empty() ? function : op);
    if (op.find("If") != std::string::npos) {
      node->add_input(input);  // What is not zero is true.
      (*node->mutable_attr())["Tcond"].set_type(DT_INT32);
    }
    node->add_input(input);
    if (op.empty()) return;
    for (const char* f : {"f", "then_branch"}) {
      (*node->mutable_attr())[f].mutable_func()->set_name(function);
    }
    (*node->mutable_attr())["else_branch"].mutable_func()->set_name(StrCat("F", depth));
    for (const char* types : {"Tin", "Tout"}) {
      (*node->mutable_attr())[types].mutable_list()->add_type(DT_INT32);
    }
    if (lowered) (*node->mutable_attr())["_lower_using_switch_merge"].set_b(true);
  };
  for (int i = 0; i <= depth; ++i) {
    FunctionDef* function = def.mutable_library()->add_function();
    function->mutable_signature()->set_name(StrCat("F", i));
    for (auto* arg : {function->mutable_signature()->add_input_arg(),
                      function->mutable_signature()->add_output_arg()}) {
      arg->set_type(DT_INT32);
      arg->set_name("x");
    }
    function->mutable_signature()->mutable_output_arg(0)->set_name("r");
    if (i == depth) {
      (*function->mutable_ret())["r"] = "x";
      continue;
    }
    NodeDef* one = function->add_node_def();
    one->set_name("one");
    one->set_op("Const");
    (*one->mutable_attr())["dtype"].set_type(DT_INT32);
    TensorProto* value = (*one->mutable_attr())["value"].mutable_tensor();
    value->set_dtype(DT_INT32);
    value->mutable_tensor_shape();
    value->add_int_val(1);
    call(StrCat("F", i + 1), "c", "x", function->add_node_def());
    NodeDef* sum = function->add_node_def();
    sum->set_name("a");
    sum->set_op("Add");
    sum->add_input(op.empty() ? "c:r:0" : "c:output:0");
    sum->add_input("one:output:0");
    (*sum->mutable_attr())["T"].set_type(DT_INT32);
    (*function->mutable_ret())["r"] = "a:z:0";
  }
  NodeDef* x = def.add_node();
  x->set_name("x");
  x->set_op("Placeholder");
  (*x->mutable_attr())["dtype"].set_type(DT_INT32);
  call("F0", "y", "x", def.add_node());
  return def;
}

TEST(FunctionCallsTest, FunctionsNestAsDeepAsTheyLike) {
  struct Case {
    const char* op;
    bool lowered;
  };
  for (const Case& c : {Case{"", false}, Case{"StatefulPartitionedCall", false},
                        Case{"StatefulPartitionedCall", true}, Case{"StatelessIf", false},
                        Case{"StatelessIf", true}}) {
    SCOPED_TRACE(StrCat(c.op, c.lowered ? " lowered" : ""));
    const int depth = std::string(c.op).empty() ? 1000 : 250;
    auto graph = std::make_shared<Graph>();
    const absl::Status imported =
        ImportGraphDef(Nested(depth, c.op, c.lowered), ImportOptions(), graph.get());
    ASSERT_TRUE(imported.ok()) << imported;
    auto session = Session::Create(graph);
    ASSERT_TRUE(session.ok());
    std::vector<Tensor> values;
    const absl::Status status = (*session)->Run({{"x", I(7)}}, {"y"}, {}, &values);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), 7 + depth);
  }
}

TEST(FunctionCallsTest, FunctionsNestedWithoutEndAreImported) {
  for (const char* op : {"", "PartitionedCall", "StatelessIf"}) {
    GraphDef def = Nested(10000, op, true);
    Graph graph;
    const absl::Status imported = ImportGraphDef(def, ImportOptions(), &graph);
    EXPECT_TRUE(imported.ok()) << imported;
  }
}

TEST(FunctionCallsTest, ManyThreadsCallAtOnce) {
  Fixture loop("While", {"x", "y"},
               Types("T", 2) + Func("cond", "LessThan") + Func("body", "Count"));
  Fixture sum("SumTo", {"x"}, "");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        std::vector<Tensor> values;
        const int n = 10 * t + i;
        if (!loop.session->Run({{"x", I(0)}, {"y", I(n)}}, {"n"}, {}, &values).ok() ||
            values[0].unchecked_scalar<int32_t>() != n) {
          ++wrong;
        }
        if (!sum.session->Run({{"x", I(n)}}, {"n"}, {}, &values).ok() ||
            values[0].unchecked_scalar<int32_t>() != n * (n + 1) / 2) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(FunctionCallsTest, SendMeetsRecv) {
  const std::string ends =
      "attr { key: 'tensor_name' value { s: 't' } } attr { key: 'send_device' value { s: 'a' } } "
      "attr { key: 'send_device_incarnation' value { i: 1 } } attr { key: 'recv_device' value { s: "
      "'b' } } ";
  GraphDef def;
  ASSERT_TRUE(
      ParseGraphDef(Library() + "node " + NodeText("s", "_Send", {"x"}, kInt + ends) + "node " +
                        NodeText("r", "_Recv", {},
                                 "attr { key: 'tensor_type' value { type: DT_INT32 } } " + ends) +
                        "node " + NodeText("n", "Neg", {"r"}),
                    &def)
          .ok());
  auto graph = std::make_shared<Graph>();
  ASSERT_TRUE(ImportGraphDef(def, {}, graph.get()).ok());
  auto session = *Session::Create(graph);
  std::vector<Tensor> values;
  for (int i = 0; i < 3; ++i) {
    absl::Status status = session->Run({{"x", I(i)}}, {"n"}, {"s"}, &values);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), -i);
  }
  RunOptions options;
  options.timeout = absl::Milliseconds(50);
  EXPECT_EQ(session->Run(options, {}, {"n"}, {}, &values).code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace troupe

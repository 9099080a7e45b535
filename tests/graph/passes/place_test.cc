#include "graph/passes/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/passes/prune.h"
#include "graph/passes/simplify.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Code = absl::StatusCode;

const char kCpu0[] = "/job:a/replica:0/task:0/device:CPU:0";
const char kCpu1[] = "/job:a/replica:0/task:0/device:CPU:1";
const char kGpu0[] = "/job:a/replica:0/task:0/device:GPU:0";
const char kPs0[] = "/job:ps/replica:0/task:0/device:CPU:0";

class PlaceTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Node* Placeholder(const std::string& name, const PartialShape& shape = {2, 2}) {
    return Add(
        NodeSpec("Placeholder", name).Attr("dtype", ElementType::kFloat).Attr("shape", shape));
  }
  NodeSpec Neg(const std::string& name, Output x) { return NodeSpec("Neg", name).Input(x); }
  Node* Variable(const std::string& name, const std::string& device = "") {
    return Add(NodeSpec("VariableV2", name)
                   .Attr("shape", PartialShape({}))
                   .Attr("dtype", ElementType::kFloat)
                   .Device(device));
  }
  Node* Const(const std::string& name, float value) {
    return Add(NodeSpec("Const", name)
                   .Attr("value", Tensor::Scalar(value))
                   .Attr("dtype", ElementType::kFloat));
  }
  Node* Int(const std::string& name, int32_t value) {
    return Add(NodeSpec("Const", name)
                   .Attr("value", Tensor::Scalar(value))
                   .Attr("dtype", ElementType::kInt32));
  }
  static NodeSpec With(NodeSpec spec, const std::string& name) {
    const std::string text = "loc:@" + name;
    spec.Attr("_class", absl::Span<const std::string>(&text, 1));
    return spec;
  }

  void UseDevices(std::vector<std::string> names) {
    input_.devices.clear();
    for (const std::string& name : names) {
      PlacementDevice& device = input_.devices.emplace_back();
      device.name = name;
      device.parsed = *DeviceName::Parse(name);
    }
  }
  Subgraph Pruned(std::vector<Output> feeds, std::vector<Output> fetches,
                  std::vector<Node*> targets = {}) {
    auto subgraph = Prune(graph_, feeds, fetches, targets);
    EXPECT_TRUE(subgraph.ok()) << subgraph.status();
    return *std::move(subgraph);
  }
  absl::Status Run(Subgraph subgraph) {
    placed_.clear();
    const absl::Status checked = CheckPlacement(input_, subgraph);
    const absl::Status status = Place(input_, &subgraph, &report_);
    EXPECT_EQ(checked, status);
    for (const SubNode& node : subgraph.nodes) placed_[node.original->name()] = node.device;
    // The same without a report.
    Subgraph again = subgraph;
    for (SubNode& node : again.nodes) node.device.clear();
    EXPECT_EQ(Place(input_, &again), status);
    for (size_t i = 0; i < again.nodes.size() && status.ok(); ++i) {
      EXPECT_EQ(again.nodes[i].device, subgraph.nodes[i].device);
      EXPECT_FALSE(again.nodes[i].device.empty()) << again.nodes[i].original->name();
    }
    return status;
  }
  std::string Error(Subgraph subgraph, Code code = Code::kInvalidArgument) {
    const absl::Status status = Run(std::move(subgraph));
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  std::string Why(const std::string& node) {
    for (const PlacementReport::Entry& entry : report_.entries) {
      if (entry.node == node) return entry.reason;
    }
    return "";
  }

  Graph graph_;
  PlacementInput input_;
  PlacementReport report_;
  std::map<std::string, std::string> placed_;
};

TEST_F(PlaceTest, OneDeviceTakesAll) {
  UseDevices({kCpu0});
  Node* x = Placeholder("x");
  Node* y = Add(Neg("y", x).Device("/device:CPU:0"));
  Node* z = Add(Neg("z", y).Device("/job:a/task:0"));
  ASSERT_TRUE(Run(Pruned({x}, {z})).ok());
  for (const auto& [name, device] : placed_) EXPECT_EQ(device, kCpu0) << name;
  Node* gpu = Add(Neg("gpu", x).Device("/device:GPU:0"));
  EXPECT_THAT(Error(Pruned({x}, {gpu})),
              AllOf(HasSubstr("'gpu' (op Neg)"), HasSubstr("/device:GPU:0"),
                    HasSubstr("does not exist"), HasSubstr(kCpu0), HasSubstr("soft")));
  input_.allow_soft_placement = true;
  EXPECT_TRUE(Run(Pruned({x}, {gpu})).ok());
  EXPECT_THAT(Why("gpu"), HasSubstr("soft placement"));
  // Nobody knows what another task was meant to be.
  Node* other = Add(Neg("other", x).Device("/job:b/task:7"));
  EXPECT_THAT(Error(Pruned({x}, {other})), AllOf(HasSubstr("/job:b/task:7"), HasSubstr("other")));
}

TEST_F(PlaceTest, FullAndPartialNames) {
  UseDevices({kCpu0, kCpu1, kPs0});
  Node* x = Placeholder("x");
  Node* full = Add(Neg("full", x).Device(kCpu1));
  Node* index = Add(Neg("index", x).Device("/cpu:1"));
  Node* job = Add(Neg("job", x).Device("/job:ps"));
  ASSERT_TRUE(Run(Pruned({x}, {full, index, job})).ok());
  EXPECT_EQ(placed_["full"], kCpu1);
  EXPECT_EQ(placed_["index"], kCpu1);
  EXPECT_EQ(placed_["job"], kPs0);
  EXPECT_EQ(placed_["x"], kCpu1);  // With its first consumer.
  EXPECT_EQ(Why("job"), "requested");
  Node* bad = Add(Neg("bad", x).Device("/nonsense"));
  EXPECT_THAT(Error(Pruned({x}, {bad})), AllOf(HasSubstr("'bad'"), HasSubstr("/nonsense")));
}

TEST_F(PlaceTest, ClassesColocate) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x");
  Node* a = Add(Neg("a", x).Device(kCpu1));
  Node* b = Add(With(Neg("b", x), "a"));
  Node* c = Add(With(Neg("c", x), "b"));
  Node* at = Add(Neg("at", x).Device("@c"));
  ASSERT_TRUE(Run(Pruned({x}, {a, b, c, at})).ok());
  for (const char* name : {"a", "b", "c", "at"}) EXPECT_EQ(placed_[name], kCpu1) << name;
  // By way of nodes that this step does not run.
  ASSERT_TRUE(Run(Pruned({x}, {c})).ok());
  EXPECT_EQ(placed_["c"], kCpu1);
  ASSERT_TRUE(Run(Pruned({x}, {at})).ok());
  EXPECT_EQ(placed_["at"], kCpu1);
  Node* lost = Add(Neg("lost", x).Device("@nowhere"));
  EXPECT_THAT(Error(Pruned({x}, {lost})), AllOf(HasSubstr("'lost'"), HasSubstr("'nowhere'")));
}

TEST_F(PlaceTest, ConflictsListTheWholeGroup) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x");
  Node* a = Add(Neg("a", x).Device(kCpu1));
  Node* b = Add(With(Neg("b", x).Device("/cpu:0"), "a"));
  Node* c = Add(With(Neg("c", x), "a"));
  const std::string error = Error(Pruned({x}, {a, b, c}));
  EXPECT_THAT(error, AllOf(HasSubstr("3 nodes"), HasSubstr("'a' (op Neg) asks for device"),
                           HasSubstr("'b' (op Neg) asks for device /cpu:0, is colocated with 'a'"),
                           HasSubstr("'c' (op Neg) is colocated with 'a'"), HasSubstr(kCpu0)));
  input_.allow_soft_placement = true;
  ASSERT_TRUE(Run(Pruned({x}, {a, b, c})).ok());
  EXPECT_EQ(placed_["a"], placed_["b"]);
  EXPECT_EQ(placed_["a"], placed_["c"]);
}

TEST_F(PlaceTest, ReferencesStayTogether) {
  UseDevices({kCpu0, kCpu1});
  Node* v = Variable("v", "/cpu:1");
  Node* add = Add(NodeSpec("AssignAdd", "add").Input(v).Input(Const("one", 1)));
  Node* again = Add(NodeSpec("AssignAdd", "again").Input(add).Input(Const("two", 2)));
  Node* read = Add(NodeSpec("Neg", "read").Input(again).Device("/cpu:0"));
  ASSERT_TRUE(Run(Pruned({}, {read})).ok());
  for (const char* name : {"v", "add", "again"}) EXPECT_EQ(placed_[name], kCpu1) << name;
  EXPECT_EQ(placed_["read"], kCpu0);  // Takes the value.
  EXPECT_EQ(Why("again"), "together with v: requested");
  Node* far = Add(NodeSpec("AssignAdd", "far").Input(v).Input(Const("three", 3)).Device("/cpu:0"));
  EXPECT_THAT(Error(Pruned({}, {far})), HasSubstr("'far' (op AssignAdd) asks for device /cpu:0, "
                                                  "takes a reference from 'v'"));
}

TEST_F(PlaceTest, ResourcesStayTogetherThroughWhatPassesThemOn) {
  UseDevices({kCpu0, kCpu1});
  Node* handle = Add(NodeSpec("VarHandleOp", "handle")
                         .Attr("shape", PartialShape({}))
                         .Attr("dtype", ElementType::kFloat)
                         .Device("/cpu:1"));
  Node* same = Add(NodeSpec("Identity", "same").Input(handle));
  Node* p = Add(NodeSpec("Placeholder", "p").Attr("dtype", ElementType::kBool));
  Node* branch = Add(NodeSpec("Switch", "branch").Input(same).Input(p));
  Node* enter = Add(NodeSpec("Enter", "enter")
                        .Input(Output(branch, 1))
                        .Attr("frame_name", "f")
                        .Attr("is_constant", true));
  Node* read =
      Add(NodeSpec("ReadVariableOp", "read").Input(enter).Attr("dtype", ElementType::kFloat));
  Node* exit = Add(NodeSpec("Exit", "exit").Input(read));
  ASSERT_TRUE(Run(Pruned({p}, {exit})).ok());
  for (const char* name : {"handle", "same", "branch", "enter", "read"}) {
    EXPECT_EQ(placed_[name], kCpu1) << name;
  }
}

TEST_F(PlaceTest, KernelsDecideWhere) {
  UseDevices({kGpu0, kCpu0});
  input_.lacks_kernel = [](const Node& node, const std::string& type) {
    return type == "CPU" || node.op() != "Exp" ? nullptr : &node;
  };
  Node* x = Placeholder("x");
  Node* neg = Add(Neg("neg", x));
  Node* exp = Add(NodeSpec("Exp", "exp").Input(neg));
  Node* gpu = Add(NodeSpec("Exp", "gpu").Input(neg).Device("/gpu:0"));
  ASSERT_TRUE(Run(Pruned({x}, {exp})).ok());
  EXPECT_EQ(placed_["neg"], kGpu0);
  EXPECT_EQ(placed_["exp"], kCpu0);
  EXPECT_EQ(Why("exp"), "the only device with a kernel");
  EXPECT_THAT(Error(Pruned({x}, {gpu})),
              HasSubstr("'gpu' (op Exp) asks for device /gpu:0, has no kernel on GPU"));
  input_.allow_soft_placement = true;
  ASSERT_TRUE(Run(Pruned({x}, {gpu})).ok());
  EXPECT_EQ(placed_["gpu"], kCpu0);
  // Colocated with one that cannot be there.
  Node* near = Add(With(Neg("near", x).Device("/gpu:0"), "exp"));
  ASSERT_TRUE(Run(Pruned({x}, {exp, near})).ok());
  EXPECT_EQ(placed_["near"], kCpu0);
  input_.allow_soft_placement = false;
  EXPECT_THAT(Error(Pruned({x}, {exp, near})),
              AllOf(HasSubstr("'exp' (op Exp) has no kernel on GPU"), HasSubstr("'near'")));
  // Or with one of another step.
  input_.lacks_kernel = [exp](const Node& node, const std::string& type) {
    return type == "GPU" && (&node == exp || node.name() == "gpu2") ? exp : nullptr;
  };
  Node* gpu2 = Add(Neg("gpu2", x).Device("/gpu:0"));
  EXPECT_THAT(Error(Pruned({x}, {gpu2})),
              HasSubstr("'gpu2' (op Neg) asks for device /gpu:0, must be with 'exp' (op Exp), "
                        "which has no kernel on GPU"));
}

TEST_F(PlaceTest, StateStaysWhereItWas) {
  UseDevices({kCpu0, kCpu1});
  Node* v = Variable("v");
  Node* add = Add(NodeSpec("AssignAdd", "add").Input(v).Input(Const("one", 1)));
  ASSERT_TRUE(Run(Pruned({}, {add})).ok());
  EXPECT_EQ(placed_["v"], kCpu0);
  EXPECT_THAT(Why("v"), HasSubstr("state"));
  input_.default_device = "/cpu:1";
  ASSERT_TRUE(Run(Pruned({}, {add})).ok());
  EXPECT_EQ(placed_["v"], kCpu1);
  std::unordered_map<std::string, std::string> fixed = {{"v", kCpu0}};
  input_.fixed = &fixed;
  ASSERT_TRUE(Run(Pruned({}, {add})).ok());
  EXPECT_EQ(placed_["add"], kCpu0);
  EXPECT_THAT(Why("v"), HasSubstr("earlier step"));
  Node* far = Add(NodeSpec("AssignAdd", "far").Input(v).Input(Const("two", 2)).Device("/cpu:1"));
  EXPECT_THAT(Error(Pruned({}, {far})),
              HasSubstr(StrCat("'v' (op VariableV2) was placed on ", kCpu0, " by an earlier")));
  // Colocated with what is not run now.
  Node* with = Add(With(Neg("with", Const("three", 3)), "v"));
  ASSERT_TRUE(Run(Pruned({}, {with})).ok());
  EXPECT_EQ(placed_["with"], kCpu0);
  fixed["v"] = kPs0;
  EXPECT_THAT(Error(Pruned({}, {add}), Code::kUnavailable),
              AllOf(HasSubstr("'v'"), HasSubstr(kPs0), HasSubstr("gone")));
}

TEST_F(PlaceTest, DevicesAreChecked) {
  Node* x = Placeholder("x");
  EXPECT_THAT(Error(Pruned({x}, {Add(Neg("y", x))})), HasSubstr("no devices"));
  UseDevices({"/device:CPU:0"});
  EXPECT_THAT(Error(Pruned({x}, {Add(Neg("z", x))})), HasSubstr("not complete"));
  UseDevices({kCpu0});
  input_.default_device = "/job:b";
  EXPECT_THAT(Error(Pruned({x}, {Add(Neg("w", x))})), HasSubstr("/job:b"));
}

TEST_F(PlaceTest, WorthwhileBranchesAreSpread) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x", {500, 500});
  auto chain = [&](const std::string& name) {
    Node* node = x;
    for (int i = 0; i < 3; ++i) {
      node = Add(NodeSpec("MatMul", StrCat(name, i)).Input(node).Input(x));
    }
    return node;
  };
  Node* a = chain("a");
  Node* b = chain("b");
  Node* sum = Add(NodeSpec("AddV2", "sum").Input(a).Input(b));
  ASSERT_TRUE(Run(Pruned({x}, {sum})).ok());
  EXPECT_EQ(placed_["a0"], placed_["a2"]);
  EXPECT_EQ(placed_["b0"], placed_["b2"]);
  EXPECT_NE(placed_["a0"], placed_["b0"]);
  EXPECT_THAT(report_.ToString(), AllOf(HasSubstr("finishes first"), HasSubstr("predicted: ")));
  const double spread = report_.predicted_us;
  // Two devices of one processor do not compute at once.
  for (PlacementDevice& device : input_.devices) device.processor = 0;
  ASSERT_TRUE(Run(Pruned({x}, {sum})).ok());
  EXPECT_EQ(placed_["a0"], placed_["b0"]);
  EXPECT_GT(report_.predicted_us, 1.9 * spread);
}

TEST_F(PlaceTest, MeasuredTimesCount) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x");
  Node* a = Add(Neg("a", x));
  Node* b = Add(Neg("b", x));
  Node* sum = Add(NodeSpec("AddV2", "sum").Input(a).Input(b));
  ASSERT_TRUE(Run(Pruned({x}, {sum})).ok());
  EXPECT_EQ(placed_["a"], placed_["b"]);
  CostModel costs;
  costs.Record("a", 500, {16});
  costs.Record("b", 500, {16});
  input_.costs = &costs;
  ASSERT_TRUE(Run(Pruned({x}, {sum})).ok());
  EXPECT_NE(placed_["a"], placed_["b"]);
  // Not if moving it costs more than it saves.
  input_.within_process = {2000, 10, 0};
  ASSERT_TRUE(Run(Pruned({x}, {sum})).ok());
  Node* more = Add(NodeSpec("AddV2", "more").Input(sum).Input(sum));
  ASSERT_TRUE(Run(Pruned({x}, {more})).ok());
  EXPECT_EQ(placed_["sum"], placed_["more"]);
  // A faster device takes it all.
  input_.within_process = {1, 1, 0};
  input_.devices[1].speed = 10;
  ASSERT_TRUE(Run(Pruned({x}, {more})).ok());
  EXPECT_EQ(placed_["a"], kCpu1);
  EXPECT_EQ(placed_["b"], kCpu1);
}

// A card: products in a thousandth of the time, 10 GB/s to and from the host.
constexpr DeviceFigures kCard{1e7, 1e6, 5, 10, 1e4};

TEST_F(PlaceTest, ProductsGoToADeviceThatIsFastAndSmallWorkStays) {
  UseDevices({kCpu0, kGpu0});
  Node* x = Placeholder("x", {1000, 1000});
  const auto product = [this](const std::string& name, Output a, Output b) {
    return Add(NodeSpec("MatMul", name).Input(a).Input(b));
  };
  Node* a = product("a", x, x);
  Node* b = product("b", a, x);
  Node* small = Add(Neg("small", Placeholder("s")));
  Node* large = Add(Neg("large", x));
  Node* counter = Variable("counter");
  Node* count = Add(NodeSpec("AssignAdd", "count").Input(counter).Input(Const("one", 1)));
  const auto run = [&] {
    return Run(Pruned({x, Output(graph_.FindNode("s"))}, {b, small, large}, {count}));
  };
  // Nothing is known of it: it might be the same processor.
  for (PlacementDevice& device : input_.devices) device.processor = 0;
  ASSERT_TRUE(run().ok());
  for (const auto& [name, device] : placed_) EXPECT_EQ(device, kCpu0) << name;
  input_.devices[1].processor = -1;
  input_.devices[1].figures = kCard;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(placed_["a"], kGpu0);
  EXPECT_EQ(placed_["b"], kGpu0);
  EXPECT_THAT(Why("a"), HasSubstr("finishes first"));
  // 10 us there, 10 us back: 0.1 us of work is not worth it.
  EXPECT_EQ(placed_["small"], kCpu0);
  // Steps to come may use it there.
  for (const char* name : {"counter", "count"}) EXPECT_EQ(placed_[name], kGpu0) << name;
  // Nor 1600 us of a core, if the link takes 4000 us for each of 4 MB.
  input_.devices[1].figures->transfer_bytes_per_us = 1e3;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(placed_["large"], kCpu0);
  EXPECT_EQ(placed_["a"], kGpu0);
  EXPECT_EQ(report_.entries.size(), placed_.size());
}

TEST_F(PlaceTest, StateOfNumbersGoesToACardThatHasRoom) {
  UseDevices({kCpu0, kGpu0, kPs0});
  const auto variable = [this](const std::string& name, ElementType type, int64_t size) {
    return Add(
        NodeSpec("VarHandleOp", name).Attr("shape", PartialShape({size})).Attr("dtype", type));
  };
  std::vector<Node*> all = {
      variable("large", ElementType::kFloat, 1000),  variable("larger", ElementType::kFloat, 2000),
      variable("small", ElementType::kDouble, 10),   variable("integers", ElementType::kInt32, 10),
      variable("strings", ElementType::kString, 10), variable("asks", ElementType::kFloat, 10)};
  Node* here = Add(NodeSpec("VarIsInitializedOp", "here").Input(all[5]).Device("/cpu:0"));
  Node* stack = Add(
      NodeSpec("StackV2", "stack").Input(Int("most", 3)).Attr("elem_type", ElementType::kFloat));
  all.push_back(here);
  all.push_back(stack);
  const auto run = [&] { return Run(Pruned({}, {}, all)); };
  // A card that does not say how fast it is gets what asks for it.
  ASSERT_TRUE(run().ok());
  for (const auto& [name, device] : placed_) EXPECT_EQ(device, kCpu0) << name;
  input_.devices[1].figures = kCard;
  input_.devices[1].memory = 5000;
  ASSERT_TRUE(run().ok());
  for (const char* name : {"large", "small", "stack"}) EXPECT_EQ(placed_[name], kGpu0) << name;
  for (const char* name : {"larger", "integers", "strings", "asks", "here"}) {
    EXPECT_EQ(placed_[name], kCpu0) << name;
  }
  EXPECT_THAT(Why("large"), HasSubstr("holds state, and all that must be with it has kernels"));
  EXPECT_THAT(Why("larger"), HasSubstr("holds state: the default device"));
  // What one of them lacks a kernel for keeps all that must be with it away.
  input_.lacks_kernel = [](const Node& node, const std::string& type) -> const Node* {
    return type == "GPU" && node.name() == "small" ? &node : nullptr;
  };
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(placed_["small"], kCpu0);
  EXPECT_EQ(placed_["large"], kGpu0);
  // Where earlier steps have put something it stays; a body's state is where its caller is.
  const std::unordered_map<std::string, std::string> fixed = {{"large", kCpu0}};
  input_.fixed = &fixed;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(placed_["large"], kCpu0);
  EXPECT_EQ(placed_["larger"], kCpu0);
  input_.fixed = nullptr;
  input_.default_device = "/cpu:0";
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(placed_["large"], kCpu0);
  // Another task's card is not the first choice.
  input_.default_device.clear();
  input_.devices[1].parsed = *DeviceName::Parse("/job:ps/replica:0/task:0/device:GPU:0");
  input_.devices[1].name = input_.devices[1].parsed.ToString();
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(placed_["large"], kCpu0);
}

TEST_F(PlaceTest, WhatDoesNotFitStays) {
  UseDevices({kCpu0, kGpu0});
  input_.devices[1].figures = kCard;
  Node* x = Placeholder("x", {1000, 1000});  // 4,000,000 bytes each.
  Node* chain = x;
  for (int i = 0; i < 10; ++i) {
    chain = Add(NodeSpec("MatMul", StrCat("y", i)).Input(chain).Input(x));
  }
  // Three at a time: the older ones are free again.
  input_.devices[1].memory = 12'000'000;
  ASSERT_TRUE(Run(Pruned({x}, {chain})).ok());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(placed_[StrCat("y", i)], kGpu0) << i;
  input_.devices[1].memory = 7'999'999;
  ASSERT_TRUE(Run(Pruned({x}, {chain})).ok());
  for (const auto& [name, device] : placed_) EXPECT_EQ(device, kCpu0) << name;
  EXPECT_THAT(Why("y0"), HasSubstr(StrCat("memory for it: not ", kGpu0)));
  // Who asks for it gets it, and who asks for what is not there gets a CPU.
  Node* asked = Add(NodeSpec("MatMul", "asked").Input(x).Input(x).Device("/gpu:0"));
  Node* soft = Add(NodeSpec("MatMul", "soft").Input(x).Input(x).Device("/gpu:3"));
  ASSERT_TRUE(Run(Pruned({x}, {asked})).ok());
  EXPECT_EQ(placed_["asked"], kGpu0);
  EXPECT_THAT(Error(Pruned({x}, {soft})), HasSubstr("/gpu:3"));
  input_.allow_soft_placement = true;
  input_.devices[1].memory = 0;
  ASSERT_TRUE(Run(Pruned({x}, {soft})).ok());
  EXPECT_EQ(placed_["soft"], kCpu0);
}

TEST_F(PlaceTest, ConstantsGoWithTheirConsumersAndTrivialOpsWithTheirInputs) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x");
  Node* two = Const("two", 2);
  Node* far = Add(NodeSpec("AddV2", "far").Input(x).Input(two).Device("/cpu:1"));
  Node* same = Add(NodeSpec("Identity", "same").Input(far));
  Node* shape = Add(NodeSpec("Shape", "shape").Input(same));
  Subgraph subgraph = Pruned({x}, {same, shape});
  ASSERT_TRUE(Run(subgraph).ok());
  for (const char* name : {"x", "two", "same", "shape"}) EXPECT_EQ(placed_[name], kCpu1) << name;
  EXPECT_EQ(Why("same"), "with its input far");
  EXPECT_THAT(Why("two"), HasSubstr("constant"));
  Simplify(SimplifyOptions(), {}, &subgraph);
  ASSERT_TRUE(Run(subgraph).ok());
  EXPECT_EQ(placed_["two"], kCpu1);
}

TEST_F(PlaceTest, LoopsStayOnOneDevice) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x");
  Node* limit = Add(NodeSpec("Enter", "limit")
                        .Input(Const("ten", 10))
                        .Attr("frame_name", "f")
                        .Attr("is_constant", true));
  Node* enter = Add(NodeSpec("Enter", "enter").Input(Const("zero", 0)).Attr("frame_name", "f"));
  const Output inputs[] = {enter, Output()};
  Node* merge = Add(NodeSpec("Merge", "merge").Input(absl::MakeConstSpan(inputs)));
  Node* less = Add(NodeSpec("Less", "less").Input(merge).Input(limit));
  Node* cond = Add(NodeSpec("LoopCond", "cond").Input(less));
  Node* branch = Add(NodeSpec("Switch", "switch").Input(merge).Input(cond));
  Node* add = Add(
      NodeSpec("AddV2", "add").Input(Output(branch, 1)).Input(Output(branch, 1)).Device("/cpu:1"));
  Node* next = Add(NodeSpec("NextIteration", "next").Input(add));
  ASSERT_TRUE(graph_.AddBackEdge(next, merge, 1).ok());
  Node* exit = Add(NodeSpec("Exit", "exit").Input(Output(branch, 0)));
  Node* before = Add(Neg("before", x).Device("/cpu:0"));
  Node* after = Add(NodeSpec("AddV2", "after").Input(exit).Input(before));
  ASSERT_TRUE(Run(Pruned({x}, {after})).ok());
  for (const char* name :
       {"limit", "enter", "merge", "less", "cond", "switch", "next", "exit", "zero"}) {
    EXPECT_EQ(placed_[name], kCpu1) << name;
  }
  // Both ends of a back edge, even if they ask for something else.
  Node* other = Add(Neg("other", x).Device("/cpu:0"));
  EXPECT_TRUE(Run(Pruned({x}, {after, other})).ok());
  EXPECT_EQ(placed_["next"], placed_["merge"]);
}

TEST_F(PlaceTest, SpreadsAtRandomForTests) {
  UseDevices({kCpu0, kCpu1, kPs0});
  Node* x = Placeholder("x");
  Node* v = Variable("v", "/gpu:7");
  std::vector<Output> all;
  for (int i = 0; i < 30; ++i) {
    all.emplace_back(Add(NodeSpec("AssignAdd", StrCat("add", i))
                             .Input(v)
                             .Input(Add(NodeSpec("Sum", StrCat("sum", i))
                                            .Input(Add(Neg(StrCat("neg", i), x)))
                                            .Input(Add(NodeSpec("Range", StrCat("range", i))
                                                           .Input(Int(StrCat("a", i), 0))
                                                           .Input(Int(StrCat("b", i), 2))
                                                           .Input(Int(StrCat("c", i), 1))))))));
  }
  std::set<std::string> used;
  std::map<std::string, std::string> first;
  for (uint64_t seed : {1, 2, 1}) {
    input_.spread_seed = seed;
    ASSERT_TRUE(Run(Pruned({x}, all)).ok());
    if (first.empty()) first = placed_;
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(placed_[StrCat("add", i)], placed_["v"]);
      used.insert(placed_[StrCat("neg", i)]);
    }
  }
  EXPECT_EQ(used.size(), 3u);
  EXPECT_EQ(placed_, first);
  // A smaller step draws the same.
  ASSERT_TRUE(Run(Pruned({x}, {all[3]})).ok());
  EXPECT_EQ(placed_["neg3"], first["neg3"]);
  UseDevices({kCpu0});
  EXPECT_TRUE(Run(Pruned({x}, {all[3]})).ok());
}

TEST_F(PlaceTest, ReportsAreTables) {
  UseDevices({kCpu0, kCpu1});
  Node* x = Placeholder("x");
  CostModel costs;
  costs.Record("y", 1234.5, {});
  input_.costs = &costs;
  ASSERT_TRUE(Run(Pruned({x}, {Add(Neg("y", x).Device("/cpu:1"))})).ok());
  EXPECT_EQ(report_.ToString(),
            StrCat("node  op           device", std::string(32, ' '), "takes      why\n",
                   "x     Placeholder  ", kCpu1, "  -          fed: with its consumer\n",
                   "y     Neg          ", kCpu1, "  1234.5 us  requested\n"));
}

}  // namespace
}  // namespace troupe

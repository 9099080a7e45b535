#include "graph/passes/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/passes/frames.h"
#include "graph/passes/prune.h"
#include "graph/passes/simplify.h"
#include "tests/graph/passes/partition_player.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string DeviceName(int number) {
  return StrCat("/job:a/replica:0/task:", number / 2, "/device:CPU:", number % 2);
}

/// Checks what every partitioning promises; `whole` is what was partitioned.
void CheckWellFormed(const Subgraph& whole, const PartitionedGraph& graph) {
  std::map<std::pair<const Node*, int>, int> copies;
  for (const DevicePartition& partition : graph.partitions) {
    const std::vector<SubNode>& nodes = partition.subgraph.nodes;
    EXPECT_FALSE(nodes.empty());
    const auto frames = FindFrames(partition.subgraph);
    ASSERT_TRUE(frames.ok()) << partition.device << ": " << frames.status();
    for (int32_t i = 0; i < static_cast<int32_t>(nodes.size()); ++i) {
      const SubNode& node = nodes[i];
      ASSERT_NE(node.original, nullptr);
      EXPECT_EQ(node.device, partition.device);
      ++copies[{node.original, static_cast<int>(node.kind)}];
      if (node.kind == SubNode::Kind::kOp) {
        ASSERT_EQ(static_cast<int>(node.inputs.size()), node.original->num_inputs());
      }
      for (const SubOutput& input : node.inputs) {
        ASSERT_GE(input.node, 0);
        ASSERT_LT(input.node, static_cast<int32_t>(nodes.size()));
        ASSERT_LT(input.port, nodes[input.node].num_outputs());
        // No cycles but loops.
        const bool back =
            nodes[input.node].original->op() == "NextIteration" && node.original->op() == "Merge";
        EXPECT_TRUE(back || input.node < i) << node.original->name();
      }
      EXPECT_TRUE(std::is_sorted(node.control_inputs.begin(), node.control_inputs.end()));
      for (int32_t control : node.control_inputs) {
        EXPECT_LT(control, i);
        EXPECT_EQ(nodes[control].kind, SubNode::Kind::kOp);
      }
    }
  }
  // Every node is there, only copied ones more than once; nothing else but what crossing needs.
  for (const SubNode& node : whole.nodes) {
    const int times = copies[{node.original, static_cast<int>(node.kind)}];
    const std::string& op = node.original->op();
    const bool copied = node.kind != SubNode::Kind::kOp || op == "Const" || op == "Enter";
    EXPECT_TRUE(copied || times == 1) << node.original->name();
    EXPECT_TRUE(node.kind != SubNode::Kind::kOp || times >= 1) << node.original->name();
    copies.erase({node.original, static_cast<int>(node.kind)});
  }
  for (const auto& [node, times] : copies) {
    EXPECT_TRUE(node.first->graph() == graph.added.get() || times == 0) << node.first->name();
  }
  // Pairs.
  std::set<std::string> names;
  size_t ends = 0;
  for (const Transfer& transfer : graph.transfers) {
    EXPECT_TRUE(names.insert(transfer.name).second) << transfer.name;
    const DevicePartition& from = graph.partitions[transfer.from];
    const DevicePartition& to = graph.partitions[transfer.to];
    EXPECT_NE(transfer.from, transfer.to);
    const Node& send = *from.subgraph.nodes[transfer.send].original;
    const Node& recv = *to.subgraph.nodes[transfer.recv].original;
    EXPECT_EQ(send.op(), "_Send");
    EXPECT_EQ(recv.op(), "_Recv");
    EXPECT_EQ(send.input_type(0), recv.output_type(0));
    for (const Node* end : {&send, &recv}) {
      EXPECT_EQ(end->attrs().GetOr<std::string>("tensor_name", ""), transfer.name);
      EXPECT_EQ(end->attrs().GetOr<std::string>("send_device", ""), from.device);
      EXPECT_EQ(end->attrs().GetOr<std::string>("recv_device", ""), to.device);
    }
    ends += 2;
  }
  size_t found = 0;
  for (const DevicePartition& partition : graph.partitions) {
    for (const SubNode& node : partition.subgraph.nodes) {
      found += node.original->op() == "_Send" || node.original->op() == "_Recv";
    }
  }
  EXPECT_EQ(found, ends);
}

class PartitionTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Node* Placeholder(const std::string& name) {
    return Add(NodeSpec("Placeholder", name).Attr("dtype", ElementType::kFloat));
  }
  Node* Const(const std::string& name, float value, Node* control = nullptr) {
    NodeSpec spec("Const", name);
    spec.Attr("value", Tensor::Scalar(value)).Attr("dtype", ElementType::kFloat);
    if (control != nullptr) spec.ControlInput(control);
    return Add(spec);
  }
  Node* Unary(const std::string& op, const std::string& name, Output x) {
    return Add(NodeSpec(op, name).Input(x));
  }
  Node* Binary(const std::string& op, const std::string& name, Output x, Output y) {
    return Add(NodeSpec(op, name).Input(x).Input(y));
  }
  Node* Enter(const std::string& name, Output x, const std::string& frame, bool constant = false) {
    return Add(
        NodeSpec("Enter", name).Input(x).Attr("frame_name", frame).Attr("is_constant", constant));
  }
  Node* LoopMerge(const std::string& name, Output enter) {
    const Output inputs[] = {enter, Output()};
    return Add(NodeSpec("Merge", name).Input(absl::MakeConstSpan(inputs)));
  }
  Node* Merge(const std::string& name, Output a, Output b) {
    const Output inputs[] = {a, b};
    return Add(NodeSpec("Merge", name).Input(absl::MakeConstSpan(inputs)));
  }
  void Back(Output value, Node* merge, const std::string& name) {
    Node* next = Unary("NextIteration", name, value);
    ASSERT_TRUE(graph_.AddBackEdge(next, merge, 1).ok());
  }

  /// for (i = x; i < limit; ) i += step; gives the Exit. Names begin with `name`.
  Node* Loop(const std::string& name, Output x, Output limit, Output step) {
    Node* merge = LoopMerge(name + "_merge", Enter(name + "_enter", x, name));
    Node* less = Binary("Less", name + "_less", merge, Enter(name + "_limit", limit, name, true));
    Node* cond = Unary("LoopCond", name + "_cond", less);
    Node* branch = Binary("Switch", name + "_switch", merge, cond);
    Node* add =
        Binary("AddV2", name + "_add", Output(branch, 1), Enter(name + "_step", step, name, true));
    Back(add, merge, name + "_next");
    return Unary("Exit", name + "_exit", Output(branch, 0));
  }

  Subgraph Placed(std::vector<Output> feeds, std::vector<Output> fetches,
                  std::vector<Node*> targets, const std::map<std::string, int>& devices) {
    auto subgraph = Prune(graph_, feeds, fetches, targets);
    EXPECT_TRUE(subgraph.ok()) << subgraph.status();
    for (SubNode& node : subgraph->nodes) {
      auto found = devices.find(node.original->name());
      node.device = DeviceName(found == devices.end() ? 0 : found->second);
    }
    return *std::move(subgraph);
  }
  PartitionedGraph Cut(const Subgraph& subgraph, const PartitionOptions& options = {}) {
    auto graph = Partition(subgraph, options);
    EXPECT_TRUE(graph.ok()) << graph.status();
    CheckWellFormed(subgraph, *graph);
    return *std::move(graph);
  }
  absl::Status Failure(const Subgraph& subgraph) { return Partition(subgraph, {}).status(); }

  static std::string Names(const PartitionedGraph& graph, size_t p) {
    std::string names;
    for (const SubNode& node : graph.partitions[p].subgraph.nodes) {
      names += node.original->name() + " ";
    }
    return names;
  }
  static const SubNode& Find(const PartitionedGraph& graph, size_t p, const std::string& name) {
    for (const SubNode& node : graph.partitions[p].subgraph.nodes) {
      if (node.original->name() == name) return node;
    }
    ADD_FAILURE() << "no " << name << " in " << Names(graph, p);
    return graph.partitions[p].subgraph.nodes.front();
  }
  static const Node& Original(const PartitionedGraph& graph, size_t p, int32_t node) {
    return *graph.partitions[p].subgraph.nodes[node].original;
  }
  static int CountOp(const PartitionedGraph& graph, const std::string& op) {
    int count = 0;
    for (const DevicePartition& partition : graph.partitions) {
      for (const SubNode& node : partition.subgraph.nodes) count += node.original->op() == op;
    }
    return count;
  }

  /// Plays cut and whole graph several times and compares.
  void Compare(const Subgraph& whole, const PartitionedGraph& graph,
               const std::vector<double>& feeds, int times = 5) {
    const PartitionedGraph one = AsOnePartition(whole);
    PartitionPlayer alone(one, 1);
    const std::vector<PlayedFetch> want = alone.Play(feeds);
    ASSERT_THAT(alone.errors, ElementsAre());
    for (int seed = 0; seed < times; ++seed) {
      PartitionPlayer player(graph, seed);
      const std::vector<PlayedFetch> got = player.Play(feeds);
      ASSERT_THAT(player.errors, ElementsAre()) << "seed " << seed;
      for (size_t f = 0; f < want.size(); ++f) {
        EXPECT_TRUE(want[f].arrived) << f;
        EXPECT_EQ(got[f].arrived, want[f].arrived) << "fetch " << f << " seed " << seed;
        EXPECT_EQ(got[f].dead, want[f].dead) << "fetch " << f << " seed " << seed;
        EXPECT_EQ(got[f].value, want[f].value) << "fetch " << f << " seed " << seed;
      }
    }
  }

  Graph graph_;
};

TEST_F(PartitionTest, OneDeviceIsLeftAlone) {
  Node* x = Placeholder("x");
  Node* y = Unary("Neg", "y", x);
  const PartitionedGraph cut = Cut(Placed({x}, {y, y}, {}, {}));
  ASSERT_EQ(cut.partitions.size(), 1u);
  EXPECT_EQ(Names(cut, 0), "x y ");
  EXPECT_EQ(cut.partitions[0].device, DeviceName(0));
  EXPECT_THAT(cut.partitions[0].feeds, ElementsAre(0));
  EXPECT_THAT(cut.partitions[0].fetches, ElementsAre(0, 1));
  EXPECT_THAT(cut.fetches, ElementsAre(PartitionPlace{0, 0}, PartitionPlace{0, 1}));
  EXPECT_TRUE(cut.transfers.empty());
  auto nothing = Partition(Subgraph(), {});
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->partitions.empty());
}

TEST_F(PartitionTest, ConsumersOnOneDeviceShareARecv) {
  Node* a = Placeholder("a");
  Node* b = Unary("Neg", "b", a);
  Node* c = Unary("Neg", "c", b);
  Node* d = Binary("AddV2", "d", b, b);
  Node* e = Unary("Neg", "e", b);
  PartitionOptions options;
  options.incarnation = [](const std::string& device) { return device == DeviceName(0) ? 77 : 88; };
  const Subgraph whole = Placed({a}, {c, d, e, b}, {}, {{"c", 1}, {"d", 1}, {"e", 2}});
  const PartitionedGraph cut = Cut(whole, options);
  ASSERT_EQ(cut.partitions.size(), 3u);
  EXPECT_EQ(Names(cut, 0), "a b b/send b/send_1 ");
  EXPECT_EQ(Names(cut, 1), "b/recv c d ");
  EXPECT_EQ(Names(cut, 2), "b/recv_1 e ");
  ASSERT_EQ(cut.transfers.size(), 2u);
  EXPECT_EQ(cut.transfers[0].name, "edge_0_b:0");
  EXPECT_EQ(cut.transfers[1].name, "edge_1_b:0");
  EXPECT_FALSE(cut.transfers[0].control);
  const SubNode& recv = Find(cut, 1, "b/recv");
  EXPECT_TRUE(recv.inputs.empty());
  EXPECT_TRUE(recv.control_inputs.empty());
  EXPECT_EQ(recv.original->attrs().GetOr<int64_t>("send_device_incarnation", 0), 77);
  EXPECT_THAT(cut.fetches, ElementsAre(PartitionPlace{1, 0}, PartitionPlace{1, 1},
                                       PartitionPlace{2, 0}, PartitionPlace{0, 0}));
  EXPECT_THAT(cut.partitions[1].fetches, ElementsAre(0, 1));
  Compare(whole, cut, {3});
}

TEST_F(PartitionTest, PortsAreSentApart) {
  Node* a = Placeholder("a");
  Node* p = Add(NodeSpec("Placeholder", "p").Attr("dtype", ElementType::kBool));
  Node* branch = Binary("Switch", "branch", a, p);
  Node* neg = Unary("Neg", "neg", Output(branch, 1));
  Node* merge = Merge("merge", Output(branch, 0), neg);
  const Subgraph whole = Placed({a, p}, {merge}, {}, {{"neg", 1}, {"merge", 2}});
  const PartitionedGraph cut = Cut(whole);
  std::vector<std::string> names;
  for (const Transfer& transfer : cut.transfers) names.push_back(transfer.name);
  EXPECT_THAT(names, ElementsAre("edge_0_branch:1", "edge_1_branch:0", "edge_2_neg:0"));
  Compare(whole, cut, {3, 0});
  Compare(whole, cut, {3, 1});
}

TEST_F(PartitionTest, ControlEdgesSendNothing) {
  Node* a = Add(NodeSpec("NoOp", "a"));
  Node* b = Add(NodeSpec("NoOp", "b").ControlInput(a));
  Node* c = Add(NodeSpec("NoOp", "c").ControlInput(a).ControlInput(b));
  const PartitionedGraph cut = Cut(Placed({}, {}, {c}, {{"b", 1}, {"c", 1}}));
  EXPECT_EQ(Names(cut, 0), "a nothing a/send ");
  EXPECT_EQ(Names(cut, 1), "a/recv b c ");
  ASSERT_EQ(cut.transfers.size(), 1u);
  EXPECT_EQ(cut.transfers[0].name, "edge_0_^a");
  EXPECT_TRUE(cut.transfers[0].control);
  const SubNode& send = Find(cut, 0, "a/send");
  EXPECT_THAT(send.control_inputs, ElementsAre(0));
  EXPECT_EQ(cut.partitions[0].subgraph.nodes[send.inputs[0].node].values[0].num_elements(), 0);
  EXPECT_TRUE(Find(cut, 1, "a/recv").control_inputs.empty());
  EXPECT_THAT(Find(cut, 1, "b").control_inputs, ElementsAre(0));
  EXPECT_THAT(Find(cut, 1, "c").control_inputs, ElementsAre(0, 1));
  EXPECT_THAT(cut.partitions[1].subgraph.targets, ElementsAre(2));
}

TEST_F(PartitionTest, FeedsAndConstantsAreCopied) {
  Node* x = Placeholder("x");
  Node* unused = Placeholder("unused");
  Node* one = Const("one", 1);
  Node* two = Const("two", 2);
  Node* a = Binary("AddV2", "a", x, one);
  Node* b = Binary("AddV2", "b", x, one);
  Node* c = Binary("AddV2", "c", x, two);
  Subgraph whole =
      Placed({unused, x}, {a, b, c, one}, {}, {{"b", 1}, {"c", 1}, {"one", 2}, {"two", 2}});
  const PartitionedGraph cut = Cut(whole);
  EXPECT_TRUE(cut.transfers.empty());
  // The fetched constant stays at home, too.
  ASSERT_EQ(cut.partitions.size(), 3u);
  EXPECT_EQ(cut.feeds[0].size(), 0u);
  EXPECT_THAT(cut.feeds[1], ElementsAre(PartitionPlace{0, 0}, PartitionPlace{2, 0}));
  EXPECT_THAT(cut.partitions[0].feeds, ElementsAre(1));
  Compare(whole, cut, {0, 5});
  // A device that has only such things has nothing left to do.
  Simplify(SimplifyOptions(), {}, &whole);
  whole.fetches.pop_back();
  const PartitionedGraph folded = Cut(whole);
  ASSERT_EQ(folded.partitions.size(), 2u);
  EXPECT_EQ(folded.fetches[1].partition, 1);
  Compare(whole, folded, {0, 5});
}

TEST_F(PartitionTest, ReferencesAndResourcesDoNotCross) {
  Node* v = Add(NodeSpec("VariableV2", "v")
                    .Attr("shape", PartialShape({}))
                    .Attr("dtype", ElementType::kFloat));
  Node* set = Binary("AssignAdd", "set", v, Const("one", 1));
  absl::Status status = Failure(Placed({}, {set}, {}, {{"set", 1}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'set' (op AssignAdd)"), HasSubstr("reference"), HasSubstr("'v'"),
                    HasSubstr(DeviceName(1))));
  Node* handle = Add(NodeSpec("VarHandleOp", "h")
                         .Attr("shape", PartialShape({}))
                         .Attr("dtype", ElementType::kFloat));
  Node* read =
      Add(NodeSpec("ReadVariableOp", "r").Input(handle).Attr("dtype", ElementType::kFloat));
  status = Failure(Placed({}, {read}, {}, {{"r", 1}}));
  EXPECT_THAT(std::string(status.message()), HasSubstr("resource"));
  Subgraph unplaced = Placed({}, {read}, {}, {});
  unplaced.nodes[1].device.clear();
  EXPECT_THAT(std::string(Failure(unplaced).message()), HasSubstr("no device"));
}

TEST_F(PartitionTest, VariablesAreReadAfterWhatTheReaderFollows) {
  Node* v = Add(NodeSpec("VariableV2", "v")
                    .Attr("shape", PartialShape({}))
                    .Attr("dtype", ElementType::kFloat));
  std::vector<Output> reads;
  Node* one = Const("one", 1);
  Node* last = nullptr;
  for (int i = 0; i < 4; ++i) {
    NodeSpec add("AssignAdd", StrCat("add", i));
    add.Input(v).Input(one);
    if (last != nullptr) add.ControlInput(last);
    Node* added = Add(add);
    // Far away, and after the update only by way of a third device.
    Node* between = Add(NodeSpec("NoOp", StrCat("between", i)).ControlInput(added));
    last = Add(NodeSpec("Neg", StrCat("read", i)).Input(v).ControlInput(between));
    reads.push_back(last);
  }
  const Subgraph whole = Placed(
      {}, reads, {},
      {{"read0", 1}, {"between0", 2}, {"read1", 1}, {"read2", 1}, {"between2", 1}, {"read3", 2}});
  const PartitionedGraph cut = Cut(whole);
  Compare(whole, cut, {}, 20);
  PartitionPlayer player(cut, 0);
  EXPECT_EQ(player.Play({})[3].value, -4);
}

TEST_F(PartitionTest, LossyBetweenTasksOnly) {
  Node* a = Placeholder("a");
  Node* b = Add(NodeSpec("Neg", "b").Input(a).Attr("_lossy_16bit", true));
  Node* c = Unary("Neg", "c", b);
  Node* d = Unary("Neg", "d", c);
  Node* i = Add(NodeSpec("Cast", "i").Input(d).Attr("DstT", ElementType::kInt32));
  Node* j = Unary("Neg", "j", i);
  const Subgraph whole = Placed({a}, {j}, {}, {{"b", 0}, {"c", 2}, {"d", 4}, {"i", 4}, {"j", 0}});
  auto lossy = [](const PartitionedGraph& cut) {
    std::vector<bool> result;
    for (const Transfer& transfer : cut.transfers) {
      result.push_back(transfer.lossy);
      const SubNode& recv = cut.partitions[transfer.to].subgraph.nodes[transfer.recv];
      EXPECT_EQ(recv.original->attrs().GetOr<bool>("_lossy_16bit", false), transfer.lossy);
    }
    return result;
  };
  EXPECT_THAT(lossy(Cut(whole)), ElementsAre(true, false, false));
  PartitionOptions options;
  options.lossy_between_tasks = true;
  EXPECT_THAT(lossy(Cut(whole, options)), ElementsAre(true, true, false));
  EXPECT_THAT(lossy(Cut(Placed({a}, {c}, {}, {{"c", 1}}), options)), ElementsAre(false));
}

TEST_F(PartitionTest, LossyTransfersAreBfloat16) {
  Node* v = Add(NodeSpec("VariableV2", "v")
                    .Attr("dtype", ElementType::kFloat)
                    .Attr("shape", PartialShape({})));
  Node* set = Binary("AssignAdd", "set", v, Const("one", 1));
  Node* read = Add(NodeSpec("Neg", "read").Input(v).ControlInput(set));
  const Subgraph whole = Placed({}, {read}, {}, {{"read", 2}});
  PartitionOptions options;
  options.lossy_between_tasks = true;
  const PartitionedGraph cut = Cut(whole, options);
  Compare(whole, cut, {}, 10);  // What is read is read after the assignment.
  const Transfer* value = nullptr;
  for (const Transfer& transfer : cut.transfers) {
    if (transfer.lossy) value = &transfer;
  }
  ASSERT_NE(value, nullptr);
  const std::vector<SubNode>& from = cut.partitions[value->from].subgraph.nodes;
  const SubNode& send = from[value->send];
  EXPECT_EQ(*send.original->attrs().Get<ElementType>("T"), ElementType::kBfloat16);
  const SubNode& shorten = from[send.inputs[0].node];
  EXPECT_EQ(shorten.original->op(), "Cast");
  EXPECT_EQ(shorten.original->attrs().GetOr<bool>("Truncate", false), true);
  const std::vector<SubNode>& to = cut.partitions[value->to].subgraph.nodes;
  EXPECT_EQ(to[value->recv].output_type(0), ElementType::kBfloat16);
  int lengthened = 0;
  for (const SubNode& node : to) {
    for (const SubOutput& input : node.inputs) {
      if (input.node != value->recv) continue;
      ++lengthened;
      EXPECT_EQ(node.original->op(), "Cast");
      EXPECT_EQ(node.output_type(0), ElementType::kFloat);
    }
  }
  EXPECT_EQ(lengthened, 1);
}

TEST_F(PartitionTest, ALoopOverTwoDevicesHasAControlLoop) {
  Node* x = Placeholder("x");
  Node* exit = Loop("while", x, Const("ten", 10), Const("two", 2));
  const Subgraph whole = Placed({x}, {exit}, {}, {{"while_add", 1}});
  const PartitionedGraph cut = Cut(whole);
  ASSERT_EQ(cut.partitions.size(), 2u);
  // The step enters where it is added; condition and value cross, the sum comes back.
  EXPECT_EQ(Names(cut, 1),
            "two nothing control_loop_1/enter control_loop_1/merge while_cond/recv "
            "control_loop_1/switch control_loop_1/next_iteration while_step while_switch/recv "
            "while_add while_add/send ");
  ASSERT_EQ(cut.transfers.size(), 3u);
  for (int transfer : {0, 1}) {
    const SubNode& recv = cut.partitions[1].subgraph.nodes[cut.transfers[transfer].recv];
    ASSERT_EQ(recv.control_inputs.size(), 1u);
    EXPECT_EQ(Original(cut, 1, recv.control_inputs[0]).name(), "control_loop_1/merge");
  }
  const SubNode& enter = Find(cut, 1, "control_loop_1/enter");
  EXPECT_EQ(enter.original->attrs().GetOr<std::string>("frame_name", ""), "while");
  const SubNode& loop_switch = Find(cut, 1, "control_loop_1/switch");
  EXPECT_EQ(Original(cut, 1, loop_switch.inputs[1].node).name(), "while_cond/recv");
  // At home the Recv of the sum needs one as well; its condition is at hand.
  const SubNode& home = Find(cut, 0, "control_loop_1/switch");
  EXPECT_EQ(Original(cut, 0, home.inputs[1].node).name(), "while_cond");
  for (double start : {0., 9., 10., 30.}) Compare(whole, cut, {start});
}

TEST_F(PartitionTest, WhoOnlySendsNeedsNoControlLoop) {
  Node* x = Placeholder("x");
  Node* merge = LoopMerge("merge", Enter("enter", x, "f"));
  Node* less = Binary("Less", "less", merge, Enter("limit", Const("ten", 10), "f", true));
  Node* cond = Unary("LoopCond", "cond", less);
  Node* branch = Binary("Switch", "switch", merge, cond);
  Node* add = Binary("AddV2", "add", Output(branch, 1), Enter("step", Const("one", 1), "f", true));
  Back(add, merge, "next");
  Node* print = Unary("Neg", "print", Output(branch, 1));
  Node* exit = Unary("Exit", "exit", Output(branch, 0));
  Node* sum = LoopMerge("sum", Enter("sum_enter", x, "f"));
  Node* sum_switch = Binary("Switch", "sum_switch", sum, cond);
  Back(Binary("AddV2", "sum_add", Output(sum_switch, 1), print), sum, "sum_next");
  Node* sum_exit = Unary("Exit", "sum_exit", Output(sum_switch, 0));
  std::map<std::string, int> devices;
  for (const char* name : {"print", "sum", "sum_switch", "sum_add", "sum_exit", "sum_enter"}) {
    devices[name] = 1;
  }
  const Subgraph whole = Placed({x}, {exit, sum_exit}, {}, devices);
  const PartitionedGraph cut = Cut(whole);
  EXPECT_THAT(Names(cut, 0), Not(HasSubstr("control_loop")));
  EXPECT_THAT(Names(cut, 1), HasSubstr("control_loop"));
  for (double start : {3., 10.}) Compare(whole, cut, {start});
}

TEST_F(PartitionTest, LoopsOverThreeDevices) {
  Node* x = Placeholder("x");
  Node* exit = Loop("while", x, Const("ten", 10), Const("two", 2));
  const Subgraph whole = Placed({x}, {exit}, {},
                                {{"while_merge", 0},
                                 {"while_less", 1},
                                 {"while_cond", 2},
                                 {"while_switch", 1},
                                 {"while_add", 0},
                                 {"while_exit", 2},
                                 {"while_enter", 1},
                                 {"while_next", 2}});
  const PartitionedGraph cut = Cut(whole);
  EXPECT_EQ(cut.partitions.size(), 3u);
  for (size_t p = 0; p < 3; ++p) EXPECT_THAT(Names(cut, p), HasSubstr("control_loop_1/merge"));
  for (double start : {0., 9., 10.}) Compare(whole, cut, {start});
}

TEST_F(PartitionTest, LoopsNest) {
  Node* x = Placeholder("x");
  Node* limit = Const("limit", 6);
  Node* merge = LoopMerge("merge", Enter("enter", x, "outer"));
  Node* outer_limit = Enter("outer_limit", limit, "outer", true);
  Node* less = Binary("Less", "less", merge, outer_limit);
  Node* cond = Unary("LoopCond", "cond", less);
  Node* branch = Binary("Switch", "switch", merge, cond);
  Node* body = Unary("Identity", "body", Output(branch, 1));
  Node* one = Const("one", 1, body);
  Node* more = Binary("AddV2", "more", body, one);
  Node* inner = Loop("inner", body, more, one);
  Back(Binary("AddV2", "sum", inner, one), merge, "next");
  Node* exit = Unary("Exit", "exit", Output(branch, 0));
  const Subgraph whole = Placed({x}, {exit}, {}, {{"inner_add", 1}, {"inner_less", 2}, {"sum", 0}});
  const PartitionedGraph cut = Cut(whole);
  // The inner control loop is entered from the outer one.
  for (size_t p : {1, 2}) {
    for (const SubNode& node : cut.partitions[p].subgraph.nodes) {
      if (node.original->op() != "Enter" || node.original->graph() == &graph_) continue;
      const Node& from = Original(cut, p, node.inputs[0].node);
      const bool is_inner = node.original->attrs().GetOr<std::string>("frame_name", "") == "inner";
      EXPECT_EQ(from.op(), is_inner ? "Merge" : "Const") << from.name();
    }
  }
  for (double start : {-2., 5., 6., 7.}) Compare(whole, cut, {start});
}

TEST_F(PartitionTest, ALoopInABranchNotTaken) {
  Node* x = Placeholder("x");
  Node* p = Add(NodeSpec("Placeholder", "p").Attr("dtype", ElementType::kBool));
  Node* branch = Binary("Switch", "branch", x, p);
  Node* taken = Unary("Identity", "taken", Output(branch, 1));
  Node* exit = Loop("while", taken, Const("ten", 10, taken), Const("two", 2, taken));
  Node* merge = Merge("merge", Output(branch, 0), exit);
  const Subgraph whole = Placed({x, p}, {merge, exit}, {}, {{"while_add", 1}, {"while_less", 2}});
  const PartitionedGraph cut = Cut(whole);
  Compare(whole, cut, {1, 1});
  Compare(whole, cut, {1, 0});
}

TEST_F(PartitionTest, LoopsAcrossDevicesNeedACondition) {
  Node* x = Placeholder("x");
  Node* p = Add(NodeSpec("Placeholder", "p").Attr("dtype", ElementType::kBool));
  Node* merge = LoopMerge("merge", Enter("enter", x, "f"));
  Node* branch = Binary("Switch", "switch", merge, Enter("pred", p, "f", true));
  Back(Unary("Neg", "neg", Output(branch, 1)), merge, "next");
  Node* exit = Unary("Exit", "exit", Output(branch, 0));
  EXPECT_TRUE(Partition(Placed({x, p}, {exit}, {}, {}), {}).ok());
  const absl::Status status = Failure(Placed({x, p}, {exit}, {}, {{"neg", 1}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'f'"), HasSubstr("LoopCond")));
}

TEST_F(PartitionTest, AFrameThatDoesNotRepeatNeedsNoCondition) {
  Node* x = Placeholder("x");
  Node* in = Enter("in", x, "f");
  Node* neg = Unary("Neg", "neg", in);
  Node* inner = Enter("inner", neg, "g");
  Node* more = Unary("Neg", "more", inner);
  Node* again = Unary("Neg", "again", more);
  Node* out = Unary("Exit", "out", Unary("Exit", "inner_out", again));
  const Subgraph whole = Placed({x}, {out}, {}, {{"neg", 1}, {"more", 2}, {"again", 3}});
  const PartitionedGraph cut = Cut(whole);
  EXPECT_EQ(CountOp(cut, "Merge"), 0);
  Compare(whole, cut, {7});
}

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
      node.device = DeviceName(Random(spread) == 0 ? Random(num_devices) : 0);
    }
    const PartitionedGraph cut = Cut(whole);
    Compare(whole, cut, {static_cast<double>(Random(9)), 2, -1}, 3);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphTest, ::testing::Range(0, 30));

}  // namespace
}  // namespace troupe

#include "graph/passes/partition.h"

#include "tests/graph/passes/partition_fixture.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(PartitionTest, OneDeviceIsLeftAlone) {
  Node* x = Placeholder("x");
  Node* y = Unary("Neg", "y", x);
  const PartitionedGraph cut = Cut(Placed({x}, {y, y}, {}, {}));
  ASSERT_EQ(cut.partitions.size(), 1u);
  EXPECT_EQ(Names(cut, 0), "x y ");
  EXPECT_EQ(cut.partitions[0].device, NumberedDevice(0));
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
  options.incarnation = [](const std::string& device) {
    return device == NumberedDevice(0) ? 77 : 88;
  };
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
                    HasSubstr(NumberedDevice(1))));
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

TEST_F(PartitionTest, VariablesAreReadAfterLoopsThatChangeThem) {
  Node* v = Add(NodeSpec("VariableV2", "v")
                    .Attr("shape", PartialShape({}))
                    .Attr("dtype", ElementType::kFloat));
  Node* x = Placeholder("x");
  Node* exit = Loop("while", x, Const("ten", 10), Const("two", 2));
  // The update precedes what the loop adds, and so the end of the loop, by way of the next
  // iteration only.
  Node* inside = Add(NodeSpec("RefEnter", "inside")
                         .Input(v)
                         .Attr("frame_name", "while")
                         .Attr("is_constant", true));
  Node* update = Binary("AssignAdd", "update", inside, Output(graph_.FindNode("while_switch"), 1));
  ASSERT_TRUE(graph_.AddControlEdge(update, graph_.FindNode("while_add")).ok());
  Node* read = Add(NodeSpec("Neg", "read").Input(v).ControlInput(exit));
  const Subgraph whole = Placed({x}, {read}, {}, {{"read", 1}});
  const PartitionedGraph cut = Cut(whole);
  const SubNode& send = Find(cut, 0, "v/send");
  ASSERT_EQ(send.control_inputs.size(), 1u);
  EXPECT_EQ(Original(cut, 0, send.control_inputs[0]).name(), "while_exit");
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

}  // namespace
}  // namespace troupe

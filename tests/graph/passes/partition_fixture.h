/// Graphs that are cut into partitions and played, part by part.
#ifndef TROUPE_TESTS_GRAPH_PASSES_PARTITION_FIXTURE_H_
#define TROUPE_TESTS_GRAPH_PASSES_PARTITION_FIXTURE_H_

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

#include "graph/passes/partition.h"

namespace troupe {

/// Two devices a task.
inline std::string NumberedDevice(int number) {
  return StrCat("/job:a/replica:0/task:", number / 2, "/device:CPU:", number % 2);
}

/// Checks what every partitioning promises; `whole` is what was partitioned.
inline void CheckWellFormed(const Subgraph& whole, const PartitionedGraph& graph) {
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
      node.device = NumberedDevice(found == devices.end() ? 0 : found->second);
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
    ASSERT_THAT(alone.errors, testing::ElementsAre());
    for (int seed = 0; seed < times; ++seed) {
      PartitionPlayer player(graph, seed);
      const std::vector<PlayedFetch> got = player.Play(feeds);
      ASSERT_THAT(player.errors, testing::ElementsAre()) << "seed " << seed;
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

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPH_PASSES_PARTITION_FIXTURE_H_

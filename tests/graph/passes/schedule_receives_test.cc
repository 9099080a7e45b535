#include "graph/passes/schedule_receives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/passes/prune.h"
#include "tests/graph/passes/partition_player.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

class ScheduleReceivesTest : public ::testing::Test {
 protected:
  Node* Add(const NodeSpec& spec) {
    auto node = graph_.AddNode(spec);
    EXPECT_TRUE(node.ok()) << node.status();
    return node.value();
  }
  Node* Placeholder(const std::string& name) {
    return Add(NodeSpec("Placeholder", name)
                   .Attr("dtype", ElementType::kFloat)
                   .Attr("shape", PartialShape({256, 256})));
  }
  Node* Binary(const std::string& name, Output x, Output y) {
    return Add(NodeSpec("AddV2", name).Input(x).Input(y));
  }
  static std::string DeviceName(int number) {
    return StrCat("/job:a/replica:0/task:", number, "/device:CPU:0");
  }
  PartitionedGraph Cut(std::vector<Output> feeds, std::vector<Output> fetches,
                       const std::map<std::string, int>& devices) {
    auto subgraph = Prune(graph_, feeds, fetches, {});
    EXPECT_TRUE(subgraph.ok()) << subgraph.status();
    for (SubNode& node : subgraph->nodes) {
      auto found = devices.find(node.original->name());
      node.device = DeviceName(found == devices.end() ? 0 : found->second);
    }
    auto graph = Partition(*std::move(subgraph), {});
    EXPECT_TRUE(graph.ok()) << graph.status();
    return *std::move(graph);
  }

  /// The step's length by the model, with whatever control edges there are; -1: a circle.
  static double Length(const PartitionedGraph& graph, const CostModel& costs,
                       const ScheduleReceivesOptions& options) {
    std::map<std::pair<int32_t, int32_t>, double> finish;
    std::map<std::pair<int32_t, int32_t>, const Transfer*> transfers;
    size_t total = 0;
    for (const Transfer& transfer : graph.transfers) {
      transfers[{transfer.to, transfer.recv}] = &transfer;
    }
    for (const auto& partition : graph.partitions) total += partition.subgraph.nodes.size();
    double end = 0;
    for (bool progress = true; progress && finish.size() < total;) {
      progress = false;
      for (int32_t p = 0; p < static_cast<int32_t>(graph.partitions.size()); ++p) {
        const std::vector<SubNode>& nodes = graph.partitions[p].subgraph.nodes;
        for (int32_t i = 0; i < static_cast<int32_t>(nodes.size()); ++i) {
          if (finish.count({p, i}) > 0) continue;
          bool ready = true;
          double start = 0;
          auto need = [&](int32_t q, int32_t node, double delay) {
            auto found = finish.find({q, node});
            if (found == finish.end()) {
              ready = false;
            } else {
              start = std::max(start, found->second + delay);
            }
          };
          for (const SubOutput& input : nodes[i].inputs) need(p, input.node, 0);
          for (int32_t control : nodes[i].control_inputs) need(p, control, 0);
          auto transfer = transfers.find({p, i});
          if (transfer != transfers.end()) {
            const Transfer& t = *transfer->second;
            const SubOutput value = graph.partitions[t.from].subgraph.nodes[t.send].inputs[0];
            const int64_t bytes =
                costs.OutputBytes(graph.partitions[t.from].subgraph.nodes[value.node], value.port);
            need(t.from, t.send,
                 options.latency_us + (t.control ? 0 : bytes / options.bytes_per_us));
          }
          if (!ready) continue;
          progress = true;
          finish[{p, i}] = start + std::max(0.05, costs.TimeUs(nodes[i]));
          end = std::max(end, finish[{p, i}]);
        }
      }
    }
    return finish.size() == total ? end : -1;
  }

  Graph graph_;
};

TEST_F(ScheduleReceivesTest, ATensorNeededLateIsReceivedLate) {
  Node* x = Placeholder("x");
  Node* far = Binary("far", x, x);
  Node* chain = x;
  CostModel costs;
  for (int i = 0; i < 5; ++i) {
    chain = Binary(StrCat("chain", i), chain, chain);
    costs.Record(chain->name(), 1000, {});
  }
  Node* sum = Binary("sum", chain, far);
  Node* early = Binary("early", far, x);
  Node* late = Binary("late", sum, early);
  PartitionedGraph cut = Cut({x}, {sum}, {{"far", 1}});
  EXPECT_EQ(ScheduleReceives(&costs, {}, &cut), 1);
  const Transfer& transfer = cut.transfers[0];
  const std::vector<SubNode>& nodes = cut.partitions[transfer.to].subgraph.nodes;
  const SubNode& recv = nodes[transfer.recv];
  ASSERT_EQ(recv.original->op(), "_Recv");
  ASSERT_EQ(recv.control_inputs.size(), 1u);
  // By its latest time chain3 is over, and chain4 gives room for the transfer.
  EXPECT_EQ(nodes[recv.control_inputs[0]].original->name(), "chain3");
  EXPECT_LT(recv.control_inputs[0], transfer.recv);
  PartitionPlayer player(cut, 1);
  EXPECT_EQ(player.Play({1})[0].value, 34);
  EXPECT_THAT(player.errors, ElementsAre());
  // Small ones, and those on the critical path, are left alone.
  cut = Cut({x}, {sum}, {{"far", 1}});
  ScheduleReceivesOptions options;
  options.min_bytes = 1 << 20;
  EXPECT_EQ(ScheduleReceives(&costs, options, &cut), 0);
  costs.Record("far", 100000, {});
  cut = Cut({x}, {late}, {{"far", 1}});
  EXPECT_EQ(ScheduleReceives(&costs, {}, &cut), 0);
}

TEST_F(ScheduleReceivesTest, WhatMayBeDeadIsNotWaitedFor) {
  Node* x = Placeholder("x");
  Node* p = Add(NodeSpec("Placeholder", "p").Attr("dtype", ElementType::kBool));
  Node* far = Binary("far", x, x);
  Node* branch = Add(NodeSpec("Switch", "branch").Input(x).Input(p));
  CostModel costs;
  Node* chain = Binary("chain", Output(branch, 1), Output(branch, 1));
  costs.Record("chain", 1000, {});
  Node* last = Binary("last", chain, chain);
  costs.Record("last", 1000, {});
  const Output inputs[] = {last, Output(branch, 0)};
  Node* merge = Add(NodeSpec("Merge", "merge").Input(absl::MakeConstSpan(inputs)));
  Node* sum = Binary("sum", merge, far);
  PartitionedGraph cut = Cut({x, p}, {sum}, {{"far", 1}});
  EXPECT_EQ(ScheduleReceives(&costs, {}, &cut), 0);
}

TEST_F(ScheduleReceivesTest, WhatMayWaitForOtherStepsIsNotWaitedFor) {
  // The value that is received is what others wait for, before they put in what is taken out here.
  Node* x = Placeholder("x");
  Node* far = Binary("far", x, x);
  const std::vector<ElementType> types = {ElementType::kFloat};
  Node* queue = Add(NodeSpec("FIFOQueueV2", "queue").Attr("component_types", types));
  Node* taken =
      Add(NodeSpec("QueueDequeueV2", "taken").Input(queue).Attr("component_types", types));
  Node* last = Binary("last", taken, taken);
  CostModel costs;
  costs.Record("taken", 1000, {});
  costs.Record("last", 1000, {});
  Node* sum = Binary("sum", last, far);
  PartitionedGraph cut = Cut({x}, {sum}, {{"far", 1}});
  EXPECT_EQ(ScheduleReceives(&costs, {}, &cut), 0);
  // A variable makes nobody wait, and a random number does not either.
  Node* v = Add(NodeSpec("VariableV2", "v")
                    .Attr("dtype", ElementType::kFloat)
                    .Attr("shape", PartialShape({256, 256})));
  Node* read = Binary("read", v, v);
  costs.Record("read", 1000, {});
  Node* after = Binary("after", read, read);
  costs.Record("after", 1000, {});
  Node* other = Binary("other", after, far);
  cut = Cut({x}, {other}, {{"far", 1}});
  EXPECT_EQ(ScheduleReceives(&costs, {}, &cut), 1);
}

TEST_F(ScheduleReceivesTest, RandomGraphsKeepTheirLengthAndHaveNoCircles) {
  int delayed = 0;
  for (int seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::vector<Output> values;
    CostModel costs;
    std::map<std::string, int> devices;
    for (int i = 0; i < 3; ++i) values.emplace_back(Placeholder(StrCat("x", seed, "_", i)));
    const std::vector<Output> feeds = values;
    for (int i = 0; i < 40; ++i) {
      Node* node = Binary(StrCat("n", seed, "_", i), values[random() % values.size()],
                          values[values.size() - 1 - random() % 3]);
      costs.Record(node->name(), static_cast<double>(random() % 2000), {});
      devices[node->name()] = static_cast<int>(random() % 3);
      values.emplace_back(node);
    }
    PartitionedGraph cut = Cut(feeds, {values.back()}, devices);
    ScheduleReceivesOptions options;
    options.bytes_per_us = seed % 2 == 0 ? 1e3 : 1e5;
    const double before = Length(cut, costs, options);
    PartitionPlayer reference(cut, 0);
    const double want = reference.Play({1, 2, 3})[0].value;
    delayed += ScheduleReceives(&costs, options, &cut);
    EXPECT_NEAR(Length(cut, costs, options), before, 1e-6 * before) << "seed " << seed;
    PartitionPlayer player(cut, seed);
    EXPECT_EQ(player.Play({1, 2, 3})[0].value, want);
    EXPECT_THAT(player.errors, ElementsAre()) << "seed " << seed;
  }
  EXPECT_GT(delayed, 20);
}

}  // namespace
}  // namespace troupe

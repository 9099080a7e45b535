#include "actors/cluster/graph_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"
#include "tests/actors/cluster/inline_host.h"

namespace troupe {
namespace {

class GraphEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    Graph graph;
    auto add = [&](const NodeSpec& spec) {
      auto node = graph.AddNode(spec);
      EXPECT_TRUE(node.ok()) << node.status();
      return *node;
    };
    Node* x = add(NodeSpec("Placeholder", "x")
                      .Attr("dtype", ElementType::kFloat)
                      .Attr("shape", PartialShape({-1})));
    Node* a = add(NodeSpec("Exp", "a").Input(x));
    Node* b = add(NodeSpec("Tanh", "b").Input(x));
    Node* c = add(NodeSpec("AddV2", "c").Input(a).Input(b));
    Node* far = add(NodeSpec("Neg", "far").Input(a).Device("/job:w/task:1"));
    add(NodeSpec("Square", "back").Input(far).Device("/job:w/task:0"));
    add(NodeSpec("Neg", "last").Input(c));
    cluster::CreateSessionRequest request;
    GraphDef def;
    graph.ToGraphDef(&def);
    request.set_graph(def.SerializeAsString());
    engine_.CreateGraph("s", request, [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
    request.mutable_config()->set_lossy_transfers(true);
    engine_.CreateGraph("lossy", request,
                        [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
  }
  BuiltStep Build(const std::string& session, const std::string& fetch) {
    std::vector<cluster::DeviceInfo> devices(2);
    for (int i = 0; i < 2; ++i) {
      devices[i].set_name(StrCat("/job:w/replica:0/task:", i, "/device:CPU:0"));
      devices[i].set_type("CPU");
    }
    cluster::Signature signature;
    signature.add_feeds("x");
    signature.add_fetches(fetch);
    BuiltStep built;
    engine_.Build(session, signature, devices, [&](absl::StatusOr<BuiltStep> result) {
      ASSERT_TRUE(result.ok()) << result.status();
      built = *std::move(result);
    });
    return built;
  }
  /// The ops that a step has besides those that are in every one.
  static std::vector<std::string> Ops(const BuiltStep& built) {
    std::vector<std::string> ops;
    for (const BuiltStep::Part& part : built.parts) {
      for (const cluster::Partition& partition : part.partitions) {
        GraphDef def;
        EXPECT_TRUE(def.ParseFromString(partition.graph()));
        for (const NodeDef& node : def.node()) ops.push_back(node.op());
      }
    }
    return ops;
  }

  InlineHost host_;
  GraphEngine engine_{&host_};
};

TEST_F(GraphEngineTest, WhatWorkersMeasureMovesLaterSignatures) {
  EXPECT_EQ(Build("s", "c").parts.size(), 1u);  // By estimate too small to be parted.
  cluster::RunGraphReply reply;
  for (const char* node : {"a", "b"}) {
    cluster::NodeCost* cost = reply.add_costs();
    cost->set_node(node);
    cost->set_time_us(20000);
    cost->add_output_bytes(4000);
  }
  engine_.Learn("s", reply);
  EXPECT_EQ(Build("s", "last").parts.size(), 2u);
}

TEST_F(GraphEngineTest, CostsThatCannotBeAreIgnored) {
  cluster::RunGraphReply reply;
  for (const double time : {std::nan(""), -1.0, 1e300, static_cast<double>(INFINITY)}) {
    for (const char* node : {"a", "b", "no such node"}) {
      cluster::NodeCost* cost = reply.add_costs();
      cost->set_node(node);
      cost->set_time_us(time);
      for (int i = 0; i < 3; ++i) cost->add_output_bytes(INT64_MIN);
    }
  }
  engine_.Learn("s", reply);
  engine_.Learn("no such session", reply);
  EXPECT_EQ(Build("s", "last").parts.size(), 1u);
}

TEST_F(GraphEngineTest, LossySessionsSendHalf) {
  EXPECT_THAT(Ops(Build("s", "back")), testing::Not(testing::Contains("Cast")));
  const std::vector<std::string> ops = Ops(Build("lossy", "back"));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Cast"), 4);  // There and back.
}

}  // namespace
}  // namespace troupe

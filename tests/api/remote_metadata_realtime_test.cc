// What a traced run over several tasks tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/cluster.h"
#include "api/troupe.h"
#include "graph/protos/config.pb.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(RemoteMetadata, HasTheTimesAndPartitionsOfAllTasks) {
  const std::string host = "127.0.0.1:";
  ServerOptions server;
  server.cluster = *ClusterSpec::Create({{"ps", {host + std::to_string(FreePort())}},
                                         {"worker", {host + std::to_string(FreePort())}}});
  std::vector<std::unique_ptr<Server>> servers;
  for (const char* job : {"ps", "worker"}) {
    server.job = job;
    auto started = Server::Start(server);
    ASSERT_TRUE(started.ok()) << started.status();
    servers.push_back(*std::move(started));
  }
  Scope s = Scope::NewRoot();
  Output x = ops::Placeholder(s, ElementType::kFloat, {.shape = PartialShape({})});
  Output first = ops::Neg(s.WithOpName("first").WithDevice("/job:ps/task:0"), x);
  Output second = ops::Neg(s.WithOpName("second").WithDevice("/job:worker/task:0"), first);
  SessionOptions options;
  options.target = servers[0]->target();
  auto session = Session::Create(s.graph(), options);
  ASSERT_TRUE(session.ok()) << session.status();
  const FeedMap feeds = {{x, Tensor::Scalar(1.0f)}};

  RunMetadata metadata;
  ASSERT_TRUE((*session)->Run(feeds, {second}, {}, {}, &metadata).ok());
  EXPECT_THAT(metadata.step_stats().dev_stats(), IsEmpty()) << "nobody asked for a trace";

  RunOptions traced;
  traced.trace = true;
  const int64_t before = absl::ToUnixMicros(absl::Now());
  ASSERT_TRUE((*session)->Run(feeds, {second}, {}, traced, &metadata).ok());
  const int64_t after = absl::ToUnixMicros(absl::Now());
  EXPECT_EQ(metadata.partition_graphs_size(), 2);
  std::vector<std::string> devices;
  std::map<std::string, const NodeExecStats*> nodes;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    devices.push_back(device.device());
    for (const auto& node : device.node_stats()) nodes[node.node_name()] = &node;
  }
  EXPECT_THAT(devices, UnorderedElementsAre("/job:ps/replica:0/task:0/device:CPU:0",
                                            "/job:worker/replica:0/task:0/device:CPU:0"));
  ASSERT_TRUE(nodes.count("first") && nodes.count("second"));
  // One axis: the second one waits for the first one's value.
  EXPECT_GE(nodes["second"]->all_start_micros(),
            nodes["first"]->all_start_micros() + nodes["first"]->all_end_rel_micros());
  for (const auto& [name, node] : nodes) {
    EXPECT_GE(node->all_start_micros(), before) << name;
    EXPECT_LE(node->all_start_micros(), after) << name;
  }

  auto callable = (*session)->MakeCallable({x}, {second});
  ASSERT_TRUE(callable.ok());
  RunMetadata called;
  std::vector<Tensor> values(1);
  ASSERT_TRUE((*callable)({Tensor::Scalar(1.0f)}, absl::MakeSpan(values), traced, &called).ok());
  EXPECT_EQ(called.step_stats().dev_stats_size(), 2);
}

}  // namespace
}  // namespace troupe

// Functions whose bodies work on another task of a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/actors/session/spread_functions.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FunctionDevices, BodiesAndRemoteCallsGoToOtherTasks) {
  const std::string host = "127.0.0.1:";
  ServerOptions server;
  server.cluster = *ClusterSpec::Create(
      {{"worker", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}}});
  server.job = "worker";
  auto first = Server::Start(server);
  ASSERT_TRUE(first.ok()) << first.status();
  server.task = 1;
  auto second = Server::Start(server);
  ASSERT_TRUE(second.ok()) << second.status();

  auto graph = std::make_shared<Graph>();
  const std::string device = "/job:worker/task:1/device:CPU:0";
  const absl::Status imported = ImportGraphDef(
      SpreadFunctions(device, {"/job:worker/task:0/device:CPU:0", device}), {}, graph.get());
  ASSERT_TRUE(imported.ok()) << imported;
  SessionOptions options;
  options.target = (*first)->target();
  auto session = Session::Create(graph, options);
  ASSERT_TRUE(session.ok()) << session.status();
  auto run = [&](const std::string& fetch, const NamedTensors& feeds) -> absl::StatusOr<int> {
    std::vector<Tensor> values;
    RunOptions run_options;
    run_options.timeout = absl::Seconds(30);
    const absl::Status status = (*session)->Run(run_options, feeds, {fetch}, {}, &values);
    if (!status.ok()) return status;
    return values[0].unchecked_scalar<int32_t>();
  };
  auto sizes = [&] { return std::vector<int>{*run("size_0", {}), *run("size_1", {})}; };
  const Tensor four = Tensor::Scalar(int32_t{4});

  EXPECT_EQ(*run("call", {{"x", four}}), 5);
  EXPECT_THAT(sizes(), ElementsAre(0, 1));
  EXPECT_EQ(*run("if", {{"p", Tensor::Scalar(true)}, {"x", four}}), 5);
  EXPECT_EQ(*run("while", {{"x", Tensor::Scalar(int32_t{0})}, {"y", four}}), 4);
  EXPECT_THAT(sizes(), ElementsAre(0, 6));
  EXPECT_EQ(*run("remote", {{"x", four}}), 5);
  EXPECT_EQ(*run("nested", {{"x", four}}), 5);
  EXPECT_THAT(sizes(), ElementsAre(0, 8));
  // A target that only the step knows must be of the caller's process.
  const Tensor here = Tensor::Scalar(std::string("/device:CPU:0"));
  EXPECT_EQ(*run("dynamic", {{"target", here}, {"x", four}}), 5);
  EXPECT_THAT(sizes(), ElementsAre(1, 8));
  const absl::Status elsewhere =
      run("dynamic", {{"target", Tensor::Scalar(device)}, {"x", four}}).status();
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("constant"));
  EXPECT_EQ(run("lost", {{"x", four}}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe

// Sessions that see a part of a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::HasSubstr;

/// Of three tasks one is not there: worker 1.
class DeviceFilters : public testing::Test {
 protected:
  void SetUp() override {
    const std::string host = "127.0.0.1:";
    ServerOptions options;
    options.cluster = *ClusterSpec::Create(
        {{"ps", {host + std::to_string(FreePort())}},
         {"worker", {host + std::to_string(FreePort()), host + std::to_string(FreePort())}}});
    options.threads = 1;
    options.wait_for_workers = absl::Milliseconds(500);
    for (const char* job : {"ps", "worker"}) {
      options.job = job;
      auto server = Server::Start(options);
      ASSERT_TRUE(server.ok()) << server.status();
      servers_.push_back(*std::move(server));
    }
    const Scope s = Scope::NewRoot();
    v_ = Const(s.WithDevice("/job:ps"), 20.0f);
    here_ = ops::Add(s.WithDevice("/job:worker/task:0"), v_, 1.0f);
    anywhere_ = ops::Add(s.WithDevice("/job:worker"), v_, 2.0f);
    elsewhere_ = ops::Add(s.WithDevice("/job:worker/task:1"), v_, 3.0f);
    ASSERT_TRUE(s.ok()) << s.status();
    graph_ = s.graph();
  }
  absl::StatusOr<std::unique_ptr<Session>> Create(std::vector<std::string> filters) {
    SessionOptions options;
    options.target = servers_[1]->target();
    options.device_filters = std::move(filters);
    return Session::Create(graph_, options);
  }

  std::vector<std::unique_ptr<Server>> servers_;
  std::shared_ptr<Graph> graph_;
  Output v_, here_, anywhere_, elsewhere_;
};

TEST_F(DeviceFilters, OnlyTasksThatAreSeenAreWaitedFor) {
  const absl::Status all = Create({}).status();
  EXPECT_EQ(all.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(all.message()), HasSubstr("/job:worker/replica:0/task:1"));
  EXPECT_EQ(Create({"/job:worker"}).status().code(), absl::StatusCode::kUnavailable);

  auto session = Create({"/job:ps", "/job:worker/task:0"});
  ASSERT_TRUE(session.ok()) << session.status();
  auto values = (*session)->Run({here_, anywhere_});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<float>(), 21);
  EXPECT_EQ((*values)[1].unchecked_scalar<float>(), 22);
  // What is not seen is not there.
  const absl::Status status = (*session)->Run({elsewhere_}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/job:worker/task:1"));
}

TEST_F(DeviceFilters, BadOnesAreRefused) {
  EXPECT_EQ(Create({"/jobps"}).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status none = Create({"/job:moon", "/job:ps/device:GPU:0"}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.message()), HasSubstr("/job:moon, /job:ps/device:GPU:0"));
}

}  // namespace
}  // namespace troupe

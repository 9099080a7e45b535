// Partial runs over the tasks of a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "api/cluster.h"
#include "api/troupe.h"
#include "tests/api/free_port.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class RemotePartialRun : public testing::Test {
 protected:
  void SetUp() override {
    const std::string host = "127.0.0.1:";
    ServerOptions options;
    options.cluster = *ClusterSpec::Create({{"ps", {host + std::to_string(FreePort())}},
                                            {"worker", {host + std::to_string(FreePort())}}});
    options.heartbeat_interval = absl::Milliseconds(200);
    options.heartbeat_timeout = absl::Seconds(1);
    for (const char* job : {"ps", "worker"}) {
      options.job = job;
      auto server = Server::Start(options);
      ASSERT_TRUE(server.ok()) << server.status();
      servers_.push_back(*std::move(server));
    }
    // x = -a on the one task, y = x + b on the other, z = y / c there.
    Scope s = Scope::NewRoot();
    ps_ = s.WithDevice("/job:ps/task:0");
    worker_ = s.WithDevice("/job:worker/task:0");
    Output a =
        ops::Placeholder(s.WithOpName("a"), ElementType::kInt32, {.shape = PartialShape({})});
    Output b =
        ops::Placeholder(s.WithOpName("b"), ElementType::kInt32, {.shape = PartialShape({})});
    Output c =
        ops::Placeholder(s.WithOpName("c"), ElementType::kInt32, {.shape = PartialShape({})});
    Output x = ops::Neg(ps_.WithOpName("x"), a);
    Output y = ops::Add(worker_.WithOpName("y"), x, b);
    ops::Div(worker_.WithOpName("z"), y, c);
    ASSERT_TRUE(s.status().ok()) << s.status();
    graph_ = s.graph();
    session_ = Connect();
  }
  std::unique_ptr<Session> Connect() {
    SessionOptions options;
    options.target = servers_[0]->target();
    auto session = Session::Create(graph_, options);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? *std::move(session) : nullptr;
  }
  static std::pair<std::string, Tensor> Fed(const std::string& name, int32_t value) {
    return {name, Tensor::Scalar(value)};
  }

  std::vector<std::unique_ptr<Server>> servers_;
  Scope ps_ = Scope::NewRoot(), worker_ = Scope::NewRoot();
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> values_;
};

TEST_F(RemotePartialRun, IsFedAndFetchedInPieces) {
  for (int i = 0; i < 20; ++i) {
    auto handle = session_->PartialRunSetup({"a", "b"}, {"x", "y:0"}, {});
    ASSERT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(session_->PartialRun(*handle, {}, {"x"}, &values_).code(),
              absl::StatusCode::kInvalidArgument);
    ASSERT_TRUE(session_->PartialRun(*handle, {Fed("a", 2)}, {"x:0"}, &values_).ok());
    EXPECT_EQ(values_[0].unchecked_scalar<int32_t>(), -2);
    EXPECT_FALSE(session_->PartialRun(*handle, {Fed("a", 2)}, {"y"}, &values_).ok());
    ASSERT_TRUE(session_->PartialRun(*handle, {Fed("b", 5 + i)}, {"y"}, &values_).ok());
    EXPECT_EQ(values_[0].unchecked_scalar<int32_t>(), 3 + i);
    EXPECT_FALSE(session_->PartialRun(*handle, {}, {"y"}, &values_).ok()) << "the run is over";
  }
}

TEST_F(RemotePartialRun, FeedsCountAlsoWhenAFetchIsRefused) {
  auto handle = session_->PartialRunSetup({"a", "b"}, {"x", "y"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  const absl::Status refused = session_->PartialRun(*handle, {Fed("a", 1)}, {"y"}, &values_);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("b:0"));
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("b", 1)}, {"y", "x"}, &values_).ok());
  EXPECT_EQ(values_[0].unchecked_scalar<int32_t>(), 0);
  EXPECT_EQ(values_[1].unchecked_scalar<int32_t>(), -1);
}

TEST_F(RemotePartialRun, RefusesWhatWasNotSetUp) {
  EXPECT_FALSE(session_->PartialRunSetup({"a", "a"}, {"x"}, {}).ok());
  EXPECT_FALSE(session_->PartialRunSetup({"a"}, {"x", "x"}, {}).ok());
  EXPECT_FALSE(session_->PartialRunSetup({"nobody"}, {"x"}, {}).ok());
  auto handle = session_->PartialRunSetup({"a"}, {"x"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  EXPECT_FALSE(session_->PartialRun("partial_run_77", {Fed("a", 1)}, {"x"}, &values_).ok());
  EXPECT_FALSE(session_->PartialRun(*handle, {Fed("b", 1)}, {"x"}, &values_).ok());
  EXPECT_FALSE(session_->PartialRun(*handle, {Fed("a", 1)}, {"y"}, &values_).ok());
  EXPECT_EQ(session_->PartialRun(*handle, {{"a", Tensor::Scalar(1.0f)}}, {"x"}, &values_).code(),
            absl::StatusCode::kInvalidArgument);
  // Nothing of this has used up the run.
  EXPECT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_).ok());
}

TEST_F(RemotePartialRun, TheFirstErrorEndsIt) {
  auto handle = session_->PartialRunSetup({"a", "b", "c"}, {"x", "z"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_).ok());
  const absl::Status failed =
      session_->PartialRun(*handle, {Fed("b", 1), Fed("c", 0)}, {"z"}, &values_);
  EXPECT_EQ(failed.code(), absl::StatusCode::kInvalidArgument) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("z"));
  EXPECT_FALSE(session_->PartialRun(*handle, {}, {"z"}, &values_).ok());
  // The session goes on.
  handle = session_->PartialRunSetup({"a"}, {"x"}, {});
  ASSERT_TRUE(handle.ok());
  EXPECT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_).ok());
}

// The contents of large tensors travel beside the messages, whatever holds them there.
TEST_F(RemotePartialRun, LargeValuesComeWhole) {
  Output v = ops::Placeholder(ps_.WithOpName("v"), ElementType::kInt32);
  ops::Neg(worker_.WithOpName("w"), v);
  const std::string target = servers_[0]->target();
  SessionOptions options;
  options.target = "troupe://localhost" + target.substr(target.rfind(':'));  // Over a connection.
  auto session = Session::Create(graph_, options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<int32_t> numbers(100000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  const std::pair<std::string, Tensor> large("v", Tensor::Vector<int32_t>(numbers));
  auto handle = (*session)->PartialRunSetup({"a", "v"}, {"x", "w"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  std::vector<Tensor> stepped;
  for (const absl::Status& status :
       {(*session)->PartialRun(*handle, {Fed("a", 1), large}, {"x", "w"}, &values_),
        (*session)->Run({Fed("a", 1), large}, {"x", "w"}, {}, &stepped)}) {
    ASSERT_TRUE(status.ok()) << status;
  }
  for (const std::vector<Tensor>& values : {values_, stepped}) {
    EXPECT_EQ(values[0].unchecked_scalar<int32_t>(), -1);
    EXPECT_EQ(values[1].unchecked_values<int32_t>()[99999], -99999);
  }
}

TEST_F(RemotePartialRun, TargetsRunWithTheLastPiece) {
  Output v = ops::VariableV2(worker_.WithOpName("v"), PartialShape({}), ElementType::kInt32);
  ops::Assign(worker_.WithOpName("set"), v, Output(graph_->FindNode("y")));
  auto handle = session_->PartialRunSetup({"a", "b"}, {"x"}, {"set"});
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_).ok());
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("b", 8)}, {}, &values_).ok());
  ASSERT_TRUE(session_->Run({}, {"v"}, {}, &values_).ok());
  EXPECT_EQ(values_[0].unchecked_scalar<int32_t>(), 7);
}

TEST_F(RemotePartialRun, DeadlinesEndIt) {
  Output queue = ops::FIFOQueueV2(worker_, {ElementType::kInt32});
  Output got = ops::QueueDequeueV2(worker_, queue, {ElementType::kInt32})[0];
  ops::Identity(worker_.WithOpName("got"), got);
  RunOptions soon;
  soon.timeout = absl::Milliseconds(300);
  const absl::Time start = absl::Now();
  auto handle = session_->PartialRunSetup({"a"}, {"x", "got"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_, soon).ok());
  EXPECT_EQ(session_->PartialRun(*handle, {}, {"got"}, &values_, soon).code(),
            absl::StatusCode::kDeadlineExceeded);
  handle = session_->PartialRunSetup({"a", "b"}, {"x", "y"}, {}, soon);
  ASSERT_TRUE(handle.ok()) << handle.status();
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - start, absl::Seconds(6));
}

TEST_F(RemotePartialRun, ClosingEndsWhatIsOpen) {
  auto handle = session_->PartialRunSetup({"a", "b"}, {"x", "y"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {}, &values_).ok());
  EXPECT_TRUE(session_->Close().ok());
  EXPECT_EQ(session_->PartialRun(*handle, {Fed("b", 1)}, {"y"}, &values_).code(),
            absl::StatusCode::kCancelled);
}

TEST_F(RemotePartialRun, ALostTaskEndsIt) {
  auto handle = session_->PartialRunSetup({"a", "b"}, {"x", "y"}, {});
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(session_->PartialRun(*handle, {Fed("a", 1)}, {"x"}, &values_).ok());
  servers_[1].reset();
  const absl::Status lost = session_->PartialRun(*handle, {Fed("b", 1)}, {"y"}, &values_);
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("/job:worker/replica:0/task:0"));
}

}  // namespace
}  // namespace troupe

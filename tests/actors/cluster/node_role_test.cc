#include "actors/cluster/node_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

namespace troupe {
namespace {

using testing::HasSubstr;

class Sent final : public Outbox {
 public:
  void Send(PeerId to, cluster::Message message) override { messages.emplace_back(to, message); }
  std::vector<std::pair<PeerId, cluster::Message>> messages;
};

/// Steps begin and do not end by themselves.
class Engine final : public WorkerEngine {
 public:
  std::vector<cluster::DeviceInfo> Devices() override { return {}; }
  void Register(cluster::Message, Done done) override {
    if (throws) throw std::bad_alloc();
    registered.push_back(std::move(done));
  }
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override { ++deleted; }
  void Start(cluster::Message request, StepDone done) override {
    if (throws) throw std::bad_alloc();
    started[request.step()] = std::move(done);
  }
  void Abort(uint64_t step, const absl::Status&) override { aborted.push_back(step); }
  void ResetContainers(const std::vector<std::string>&) override {}
  std::vector<uint64_t> DropEarly(ClusterTime, ClusterTime) override {
    return std::exchange(dropped, {});
  }

  std::vector<Done> registered;
  std::map<uint64_t, StepDone> started;
  std::vector<uint64_t> aborted, dropped;
  int deleted = 0;
  bool throws = false;  ///< There is no memory.
};

/// Task 0, a worker, to which task 1 talks as a master.
class NodeRoleTest : public testing::Test {
 protected:
  NodeRoleTest() : node_(Options(), &sent_, &engine_, nullptr, 0) {}
  static NodeRole::Options Options() {
    NodeRole::Options options;
    options.task = "/job:a/replica:0/task:0";
    options.incarnation = 5;
    options.tasks = {{"/job:a/replica:0/task:0", "h:1"}, {"/job:a/replica:0/task:1", "h:2"}};
    options.worker.max_early_feeds = 10;
    return options;
  }
  cluster::Message Request(cluster::Method method) {
    cluster::Message request;
    request.set_version(kProtocolVersion);
    request.set_kind(cluster::REQUEST);
    request.set_id(next_id_++);
    request.set_task("/job:a/replica:0/task:1");
    request.set_incarnation(9);
    request.set_method(method);
    request.set_session("s");
    request.set_handle("g");
    request.set_step(77);
    return request;
  }
  /// The reply, or nothing if there is none yet.
  std::optional<cluster::Message> Ask(const cluster::Message& request) {
    node_.OnMessage(1, request, now_);
    return ReplyTo(request);
  }
  std::optional<cluster::Message> ReplyTo(const cluster::Message& request) {
    for (const auto& [to, message] : sent_.messages) {
      if (message.kind() == cluster::REPLY && message.id() == request.id()) return message;
    }
    return std::nullopt;
  }
  void Open() {
    ASSERT_EQ(Ask(Request(cluster::CREATE_WORKER_SESSION))->code(), 0);
    const cluster::Message request = Request(cluster::REGISTER_GRAPH);
    ASSERT_FALSE(Ask(request));
    engine_.registered[0](absl::OkStatus());
    ASSERT_EQ(ReplyTo(request)->code(), 0);
  }
  cluster::Message FeedOf(uint64_t step) {
    cluster::Message feed = Request(cluster::FEED_GRAPH);
    feed.set_step(step);
    return feed;
  }

  ClusterTime now_ = kSecond;
  uint64_t next_id_ = 1;
  Sent sent_;
  Engine engine_;
  NodeRole node_;
};

TEST_F(NodeRoleTest, RefusesOtherVersions) {
  cluster::Message request = Request(cluster::GET_STATUS);
  request.set_version(kProtocolVersion + 1);
  const auto reply = Ask(request);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(reply->error(), HasSubstr("version 2"));
}

TEST_F(NodeRoleTest, RefusesMessagesForAnEarlierLife) {
  cluster::Message request = Request(cluster::GET_STATUS);
  request.set_to_incarnation(4);
  EXPECT_EQ(Ask(request)->code(), static_cast<int>(absl::StatusCode::kAborted));
  request = Request(cluster::GET_STATUS);
  request.set_to_incarnation(5);
  EXPECT_EQ(Ask(request)->code(), 0);
}

TEST_F(NodeRoleTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Ask(Request(cluster::RUN_STEP))->code(),
            static_cast<int>(absl::StatusCode::kUnimplemented));  // No master.
  EXPECT_EQ(Ask(Request(cluster::NO_METHOD))->code(),
            static_cast<int>(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(Ask(Request(cluster::REGISTER_GRAPH))->code(),
            static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(Ask(Request(cluster::RUN_GRAPH))->code(),
            static_cast<int>(absl::StatusCode::kNotFound));
}

TEST_F(NodeRoleTest, RequestsAreAnsweredWithoutMemory) {
  const int exhausted = static_cast<int>(absl::StatusCode::kResourceExhausted);
  Open();
  engine_.throws = true;
  const auto run = Ask(Request(cluster::RUN_GRAPH));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->code(), exhausted);
  EXPECT_EQ(node_.worker()->num_steps(), 0u);
  cluster::Message second = Request(cluster::REGISTER_GRAPH);
  second.set_handle("h");
  const auto registered = Ask(second);
  ASSERT_TRUE(registered);
  EXPECT_EQ(registered->code(), exhausted);
  engine_.throws = false;
  second.set_id(next_id_++);
  EXPECT_FALSE(Ask(second)) << "it may be tried again";
  cluster::Message again = Request(cluster::RUN_GRAPH);
  again.set_step(78);
  ASSERT_FALSE(Ask(again));
  engine_.started[78](absl::OkStatus(), {});
  EXPECT_EQ(ReplyTo(again)->code(), 0);
}

TEST_F(NodeRoleTest, FeedsWithoutAStepAreBounded) {
  for (uint64_t step = 100; step < 200; ++step) node_.OnMessage(1, FeedOf(step), now_);
  EXPECT_EQ(node_.worker()->num_early_feeds(), 10u);
  node_.Tick(now_ + 60 * kSecond);
  EXPECT_EQ(node_.worker()->num_early_feeds(), 10u);
  node_.Tick(now_ + 120 * kSecond);
  EXPECT_EQ(node_.worker()->num_early_feeds(), 0u);
}

TEST_F(NodeRoleTest, StepsWhoseValuesWereDroppedDoNotBegin) {
  node_.OnMessage(1, FeedOf(77), now_);
  engine_.dropped = {78};
  node_.Tick(now_ + 120 * kSecond);
  Open();
  const auto reply = Ask(Request(cluster::RUN_GRAPH));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(reply->error(), HasSubstr("120 s before"));
  cluster::Message other = Request(cluster::RUN_GRAPH);
  other.set_step(78);
  EXPECT_EQ(Ask(other)->code(), static_cast<int>(absl::StatusCode::kUnavailable));
}

TEST_F(NodeRoleTest, CleanupBeforeRunIsRemembered) {
  Open();
  EXPECT_EQ(Ask(Request(cluster::CLEANUP_GRAPH))->code(), 0);
  EXPECT_EQ(Ask(Request(cluster::RUN_GRAPH))->code(),
            static_cast<int>(absl::StatusCode::kCancelled));
}

// A master that has lost sight of the task for a while gives up what may still be on its way.
TEST_F(NodeRoleTest, AGraphThatIsGivenUpBeforeItComesIsNotKept) {
  cluster::Message request = Request(cluster::DEREGISTER_GRAPH);
  request.set_handle("late");
  EXPECT_EQ(Ask(request)->code(), 0);
  Open();
  request = Request(cluster::REGISTER_GRAPH);
  request.set_handle("late");
  const auto reply = Ask(request);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_EQ(node_.worker()->num_graphs(), 1u);
  EXPECT_EQ(engine_.registered.size(), 1u);
}

TEST_F(NodeRoleTest, StepsAndSessionsEndWithTheirMaster) {
  Open();
  EXPECT_FALSE(Ask(Request(cluster::RUN_GRAPH)));
  node_.OnLinkDown(1, now_);
  EXPECT_EQ(engine_.aborted, std::vector<uint64_t>{77});
  EXPECT_EQ(engine_.deleted, 1);
  EXPECT_EQ(node_.worker()->num_sessions(), 0u);
}

TEST_F(NodeRoleTest, DrainingBeginsNothingAndEndsThings) {
  Open();
  node_.Drain();
  EXPECT_EQ(Ask(Request(cluster::RUN_GRAPH))->code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Ask(Request(cluster::DELETE_WORKER_SESSION))->code(), 0);
}

}  // namespace
}  // namespace troupe

// Who is not taken for who it says it is, and how those who wait for it learn why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cluster/node_role.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class Sent final : public Outbox {
 public:
  void Send(PeerId to, cluster::Message message) override { messages.emplace_back(to, message); }
  std::vector<std::pair<PeerId, cluster::Message>> messages;
};

class Worker final : public WorkerEngine {
 public:
  std::vector<cluster::DeviceInfo> Devices() override { return {}; }
  void Register(cluster::Message, Done) override {}
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override {}
  void Start(cluster::Message, StepDone) override {}
  void Abort(uint64_t, const absl::Status&) override {}
  void ResetContainers(const std::vector<std::string>&) override {}
};

class Master final : public MasterEngine {
 public:
  void CreateGraph(const std::string&, cluster::Message, Done done) override {
    done(absl::OkStatus());
  }
  void ExtendGraph(const std::string&, cluster::Message, Done) override {}
  void DeleteGraph(const std::string&) override {}
  void Build(const std::string&, cluster::Message, std::vector<cluster::DeviceInfo>,
             BuildDone) override {}
};

constexpr PeerId kClient = kFirstClient + 7;

/// Task a, which is the master of a client; task b is missing.
class RefusalsTest : public testing::Test {
 protected:
  RefusalsTest() : node_(Options(), &sent_, &worker_, &master_, 0) {}
  static NodeRole::Options Options() {
    NodeRole::Options options;
    options.task = "/job:a/replica:0/task:0";
    options.incarnation = 5;
    options.tasks = {{"/job:a/replica:0/task:0", "h:1"}, {"/job:b/replica:0/task:0", "h:2"}};
    options.master.wait_for_workers = 2 * kSecond;
    return options;
  }
  static cluster::Message Message(cluster::Kind kind, const std::string& task) {
    cluster::Message message;
    message.set_version(kProtocolVersion);
    message.set_kind(kind);
    message.set_task(task);
    message.set_incarnation(9);
    return message;
  }
  /// What the client that waits for its session is told in the end.
  cluster::Message SessionAnswer() {
    const cluster::Message* answer = nullptr;
    for (ClusterTime now = kSecond; now < 5 * kSecond; now += kSecond / 10) node_.Tick(now);
    for (const auto& [to, message] : sent_.messages) {
      if (to == kClient && message.kind() == cluster::REPLY) answer = &message;
    }
    return answer == nullptr ? cluster::Message() : *answer;
  }
  void AskForASession() {
    cluster::Message request = Message(cluster::REQUEST, "");
    request.set_id(1);
    request.set_method(cluster::CREATE_SESSION);
    node_.OnMessage(kClient, request, kSecond);
  }
  /// The last message to a peer of a kind.
  cluster::Message LastTo(PeerId peer, cluster::Kind kind) {
    cluster::Message last;
    for (const auto& [to, message] : sent_.messages) {
      if (to == peer && message.kind() == kind) last = message;
    }
    return last;
  }

  Sent sent_;
  Worker worker_;
  Master master_;
  NodeRole node_;
};

TEST_F(RefusalsTest, AnotherTaskAtAnAddress) {
  AskForASession();
  node_.OnMessage(1, Message(cluster::PONG, "/job:c/replica:0/task:3"), kSecond);
  EXPECT_FALSE(node_.detector().alive(1));
  const cluster::Message answer = SessionAnswer();
  EXPECT_EQ(answer.code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(answer.error(), HasSubstr("/job:b/replica:0/task:0 (h:2)"));
  EXPECT_THAT(answer.error(), HasSubstr("at h:2 serves /job:c/replica:0/task:3"));
}

TEST_F(RefusalsTest, AWorkerOfAnotherVersion) {
  AskForASession();
  cluster::Message ping = Message(cluster::PING, "/job:b/replica:0/task:0");
  ping.set_version(kProtocolVersion + 1);
  node_.OnMessage(1, ping, kSecond);
  EXPECT_FALSE(node_.detector().alive(1));
  // Both sides are told.
  EXPECT_THAT(LastTo(1, cluster::PONG).error(), HasSubstr("run the same version"));
  EXPECT_THAT(SessionAnswer().error(), HasSubstr("protocol version 2 is not spoken here"));
}

TEST_F(RefusalsTest, TwoTasksOfOneName) {
  node_.OnMessage(1, Message(cluster::PING, "/job:b/replica:0/task:0"), kSecond);
  ASSERT_TRUE(node_.detector().alive(1));
  // A client that claims a name.
  cluster::Message ping = Message(cluster::PING, "/job:b/replica:0/task:0");
  ping.set_incarnation(10);
  ping.set_address("h:3");
  node_.OnMessage(kClient, ping, kSecond);
  const cluster::Message pong = LastTo(kClient, cluster::PONG);
  EXPECT_EQ(pong.code(), static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(pong.error(), HasSubstr("/job:b/replica:0/task:0 is not expected at h:3"));
  // The real one is not concerned.
  EXPECT_TRUE(node_.detector().alive(1));
  EXPECT_EQ(node_.detector().incarnation(1), 9u);
  cluster::Message request = ping;
  request.set_kind(cluster::REQUEST);
  request.set_method(cluster::CREATE_WORKER_SESSION);
  request.set_id(3);
  node_.OnMessage(kClient, request, kSecond);
  EXPECT_EQ(LastTo(kClient, cluster::REPLY).code(),
            static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(node_.worker()->num_sessions(), 0u);
}

TEST_F(RefusalsTest, WhoIsRefusedTellsItsClients) {
  AskForASession();
  cluster::Message pong = Message(cluster::PONG, "/job:b/replica:0/task:0");
  pong.set_code(static_cast<int>(absl::StatusCode::kAlreadyExists));
  pong.set_error("there are two of you");
  node_.OnMessage(1, pong, kSecond);
  EXPECT_FALSE(node_.detector().alive(1));
  EXPECT_THAT(SessionAnswer().error(), HasSubstr("there are two of you"));
}

TEST_F(RefusalsTest, SilentClientsAreGivenUp) {
  node_.OnMessage(1, Message(cluster::PING, "/job:b/replica:0/task:0"), kSecond);
  const cluster::Message question = LastTo(1, cluster::REQUEST);
  cluster::Message status = Message(cluster::REPLY, "/job:b/replica:0/task:0");
  status.set_id(question.id());
  node_.OnMessage(1, status, kSecond);
  AskForASession();
  ASSERT_EQ(node_.master()->num_sessions(), 1u);
  // One and a half of the timeout, 5 s.
  node_.Tick(kSecond + 7 * kSecond);
  EXPECT_EQ(node_.master()->num_sessions(), 1u);
  node_.Tick(kSecond + 8 * kSecond);
  EXPECT_EQ(node_.master()->num_sessions(), 0u);
}

TEST(ClientNode, LearnsTheTimeoutOfItsMaster) {
  Sent sent;
  NodeRole::Options options;
  options.incarnation = 3;
  options.tasks = {{"", "h:1"}};
  NodeRole client(options, &sent, nullptr, nullptr, 0);
  EXPECT_EQ(client.detector().options().timeout, 5 * kSecond);
  cluster::Message pong;
  pong.set_version(kProtocolVersion);
  pong.set_kind(cluster::PONG);
  pong.set_task("/job:a/replica:0/task:0");
  pong.set_incarnation(9);
  for (const int64_t told : {int64_t{-1}, int64_t{1}, 2 * kSecond, 20 * kSecond}) {
    pong.set_timeout_us(told);
    client.OnMessage(0, pong, kSecond);
  }
  // What is absurd, or longer than its own, does not count.
  EXPECT_EQ(client.detector().options().timeout, 2 * kSecond);
  EXPECT_EQ(client.detector().options().interval, 2 * kSecond / 5);
}

}  // namespace
}  // namespace troupe

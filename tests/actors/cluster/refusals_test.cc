// Who is not taken for who it says it is, and how those who wait for it learn why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cluster/node_role.h"
#include "tests/actors/cluster/messages.h"

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
  void Register(cluster::RegisterGraphRequest, Done) override {}
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override {}
  void Start(cluster::RunGraphRequest, StepDone) override {}
  void Abort(uint64_t, const absl::Status&) override {}
  void ResetContainers(const std::vector<std::string>&) override {}
  void States(const std::string&, StatesDone) override {}
  void GetResources(const cluster::GetResourcesRequest&, ResourcesDone) override {}
  void SetResource(cluster::SetResourceRequest, Done) override {}
};

class Master final : public MasterEngine {
 public:
  void CreateGraph(const std::string&, cluster::CreateSessionRequest, Done done) override {
    done(absl::OkStatus());
  }
  void ExtendGraph(const std::string&, cluster::ExtendSessionRequest, Done) override {}
  void DeleteGraph(const std::string&) override {}
  void Build(const std::string&, cluster::Signature, std::vector<cluster::DeviceInfo>,
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
  static cluster::Message Message(const std::string& task, const std::string& text) {
    return MessageFrom(task, 9, text);
  }
  /// What the client that waits for its session is told in the end.
  cluster::Message SessionAnswer() {
    for (ClusterTime now = kSecond; now < 5 * kSecond; now += kSecond / 10) node_.Tick(now);
    return LastTo(kClient, IsReply);
  }
  void AskForASession() {
    node_.OnMessage(kClient, Message("", "id: 1 create_session {}"), kSecond);
  }
  static bool IsReply(const cluster::Message& message) {
    return message.has_status() && !message.has_pong();
  }
  static bool IsPong(const cluster::Message& message) { return message.has_pong(); }
  /// The last message to a peer of a kind.
  cluster::Message LastTo(PeerId peer, bool (*kind)(const cluster::Message&)) {
    cluster::Message last;
    for (const auto& [to, message] : sent_.messages) {
      if (to == peer && kind(message)) last = message;
    }
    return last;
  }

  const std::string b_ = "/job:b/replica:0/task:0";
  Sent sent_;
  Worker worker_;
  Master master_;
  NodeRole node_;
};

TEST_F(RefusalsTest, AnotherTaskAtAnAddress) {
  AskForASession();
  node_.OnMessage(1, Message("/job:c/replica:0/task:3", "pong {}"), kSecond);
  EXPECT_FALSE(node_.detector().alive(1));
  const cluster::Message answer = SessionAnswer();
  EXPECT_EQ(CodeOf(answer), absl::StatusCode::kUnavailable);
  EXPECT_THAT(answer.status().error(), HasSubstr("/job:b/replica:0/task:0 (h:2)"));
  EXPECT_THAT(answer.status().error(), HasSubstr("at h:2 serves /job:c/replica:0/task:3"));
}

TEST_F(RefusalsTest, AWorkerOfAnotherVersion) {
  AskForASession();
  cluster::Message ping = Message(b_, "ping {}");
  ping.set_version(kProtocolVersion + 1);
  node_.OnMessage(1, ping, kSecond);
  EXPECT_FALSE(node_.detector().alive(1));
  // Both sides are told.
  EXPECT_THAT(LastTo(1, IsPong).status().error(), HasSubstr("run the same version"));
  EXPECT_THAT(SessionAnswer().status().error(), HasSubstr("protocol version 3 is not spoken here"));
}

TEST_F(RefusalsTest, TwoTasksOfOneName) {
  node_.OnMessage(1, Message(b_, "ping {}"), kSecond);
  ASSERT_TRUE(node_.detector().alive(1));
  // A client that claims a name.
  const std::string claim = "sender { incarnation: 10 address: 'h:3' } ";
  node_.OnMessage(kClient, Message(b_, claim + "ping {}"), kSecond);
  const cluster::Message pong = LastTo(kClient, IsPong);
  EXPECT_EQ(CodeOf(pong), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(pong.status().error(), HasSubstr("/job:b/replica:0/task:0 is not expected at h:3"));
  // The real one is not concerned.
  EXPECT_TRUE(node_.detector().alive(1));
  EXPECT_EQ(node_.detector().incarnation(1), 9u);
  node_.OnMessage(kClient, Message(b_, claim + "id: 3 create_worker_session { session: 's' }"),
                  kSecond);
  EXPECT_EQ(CodeOf(LastTo(kClient, IsReply)), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(node_.worker()->num_sessions(), 0u);
}

TEST_F(RefusalsTest, WhoIsRefusedTellsItsClients) {
  AskForASession();
  node_.OnMessage(1, Message(b_, "pong {} status { code: 6 error: 'there are two of you' }"),
                  kSecond);
  EXPECT_FALSE(node_.detector().alive(1));
  EXPECT_THAT(SessionAnswer().status().error(), HasSubstr("there are two of you"));
}

TEST_F(RefusalsTest, SilentClientsAreGivenUp) {
  node_.OnMessage(1, Message(b_, "ping {}"), kSecond);
  cluster::Message status = Message(b_, "status {} get_status_reply {}");
  status.set_id(LastTo(1, IsRequest).id());
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
  cluster::Message pong = MessageFrom("/job:a/replica:0/task:0", 9, "");
  for (const int64_t told : {int64_t{-1}, int64_t{1}, 2 * kSecond, 20 * kSecond}) {
    pong.mutable_pong()->set_timeout_us(told);
    client.OnMessage(0, pong, kSecond);
  }
  // What is absurd, or longer than its own, does not count.
  EXPECT_EQ(client.detector().options().timeout, 2 * kSecond);
  EXPECT_EQ(client.detector().options().interval, 2 * kSecond / 5);
}

}  // namespace
}  // namespace troupe

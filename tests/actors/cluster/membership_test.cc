// Tasks that join, as far as roles go: nodes that hand each other their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "actors/cluster/node_role.h"
#include "devices/log.h"
#include "tests/actors/cluster/messages.h"

namespace troupe {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::string TaskName(int i) { return "/job:a/replica:0/task:" + std::to_string(i); }
std::string Address(int i) { return "h:" + std::to_string(i + 1); }

class IdleWorker final : public WorkerEngine {
 public:
  explicit IdleWorker(std::string device) : device_(std::move(device)) {}
  std::vector<cluster::DeviceInfo> Devices() override {
    std::vector<cluster::DeviceInfo> devices(1);
    devices[0].set_name(device_);
    return devices;
  }
  void Register(cluster::RegisterGraphRequest, Done) override {}
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override {}
  void Start(cluster::RunGraphRequest, StepDone) override {}
  void Abort(uint64_t, const absl::Status&) override {}
  void ResetContainers(const std::vector<std::string>&) override {}
  void States(const std::string&, StatesDone) override {}
  void GetResources(const cluster::GetResourcesRequest&, ResourcesDone) override {}
  void SetResource(cluster::SetResourceRequest, Done) override {}

 private:
  const std::string device_;
};

/// Remembers which devices it was to build for.
class DeviceWatcher final : public MasterEngine {
 public:
  void CreateGraph(const std::string&, cluster::CreateSessionRequest, Done done) override {
    created.push_back(std::move(done));
  }
  void ExtendGraph(const std::string&, cluster::ExtendSessionRequest, Done) override {}
  void DeleteGraph(const std::string&) override {}
  void Build(const std::string&, cluster::Signature, std::vector<cluster::DeviceInfo> devices,
             BuildDone) override {
    names.clear();
    for (const auto& device : devices) names.push_back(device.name());
  }
  std::vector<Done> created;
  std::vector<std::string> names;
};

/// Nodes by name; each numbers the others in its own way.
class MembershipTest : public testing::Test {
 protected:
  struct Node final : Outbox {
    Node(MembershipTest* t, int i, const std::vector<int>& members, bool joining, uint64_t life)
        : test(t), name(TaskName(i)), worker(name + "/device:CPU:0") {
      NodeRole::Options options;
      options.task = name;
      options.incarnation = life;
      options.joining = joining;
      for (int member : members) options.tasks.push_back({TaskName(member), Address(member)});
      role = std::make_unique<NodeRole>(options, this, &worker, &master, t->now_);
      role->set_member_watcher([this](PeerId peer, const std::string& member, const std::string&) {
        if (member.empty()) removed.push_back(peer);
      });
    }
    void Send(PeerId to, cluster::Message message) override {
      if (to >= kFirstClient) {
        test->to_client_.push_back(std::move(message));
      } else {
        test->wire_.push_back({name, role->options().tasks[to].name, std::move(message)});
      }
    }
    PeerId NumberOf(const std::string& other) const {
      const auto& tasks = role->options().tasks;
      for (PeerId i = 0; i < tasks.size(); ++i) {
        if (tasks[i].name == other) return i;
      }
      return kFirstClient;
    }
    std::vector<std::string> Members() const {
      std::vector<std::string> names;
      for (const auto& task : role->options().tasks) {
        if (!task.name.empty()) names.push_back(task.name);
      }
      return names;
    }

    MembershipTest* const test;
    const std::string name;
    IdleWorker worker;
    DeviceWatcher master;
    std::unique_ptr<NodeRole> role;
    std::vector<PeerId> removed;
  };
  struct Wire {
    std::string from, to;
    cluster::Message message;
  };

  Node* Add(int i, const std::vector<int>& members, bool joining = false, uint64_t life = 0) {
    auto& node = nodes_[TaskName(i)];
    node = std::make_unique<Node>(this, i, members, joining, life == 0 ? 100 + i : life);
    return node.get();
  }
  void Deliver() {
    while (!wire_.empty()) {
      Wire wire = std::move(wire_.front());
      wire_.pop_front();
      auto to = nodes_.find(wire.to);
      if (to == nodes_.end()) continue;
      // A task that is no member has no connection.
      const PeerId from = to->second->NumberOf(wire.from);
      if (from < kFirstClient) to->second->role->OnMessage(from, std::move(wire.message), now_);
    }
  }
  void Run(int seconds) {
    for (int i = 0; i < seconds * 10; ++i) {
      now_ += kSecond / 10;
      for (auto& [name, node] : nodes_) node->role->Tick(now_);
      Deliver();
    }
  }
  /// A client's request; the answer, or nothing if there is none yet.
  cluster::Message Ask(Node* node, const std::string& text) {
    cluster::Message request = MessageFrom("", 77, text);
    const uint64_t id = next_id_++;
    request.set_id(id);
    node->role->OnMessage(kFirstClient + 1, std::move(request), now_);
    Deliver();
    for (const cluster::Message& message : to_client_) {
      if (message.has_status() && message.id() == id) return message;
    }
    return {};
  }
  StatusCode CodeFor(Node* node, const std::string& text) {
    const cluster::Message reply = Ask(node, text);
    EXPECT_TRUE(reply.has_status()) << "no answer to " << text;
    return CodeOf(reply);
  }
  static std::string JoinRequest(const std::string& name, const std::string& address,
                                 uint64_t life) {
    return "join_cluster { task { name: '" + name + "' address: '" + address +
           "' incarnation: " + std::to_string(life) + " } }";
  }
  static std::string LeaveRequest(int i, const std::string& more = "") {
    return "leave_cluster { task { name: '" + TaskName(i) + "' " + more + " } }";
  }
  static bool Knows(Node* node, int i) {
    const std::vector<std::string> members = node->Members();
    return std::count(members.begin(), members.end(), TaskName(i)) != 0;
  }
  static std::string JoinRequest(int i, const std::string& address, uint64_t life) {
    return JoinRequest(TaskName(i), address, life);
  }
  /// Starts task `i`, which joins through `member`.
  Node* Join(int i, Node* member) {
    const cluster::Message known = Ask(member, "get_status {}");
    std::vector<int> members = {i};
    for (const cluster::Task& task : known.get_status_reply().tasks()) {
      if (!task.left()) members.push_back(task.name().back() - '0');
    }
    Node* node = Add(i, members, /*joining=*/true);
    const cluster::Message reply = Ask(member, JoinRequest(i, Address(i), 100 + i));
    EXPECT_TRUE(reply.has_join_cluster_reply()) << reply.status().error();
    node->role->Joined(reply.join_cluster_reply(), now_);
    return node;
  }

  ClusterTime now_ = kSecond;
  uint64_t next_id_ = 1;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::deque<Wire> wire_;
  std::vector<cluster::Message> to_client_;
};

TEST_F(MembershipTest, AllLearnOfANewcomer) {
  Node* first = Add(0, {0, 1});
  Node* second = Add(1, {0, 1});
  Run(2);
  Node* third = Join(2, second);
  EXPECT_THAT(first->Members(), UnorderedElementsAre(TaskName(0), TaskName(1), TaskName(2)));
  EXPECT_THAT(third->Members(), UnorderedElementsAre(TaskName(0), TaskName(1), TaskName(2)));
  Run(2);
  for (auto& [name, node] : nodes_) {
    for (PeerId i = 0; i < 3; ++i) {
      if (i == node->role->self()) continue;
      EXPECT_TRUE(node->role->detector().alive(i));
    }
  }
  Node* fourth = Join(3, third);
  Run(2);
  EXPECT_EQ(first->Members().size(), 4u);
  EXPECT_EQ(fourth->Members().size(), 4u);
  for (Node* node : {first, fourth}) {
    EXPECT_EQ(Ask(node, "list_devices {}").list_devices_reply().devices_size(), 4);
  }
}

TEST_F(MembershipTest, LaterSignaturesOfRunningSessionsCanUseIt) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  Ask(first, "create_session {}");
  ASSERT_EQ(first->master.created.size(), 1u);
  first->master.created[0](absl::OkStatus());
  std::string session;
  for (const auto& message : to_client_) session += message.create_session_reply().session();
  const std::string run = "run_step { session: '" + session + "' signature ";
  Ask(first, run + "{ targets: 'x' } }");
  EXPECT_EQ(first->master.names.size(), 2u);
  Join(2, first);
  Run(1);
  Ask(first, run + "{ targets: 'y' } }");
  EXPECT_EQ(first->master.names.size(), 3u);
}

TEST_F(MembershipTest, RefusesATakenNameOrAddressAndNonsense) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  const cluster::Message reply = Ask(first, JoinRequest(1, Address(5), 500));
  EXPECT_EQ(CodeOf(reply), StatusCode::kAlreadyExists);
  EXPECT_THAT(reply.status().error(), HasSubstr(TaskName(1)));
  const auto invalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(CodeFor(first, JoinRequest(0, Address(5), 500)), StatusCode::kAlreadyExists);
  EXPECT_EQ(CodeFor(first, JoinRequest(2, Address(1), 500)), invalid);
  for (const char* address : {"", "h", "h:", ":1", "h:0", "h:65536", "h:1x"}) {
    EXPECT_EQ(CodeFor(first, JoinRequest(2, address, 500)), invalid) << address;
  }
  for (const char* name : {"", "x", "/job:a", "/job:a/task:1/device:CPU:0", "/job:a/task:*"}) {
    EXPECT_EQ(CodeFor(first, JoinRequest(name, Address(2), 500)), invalid) << name;
  }
  EXPECT_EQ(CodeFor(first, JoinRequest(2, Address(2), 0)), invalid) << "no incarnation";
  EXPECT_EQ(CodeFor(first, "join_cluster {}"), invalid);
  EXPECT_EQ(CodeFor(first, "add_task { task { name: '" + TaskName(2) + "' address: '" + Address(2) +
                               "' incarnation: 500 } }"),
            StatusCode::kPermissionDenied)
      << "a client is no member";
  EXPECT_EQ(first->Members().size(), 2u);
}

TEST_F(MembershipTest, NobodyTakesTheNameOfATaskThatMayStillBeHeard) {
  Node* first = Add(0, {0, 1});
  EXPECT_EQ(CodeFor(first, JoinRequest(1, "h:99", 500)), StatusCode::kUnavailable);
  Run(6);
  EXPECT_EQ(CodeFor(first, JoinRequest(1, "h:99", 500)), StatusCode::kOk);
}

TEST_F(MembershipTest, ALostTaskMayComeBackElsewhere) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  nodes_.erase(TaskName(1));
  Run(8);
  EXPECT_EQ(CodeFor(first, JoinRequest(1, "h:99", 500)), StatusCode::kOk);
  EXPECT_EQ(first->role->options().tasks[1].address, "h:99");
}

TEST_F(MembershipTest, WhoWasAwayLearnsFromTheOthers) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  nodes_.erase(TaskName(1));
  Run(8);
  Join(2, first);
  Run(1);
  Node* second = Add(1, {0, 1}, false, 999);  // From its file, which does not know of the third.
  Run(2);
  EXPECT_THAT(second->Members(), UnorderedElementsAre(TaskName(0), TaskName(1), TaskName(2)));
  EXPECT_TRUE(second->role->detector().alive(2));
}

TEST_F(MembershipTest, SessionsDoWithoutANewcomerThatIsGone) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  Join(2, first);
  Run(2);
  nodes_.erase(TaskName(2));
  Run(8);
  Ask(first, "create_session {}");
  EXPECT_EQ(first->master.created.size(), 1u);
}

TEST_F(MembershipTest, AllForgetATaskThatLeaves) {
  Node* first = Add(0, {0, 1, 2});
  Node* second = Add(1, {0, 1, 2});
  Node* third = Add(2, {0, 1, 2});
  Run(2);
  EXPECT_EQ(CodeFor(first, LeaveRequest(2)), StatusCode::kOk);
  for (Node* node : {first, second}) {
    EXPECT_THAT(node->Members(), UnorderedElementsAre(TaskName(0), TaskName(1)));
    EXPECT_EQ(Ask(node, "list_devices {}").list_devices_reply().devices_size(), 2);
    EXPECT_EQ(node->removed, std::vector<PeerId>{2});
  }
  // It has been told, and serves and pings nobody any more.
  EXPECT_EQ(third->removed, std::vector<PeerId>{third->role->self()});
  EXPECT_EQ(CodeFor(third, "list_devices {}"), StatusCode::kUnavailable);
  third->role->Tick(now_ + 5 * kSecond);
  EXPECT_THAT(wire_, IsEmpty());
  Run(8);
  EXPECT_TRUE(first->role->detector().alive(1));
  // Again; another one; the last one.
  EXPECT_EQ(CodeFor(second, LeaveRequest(2)), StatusCode::kOk);
  EXPECT_EQ(CodeFor(first, LeaveRequest(7)), StatusCode::kNotFound);
  EXPECT_EQ(CodeFor(first, "leave_cluster {}"), StatusCode::kNotFound);
  EXPECT_EQ(CodeFor(first, LeaveRequest(0)), StatusCode::kOk);
  EXPECT_EQ(CodeFor(second, LeaveRequest(1)), StatusCode::kFailedPrecondition);
  EXPECT_THAT(second->Members(), UnorderedElementsAre(TaskName(1)));
}

TEST_F(MembershipTest, ATaskLeavesByItself) {
  Node* first = Add(0, {0, 1});
  Node* second = Add(1, {0, 1});
  Run(2);
  absl::Status left = absl::UnknownError("not yet");
  second->role->Leave(TaskName(1), now_, [&](const absl::Status& status) { left = status; });
  EXPECT_TRUE(absl::IsUnknown(left)) << "before the others have heard of it";
  Deliver();
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_THAT(first->Members(), UnorderedElementsAre(TaskName(0)));
  EXPECT_EQ(second->removed, std::vector<PeerId>{second->role->self()});
}

TEST_F(MembershipTest, NobodyWaitsForADeadTaskThatHasLeft) {
  Node* first = Add(0, {0, 1, 2});
  Add(1, {0, 1, 2});
  Run(2);
  Ask(first, "create_session {}");
  EXPECT_EQ(first->master.created.size(), 0u);
  EXPECT_EQ(CodeFor(first, LeaveRequest(2)), StatusCode::kOk);
  EXPECT_EQ(first->master.created.size(), 1u);
  EXPECT_EQ(CodeFor(first, "reset {}"), StatusCode::kOk);
}

TEST_F(MembershipTest, ANameIsFreeWhenItsTaskHasLeft) {
  Node* first = Add(0, {0, 1});
  Node* second = Add(1, {0, 1});
  Run(2);
  // Somewhere else, and although the number may belong to another task by then.
  for (int round = 0; round < 40; ++round) {
    const int name = 2 + round % 3;
    EXPECT_EQ(
        CodeFor(round % 2 == 0 ? first : second, JoinRequest(name, Address(name), 500 + round)),
        StatusCode::kOk);
    EXPECT_TRUE(Knows(first, name) && Knows(second, name)) << round;
    EXPECT_EQ(CodeFor(first, LeaveRequest(name)), StatusCode::kOk);
    EXPECT_FALSE(Knows(first, name) || Knows(second, name)) << round;
    Run(6);
  }
  EXPECT_EQ(first->role->options().tasks.size(), 3u) << "numbers are used again";
  Node* third = Join(4, second);
  Run(2);
  EXPECT_TRUE(third->role->detector().alive(third->NumberOf(TaskName(0))));
  EXPECT_TRUE(first->role->detector().alive(first->NumberOf(TaskName(4))));
  EXPECT_EQ(Ask(first, "list_devices {}").list_devices_reply().devices_size(), 3);
}

TEST_F(MembershipTest, WhoWasAwayLearnsWhoHasLeft) {
  Node* first = Add(0, {0, 1, 2});
  Add(1, {0, 1, 2});
  Run(2);
  nodes_.erase(TaskName(1));
  Run(8);
  EXPECT_EQ(CodeFor(first, LeaveRequest(2)), StatusCode::kOk);
  Node* second = Add(1, {0, 1, 2}, false, 999);  // From its file, in which the third is.
  Run(2);
  EXPECT_THAT(second->Members(), UnorderedElementsAre(TaskName(0), TaskName(1)));
  EXPECT_THAT(first->Members(), UnorderedElementsAre(TaskName(0), TaskName(1)));
}

TEST_F(MembershipTest, TheNewsPassesFromOneToTheOther) {
  Node* first = Add(0, {0, 1, 2, 3});
  Node* second = Add(1, {0, 1, 2, 3});
  Node* third = Add(2, {0, 1, 2, 3});
  Run(2);
  // The first one ends before the third one has heard of it.
  cluster::Message request = MessageFrom("", 77, LeaveRequest(3));
  request.set_id(next_id_++);
  first->role->OnMessage(kFirstClient + 1, std::move(request), now_);
  std::erase_if(wire_, [](const Wire& wire) { return wire.to == TaskName(2); });
  nodes_.erase(TaskName(0));
  Deliver();
  EXPECT_FALSE(Knows(second, 3));
  EXPECT_FALSE(Knows(third, 3));
}

TEST_F(MembershipTest, AnOldLeaveIsNoNews) {
  Node* first = Add(0, {0, 1});
  Node* second = Add(1, {0, 1});
  Run(2);
  Join(2, first);
  EXPECT_EQ(CodeFor(first, LeaveRequest(2)), StatusCode::kOk);
  nodes_.erase(TaskName(2));
  nodes_.erase(TaskName(1));  // It knows that the third one has left, and no more.
  Run(8);
  Join(2, first);
  Run(1);
  second = Add(1, {0, 1}, false, 999);
  // As if it had remembered.
  wire_.push_back({TaskName(1), TaskName(0),
                   MessageFrom(TaskName(1), 999, LeaveRequest(2, "left: true address: 'h:3'"))});
  Run(2);
  EXPECT_TRUE(Knows(first, 2));
  EXPECT_TRUE(Knows(second, 2));
  EXPECT_EQ(first->role->options().tasks[first->NumberOf(TaskName(2))].epoch, 1u);
}

TEST_F(MembershipTest, WhoHasLeftIsNotRememberedForEver) {
  SetLogLevel(LogLevel::kOff);  // It says a line for each.
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  for (int round = 0; round < 1200; ++round) {
    const std::string name = "/job:w/replica:0/task:" + std::to_string(round);
    EXPECT_EQ(CodeFor(first, JoinRequest(name, "w:1", 5000)), StatusCode::kOk);
    EXPECT_EQ(CodeFor(first, "leave_cluster { task { name: '" + name + "' } }"), StatusCode::kOk);
    to_client_.clear();
    if (round % 100 == 0) Run(6);
  }
  SetLogLevel(LogLevel::kInfo);
  EXPECT_LE(Ask(first, "get_status {}").get_status_reply().tasks_size(), 1002);
}

TEST_F(MembershipTest, ANewcomerIsQuietUntilItIsAMember) {
  Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  Node* third = Add(2, {2, 0, 1}, /*joining=*/true);
  third->role->Tick(now_ + 5 * kSecond);
  EXPECT_THAT(wire_, IsEmpty());
}

}  // namespace
}  // namespace troupe

// Tasks that join, as far as roles go: nodes that hand each other their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "actors/cluster/node_role.h"

namespace troupe {
namespace {

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
  void Register(cluster::Message, Done) override {}
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override {}
  void Start(cluster::Message, StepDone) override {}
  void Abort(uint64_t, const absl::Status&) override {}
  void ResetContainers(const std::vector<std::string>&) override {}

 private:
  const std::string device_;
};

/// Remembers which devices it was to build for.
class DeviceWatcher final : public MasterEngine {
 public:
  void CreateGraph(const std::string&, cluster::Message, Done done) override {
    created.push_back(std::move(done));
  }
  void ExtendGraph(const std::string&, cluster::Message, Done) override {}
  void DeleteGraph(const std::string&) override {}
  void Build(const std::string&, cluster::Message, std::vector<cluster::DeviceInfo> devices,
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
      return kFirstClient + 7;
    }
    std::vector<std::string> Members() const {
      std::vector<std::string> names;
      for (const auto& task : role->options().tasks) names.push_back(task.name);
      return names;
    }

    MembershipTest* const test;
    const std::string name;
    IdleWorker worker;
    DeviceWatcher master;
    std::unique_ptr<NodeRole> role;
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
      to->second->role->OnMessage(to->second->NumberOf(wire.from), std::move(wire.message), now_);
    }
  }
  void Run(int seconds) {
    for (int i = 0; i < seconds * 10; ++i) {
      now_ += kSecond / 10;
      for (auto& [name, node] : nodes_) node->role->Tick(now_);
      Deliver();
    }
  }
  /// A client's request; the answer.
  cluster::Message Ask(Node* node, cluster::Message request) {
    request.set_version(kProtocolVersion);
    request.set_kind(cluster::REQUEST);
    request.set_id(next_id_++);
    request.set_incarnation(77);
    const uint64_t id = request.id();
    node->role->OnMessage(kFirstClient + 1, std::move(request), now_);
    Deliver();
    for (const cluster::Message& message : to_client_) {
      if (message.kind() == cluster::REPLY && message.id() == id) return message;
    }
    return {};
  }
  static cluster::Message JoinRequest(int i, const std::string& address, uint64_t life) {
    cluster::Message join;
    join.set_method(cluster::JOIN_CLUSTER);
    join.add_tasks(TaskName(i));
    join.add_addresses(address);
    join.add_ids(life);
    return join;
  }
  /// Starts task `i`, which joins through `member`.
  Node* Join(int i, Node* member) {
    cluster::Message ask;
    ask.set_method(cluster::GET_STATUS);
    const cluster::Message known = Ask(member, ask);
    std::vector<int> members = {i};
    for (const std::string& name : known.tasks()) members.push_back(name.back() - '0');
    Node* node = Add(i, members, /*joining=*/true);
    const cluster::Message reply = Ask(member, JoinRequest(i, Address(i), 100 + i));
    EXPECT_EQ(reply.code(), 0) << reply.error();
    node->role->Joined(reply, now_);
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
  cluster::Message ask;
  ask.set_method(cluster::LIST_DEVICES);
  EXPECT_EQ(Ask(first, ask).devices_size(), 4);
  EXPECT_EQ(Ask(fourth, ask).devices_size(), 4);
}

TEST_F(MembershipTest, LaterSignaturesOfRunningSessionsCanUseIt) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  cluster::Message create;
  create.set_method(cluster::CREATE_SESSION);
  Ask(first, create);
  ASSERT_EQ(first->master.created.size(), 1u);
  first->master.created[0](absl::OkStatus());
  std::string session;
  for (const auto& message : to_client_) session += message.session();
  cluster::Message run;
  run.set_method(cluster::RUN_STEP);
  run.set_session(session);
  run.add_target_names("x");
  Ask(first, run);
  EXPECT_EQ(first->master.names.size(), 2u);
  Join(2, first);
  Run(1);
  run.set_target_names(0, "y");
  Ask(first, run);
  EXPECT_EQ(first->master.names.size(), 3u);
}

TEST_F(MembershipTest, RefusesATakenNameOrAddressAndNonsense) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  cluster::Message reply = Ask(first, JoinRequest(1, Address(5), 500));
  EXPECT_EQ(reply.code(), static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(reply.error(), HasSubstr(TaskName(1)));
  const auto invalid = static_cast<int>(absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Ask(first, JoinRequest(0, Address(5), 500)).code(),
            static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(Ask(first, JoinRequest(2, Address(1), 500)).code(), invalid);
  for (const char* address : {"", "h", "h:", ":1", "h:0", "h:65536", "h:1x"}) {
    EXPECT_EQ(Ask(first, JoinRequest(2, address, 500)).code(), invalid) << address;
  }
  cluster::Message nameless = JoinRequest(2, Address(2), 500);
  for (const char* name : {"", "x", "/job:a", "/job:a/task:1/device:CPU:0", "/job:a/task:*"}) {
    nameless.set_tasks(0, name);
    EXPECT_EQ(Ask(first, nameless).code(), invalid) << name;
  }
  nameless.clear_ids();
  EXPECT_EQ(Ask(first, nameless).code(), invalid);
  cluster::Message announced = JoinRequest(2, Address(2), 500);
  announced.set_method(cluster::ADD_TASK);
  EXPECT_EQ(Ask(first, announced).code(), static_cast<int>(absl::StatusCode::kPermissionDenied))
      << "a client is no member";
  EXPECT_EQ(first->Members().size(), 2u);
}

TEST_F(MembershipTest, NobodyTakesTheNameOfATaskThatMayStillBeHeard) {
  Node* first = Add(0, {0, 1});
  EXPECT_EQ(Ask(first, JoinRequest(1, "h:99", 500)).code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  Run(6);
  EXPECT_EQ(Ask(first, JoinRequest(1, "h:99", 500)).code(), 0);
}

TEST_F(MembershipTest, ALostTaskMayComeBackElsewhere) {
  Node* first = Add(0, {0, 1});
  Add(1, {0, 1});
  Run(2);
  nodes_.erase(TaskName(1));
  Run(8);
  EXPECT_EQ(Ask(first, JoinRequest(1, "h:99", 500)).code(), 0);
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
  cluster::Message create;
  create.set_method(cluster::CREATE_SESSION);
  Ask(first, create);
  EXPECT_EQ(first->master.created.size(), 1u);
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

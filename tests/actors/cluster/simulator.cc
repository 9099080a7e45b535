#include "tests/actors/cluster/simulator.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace troupe {

namespace {

/// The tasks of "inc:0,2".
std::vector<int> TasksOf(const std::string& target) {
  std::vector<int> tasks;
  std::istringstream text(target.substr(target.find(':') + 1));
  for (std::string number; std::getline(text, number, ',');) tasks.push_back(std::stoi(number));
  return tasks;
}

TensorProto Number(int64_t value) {
  TensorProto proto;
  proto.set_dtype(DT_INT64);
  proto.add_int64_val(value);
  return proto;
}

}  // namespace

/// Both engines of a simulated task: what takes time is an event of its own.
class ClusterSimulator::TaskEngine final : public WorkerEngine, public MasterEngine {
 public:
  TaskEngine(ClusterSimulator* simulator, Member* member)
      : simulator_(simulator), member_(member) {}

  std::vector<cluster::DeviceInfo> Devices() override {
    cluster::DeviceInfo device;
    device.set_name(member_->name + "/device:CPU:0");
    device.set_incarnation(member_->incarnation);
    return {device};
  }

  void Register(cluster::Message request, WorkerEngine::Done done) override {
    Later([this, request = std::move(request), done = std::move(done)] {
      graphs_[request.session() + "/" + request.handle()] = request.partitions(0).graph();
      done(absl::OkStatus());
    });
  }
  void Deregister(const std::string& session, const std::string& handle) override {
    graphs_.erase(session + "/" + handle);
  }
  void DeleteSession(const std::string& session) override {
    std::erase_if(graphs_,
                  [&](const auto& graph) { return graph.first.rfind(session + "/", 0) == 0; });
  }

  void Start(cluster::Message request, StepDone done) override {
    Step& step = steps_[request.step()];
    step.done = std::move(done);
    const uint64_t id = request.step();
    const auto graph = graphs_.find(request.session() + "/" + request.handle());
    if (graph == graphs_.end()) {
      Later([this, id] { Over(id, absl::NotFoundError("no such graph")); });
      return;
    }
    step.tasks = TasksOf(graph->second);
    Later([this, id] { Play(id); });
  }
  void Deliver(uint64_t id, cluster::CrossingTensor) override {
    auto it = steps_.find(id);
    if (it == steps_.end()) return;
    it->second.got = true;
    Later([this, id] { Play(id); });
  }
  void Abort(uint64_t id, const absl::Status& status) override {
    Later([this, id, status] { Over(id, status); });
  }
  void ResetContainers(const std::vector<std::string>&) override { member_->counter = 0; }

  void CreateGraph(const std::string& session, cluster::Message, MasterEngine::Done done) override {
    sessions_.insert(session);
    Later([done = std::move(done)] { done(absl::OkStatus()); });
  }
  void ExtendGraph(const std::string&, cluster::Message, MasterEngine::Done done) override {
    Later([done = std::move(done)] { done(absl::OkStatus()); });
  }
  void DeleteGraph(const std::string& session) override { sessions_.erase(session); }
  void Build(const std::string&, cluster::Message request, std::vector<cluster::DeviceInfo>,
             BuildDone done) override {
    Later([this, request = std::move(request), done = std::move(done)] {
      BuiltStep built;
      for (int task : TasksOf(request.target_names(0))) {
        BuiltStep::Part& part = built.parts.emplace_back();
        part.task = simulator_->tasks_[task].name;
        part.partitions.emplace_back().set_graph(request.target_names(0));
        part.fetches.push_back(built.num_fetches++);
      }
      done(std::move(built));
    });
  }

  size_t num_steps() const { return steps_.size(); }
  size_t num_graphs() const { return graphs_.size(); }
  size_t num_master_graphs() const { return sessions_.size(); }

 private:
  struct Step {
    StepDone done;
    std::vector<int> tasks;
    bool sent = false;
    bool got = false;
  };

  void Later(std::function<void()> event) {
    simulator_->AtMember(simulator_->now_ + simulator_->Between(1, 200), member_, std::move(event));
  }

  void Play(uint64_t id) {
    auto it = steps_.find(id);
    if (it == steps_.end()) return;
    Step& step = it->second;
    const int self = static_cast<int>(member_ - simulator_->tasks_.data());
    if (self == step.tasks.front()) {
      if (!std::exchange(step.sent, true)) {
        for (size_t i = 1; i < step.tasks.size(); ++i) {
          cluster::Message value;
          value.set_kind(cluster::TENSOR);
          value.set_step(id);
          value.mutable_crossing()->set_key(1);
          member_->role->calls()->Send(step.tasks[i], std::move(value));
        }
      }
    } else if (!step.got) {
      return;  // Until the value comes.
    }
    ++member_->counter;
    Over(id, absl::OkStatus());
  }

  void Over(uint64_t id, const absl::Status& status) {
    auto it = steps_.find(id);
    if (it == steps_.end()) return;
    StepDone done = std::move(it->second.done);
    steps_.erase(it);
    std::vector<TensorProto> fetches;
    if (status.ok()) fetches.push_back(Number(member_->counter));
    done(status, std::move(fetches));
  }

  ClusterSimulator* const simulator_;
  Member* const member_;
  std::map<std::string, std::string> graphs_;
  std::map<uint64_t, Step> steps_;
  std::set<std::string> sessions_;
};

class ClusterSimulator::NodeOutbox final : public Outbox {
 public:
  NodeOutbox(ClusterSimulator* simulator, Member* member)
      : simulator_(simulator), member_(member) {}
  void Send(PeerId to, cluster::Message message) override {
    simulator_->Send(member_, to, std::move(message));
  }

 private:
  ClusterSimulator* const simulator_;
  Member* const member_;
};

ClusterSimulator::ClusterSimulator(uint64_t seed, int num_tasks, SimulatedFaults faults)
    : random_(seed), faults_(faults), tasks_(num_tasks) {
  for (int i = 0; i < num_tasks; ++i) {
    tasks_[i].name = "/job:worker/replica:0/task:" + std::to_string(i);
    Boot(&tasks_[i]);
  }
  Trouble();
}

ClusterSimulator::~ClusterSimulator() = default;

bool ClusterSimulator::Chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

ClusterTime ClusterSimulator::Between(ClusterTime low, ClusterTime high) {
  return std::uniform_int_distribution<ClusterTime>(low, high)(random_);
}

void ClusterSimulator::Violation(std::string text) {
  violations_.push_back("at " + std::to_string(now_) + " us: " + std::move(text));
}

void ClusterSimulator::At(ClusterTime when, std::function<void()> run) {
  events_.push({std::max(when, now_), next_event_++, std::move(run)});
}

void ClusterSimulator::AtMember(ClusterTime when, Member* member, std::function<void()> event) {
  At(when, [this, member, life = member->incarnation, event = std::move(event)] {
    if (member->role == nullptr || member->incarnation != life) return;
    if (member->paused_until > now_) {
      AtMember(member->paused_until, member, event);
    } else {
      event();
    }
  });
}

void ClusterSimulator::Boot(Member* member) {
  member->incarnation = next_incarnation_++;
  member->counter = 0;
  member->paused_until = 0;
  member->outbox = std::make_unique<NodeOutbox>(this, member);
  NodeRole::Options options;
  options.incarnation = member->incarnation;
  if (member->client) {
    options.tasks.push_back({"", "troupe://master"});
  } else {
    options.task = member->name;
    member->engine = std::make_unique<TaskEngine>(this, member);
    for (const Member& task : tasks_) options.tasks.push_back({task.name, "address"});
    if (options.tasks.back().name.empty()) {  // While the cluster is being made.
      for (size_t i = 0; i < tasks_.size(); ++i) {
        options.tasks[i].name = "/job:worker/replica:0/task:" + std::to_string(i);
      }
    }
  }
  member->role = std::make_unique<NodeRole>(options, member->outbox.get(), member->engine.get(),
                                            member->engine.get(), now_);
  Tick(member);
}

void ClusterSimulator::Tick(Member* member) {
  AtMember(now_ + Between(90000, 110000), member, [this, member] {
    member->role->Tick(now_);
    Tick(member);
  });
}

PeerId ClusterSimulator::PeerIdOf(const Member* member) const {
  if (!member->client) return static_cast<PeerId>(member - tasks_.data());
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].get() == member) return kFirstClient + 1 + i;
  }
  return kFirstClient;
}

ClusterSimulator::Member* ClusterSimulator::Find(Member* from, PeerId to) {
  if (from->client) return &tasks_[from->master];
  if (to < tasks_.size()) return &tasks_[to];
  return clients_[to - kFirstClient - 1].get();
}

void ClusterSimulator::Send(Member* from, PeerId to, cluster::Message message) {
  Member* target = Find(from, to);
  if (target == from) {
    AtMember(now_, from, [this, from, message = std::move(message)]() mutable {
      from->role->OnMessage(from->role->self(), std::move(message), now_);
    });
    return;
  }
  // A stream of values loses none: it is late, or broken.
  if (message.kind() != cluster::TENSOR && Chance(faults_.drop)) return;
  const int copies = Chance(faults_.duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) Deliver(from, target, message);
}

void ClusterSimulator::Deliver(Member* from, Member* to, cluster::Message message) {
  ClusterTime cut = 0;
  if (auto it = cut_until_.find({std::min(from, to), std::max(from, to)});
      it != cut_until_.end() && it->second > now_) {
    if (message.kind() != cluster::TENSOR) return;
    cut = it->second - now_;
  }
  ClusterTime delay = Between(20, 400);
  if (Chance(faults_.delay_a_lot)) delay = Between(400, kSecond);
  const uint64_t life = to->incarnation;
  At(now_ + cut + delay, [this, from, to, life, message = std::move(message)]() mutable {
    if (to->role == nullptr || to->incarnation != life) return;
    AtMember(now_, to, [this, from, to, message = std::move(message)]() mutable {
      const PeerId peer = to->client ? 0 : PeerIdOf(from);
      fingerprint_ =
          (fingerprint_ ^ (message.id() * 31 + message.kind() * 7 + now_)) * 1099511628211u;
      to->role->OnMessage(peer, std::move(message), now_);
    });
  });
}

void ClusterSimulator::RunUntil(ClusterTime until) {
  while (!events_.empty() && events_.top().when <= until) {
    Event event = events_.top();
    events_.pop();
    now_ = event.when;
    ++num_events_;
    event.run();
  }
  now_ = until;
}

void ClusterSimulator::Trouble() {
  At(now_ + 50000, [this] {
    const double step = 0.05;
    if (Chance(faults_.kills_per_second * step)) {
      const int victim = static_cast<int>(Between(0, static_cast<ClusterTime>(tasks_.size()) - 1));
      if (tasks_[victim].role != nullptr) {
        Kill(victim);
        At(now_ + Between(1000, 8 * kSecond), [this, victim] { Restart(victim); });
      }
    }
    if (Chance(faults_.stops_per_second * step)) {
      const int victim = static_cast<int>(Between(0, static_cast<ClusterTime>(tasks_.size()) - 1));
      Pause(victim, now_ + Between(1000, 8 * kSecond));
    }
    if (Chance(faults_.cuts_per_second * step) && tasks_.size() > 1) {
      const auto last = static_cast<ClusterTime>(tasks_.size()) - 1;
      Member* a = &tasks_[Between(0, last)];
      Member* b = &tasks_[Between(0, last)];
      if (a != b) cut_until_[{std::min(a, b), std::max(a, b)}] = now_ + Between(1000, 8 * kSecond);
    }
    Trouble();
  });
}

void ClusterSimulator::Heal() {
  faults_ = SimulatedFaults();
  cut_until_.clear();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].paused_until = std::min(tasks_[i].paused_until, now_);
    Restart(static_cast<int>(i));
  }
}

void ClusterSimulator::Kill(int task) {
  Member* member = &tasks_[task];
  if (member->role == nullptr) return;
  member->role.reset();
  member->engine.reset();
  // Most deaths break the connections at once; a machine that is gone breaks none.
  if (Chance(0.3)) return;
  const PeerId peer = static_cast<PeerId>(task);
  for (Member& other : tasks_) {
    if (&other == member || other.role == nullptr) continue;
    AtMember(now_ + Between(20, 2000), &other,
             [this, &other, peer] { other.role->OnLinkDown(peer, now_); });
  }
  for (auto& client : clients_) {
    if (client->role == nullptr || client->master != task) continue;
    AtMember(now_ + Between(20, 2000), client.get(),
             [this, raw = client.get()] { raw->role->OnLinkDown(0, now_); });
  }
}

void ClusterSimulator::Restart(int task) {
  if (tasks_[task].role == nullptr) Boot(&tasks_[task]);
}

void ClusterSimulator::Pause(int task, ClusterTime until) { tasks_[task].paused_until = until; }

int ClusterSimulator::AddClient(int master) {
  auto client = std::make_unique<Member>();
  client->client = true;
  client->master = master;
  clients_.push_back(std::move(client));
  Boot(clients_.back().get());
  return static_cast<int>(clients_.size()) - 1;
}

void ClusterSimulator::KillClient(int client) {
  Member* member = clients_[client].get();
  const PeerId peer = PeerIdOf(member);
  member->role.reset();
  Member* master = &tasks_[member->master];
  if (master->role == nullptr || Chance(0.3)) return;
  AtMember(now_ + Between(20, 2000), master,
           [this, master, peer] { master->role->OnLinkDown(peer, now_); });
}

void ClusterSimulator::Call(int client, cluster::Message request, ClusterTime limit, Done done) {
  Member* member = clients_[client].get();
  if (!member->role->detector().alive(0)) {
    done(absl::UnavailableError("lost the master"), {});
    return;
  }
  auto answered = std::make_shared<int>(0);
  const std::string what = cluster::Method_Name(request.method());
  const ClusterTime asked = now_;
  member->role->Call(0, std::move(request), now_, 0,
                     [this, answered, done = std::move(done), what](const absl::Status& status,
                                                                    cluster::Message reply) {
                       if (++*answered > 1) Violation(what + " was answered twice");
                       done(status, std::move(reply));
                     });
  At(now_ + limit, [this, member, life = member->incarnation, answered, what, asked] {
    if (member->role != nullptr && member->incarnation == life && *answered == 0) {
      Violation(what + " of " + std::to_string(asked) + " us was never answered");
    }
  });
}

void ClusterSimulator::CheckNothingLeft() {
  for (const Member& task : tasks_) {
    if (task.role == nullptr) continue;
    auto check = [&](size_t count, const char* what) {
      if (count != 0) Violation(task.name + " still has " + std::to_string(count) + " " + what);
    };
    check(task.role->master()->num_steps(), "steps as master");
    check(task.role->master()->num_sessions(), "sessions as master");
    check(task.role->worker()->num_steps(), "steps as worker");
    check(task.role->worker()->num_sessions(), "sessions as worker");
    check(task.role->worker()->num_early_values(), "values without a step");
    check(task.engine->num_steps(), "steps under way");
    check(task.engine->num_graphs(), "registered graphs");
    check(task.engine->num_master_graphs(), "graphs of sessions");
  }
}

}  // namespace troupe

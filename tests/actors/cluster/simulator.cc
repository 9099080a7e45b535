#include "tests/actors/cluster/simulator.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {
constexpr ClusterTime kTroubleEvery = kSecond / 20;
constexpr ClusterTime kLongest = 8 * kSecond;

std::string TaskName(int task) { return StrCat("/job:worker/replica:0/task:", task); }
}  // namespace

ClusterSimulator::ClusterSimulator(uint64_t seed, int num_tasks, SimulatedFaults faults)
    : schedule_(seed), faults_(faults), tasks_(num_tasks) {
  network_.schedule = &schedule_;
  network_.send = [this](SimulatedNode* from, PeerId to, cluster::Message message) {
    Send(from, to, std::move(message));
  };
  network_.ran = [this](SimulatedNode* node) {
    if (!node->options().client) ledger_.Look(node->options().number, node->sum());
  };
  network_.streams.schedule = &schedule_;
  network_.streams.find = [this](int task) {
    return tasks_[task]->alive() ? tasks_[task]->data() : nullptr;
  };
  network_.streams.latency = [this](int from, int to) {
    // What is lost on the way is sent again.
    const ClusterTime again =
        schedule_.Chance(faults_.delay_a_lot) ? schedule_.Between(0, kSecond) : 0;
    return CutFor(from, to) + again + schedule_.Between(20, 200);
  };
  for (int i = 0; i < num_tasks; ++i) Boot(i);
  Trouble();
}

ClusterSimulator::~ClusterSimulator() {
  for (Client& client : clients_) client.node->Die(true);
  for (auto& task : tasks_) task->Die(true);
  schedule_.Clear();
}

void ClusterSimulator::Boot(int task) {
  SimulatedNode::Options options;
  options.number = task;
  options.slow_jobs = faults_.slow_jobs;
  options.messages_in_streams = faults_.messages_in_streams;
  options.role.task = TaskName(task);
  options.role.incarnation = next_incarnation_++;
  // Nothing is on its way for as long as large feeds may be.
  options.role.worker.early_lifetime = 10 * kSecond;
  if (faults_.forgetful) {
    options.role.master.max_signatures = 1;
    options.role.master.signature_lifetime = kSecond / 5;
  }
  for (int i = 0; i < num_tasks(); ++i) options.role.tasks.push_back({TaskName(i), "address"});
  ledger_.Boot(task);
  schedule_.Trace(StrCat("task ", task, " begins life ", options.role.incarnation));
  tasks_[task] = SimulatedNode::Boot(options, &network_);
}

int ClusterSimulator::AddClient(int master) {
  SimulatedNode::Options options;
  options.client = true;
  options.number = static_cast<int>(clients_.size());
  options.role.incarnation = next_incarnation_++;
  options.role.tasks.push_back({"", "troupe://master"});
  clients_.push_back({SimulatedNode::Boot(options, &network_), master});
  return options.number;
}

ClusterTime ClusterSimulator::CutFor(int a, int b) const {
  auto it = cut_until_.find(std::minmax(a, b));
  return it == cut_until_.end() ? 0 : std::max<ClusterTime>(0, it->second - now());
}

void ClusterSimulator::Send(SimulatedNode* from, PeerId to, cluster::Message message) {
  SimulatedNode* target = nullptr;
  if (from->options().client) {
    target = tasks_[clients_[from->options().number].master].get();
  } else if (to < tasks_.size()) {
    target = tasks_[to].get();
  } else {
    target = clients_[to - kFirstClient - 1].node.get();
  }
  if (!target->alive()) return;
  const bool tensor = message.kind() == cluster::TENSOR;
  if (schedule_.Chance(tensor ? faults_.drop_tensors : faults_.drop)) return;
  if (schedule_.Chance(faults_.duplicate)) Deliver(from, target, message);
  Deliver(from, target, std::move(message));
}

void ClusterSimulator::Deliver(SimulatedNode* from, SimulatedNode* to, cluster::Message message) {
  ClusterTime cut = 0;
  if (!from->options().client && !to->options().client) {
    cut = CutFor(from->options().number, to->options().number);
    // A value is late, or its link is lost; of the others the cluster must do without some.
    if (cut > 0 && message.kind() != cluster::TENSOR) return;
  }
  const ClusterTime delay = schedule_.Chance(faults_.delay_a_lot) ? schedule_.Between(400, kSecond)
                                                                  : schedule_.Between(20, 200);
  PeerId peer = 0;
  if (from->options().client) {
    peer = kFirstClient + 1 + from->options().number;
  } else if (!to->options().client) {
    peer = from->options().number;
  }
  to->Later(now() + cut + delay, [this, to, peer, message = std::move(message)]() mutable {
    schedule_.Mark(message.id() * 31 + message.kind());
    to->OnMessage(peer, std::move(message));
  });
}

void ClusterSimulator::Trouble() {
  schedule_.After(kTroubleEvery, [this] {
    const double step = static_cast<double>(kTroubleEvery) / kSecond;
    auto any = [this] { return static_cast<int>(schedule_.Between(0, num_tasks() - 1)); };
    auto a_while = [this] { return schedule_.Between(1000, kLongest); };
    if (schedule_.Chance(faults_.kills_per_second * step)) {
      const int victim = any();
      if (tasks_[victim]->alive()) {
        Kill(victim);
        schedule_.After(a_while(), [this, victim] { Restart(victim); });
      }
    }
    if (schedule_.Chance(faults_.stops_per_second * step)) Pause(any(), a_while());
    if (schedule_.Chance(faults_.cuts_per_second * step)) Cut(any(), any(), a_while());
    if (schedule_.Chance(faults_.breaks_per_second * step)) Break(any(), any());
    Trouble();
  });
}

void ClusterSimulator::Heal() {
  schedule_.Trace("peace");
  faults_ = {.forgetful = faults_.forgetful};
  cut_until_.clear();
  for (int i = 0; i < num_tasks(); ++i) {
    Pause(i, 0);
    Restart(i);
  }
}

void ClusterSimulator::Kill(int task) {
  SimulatedNode* node = tasks_[task].get();
  if (!node->alive()) return;
  // Most deaths break the connections; a machine that is gone breaks none.
  const bool silently = schedule_.Chance(0.3);
  schedule_.Trace(StrCat(node->name(), silently ? " dies silently" : " dies"));
  node->Die(silently);
  if (silently) return;
  for (auto& other : tasks_) {
    if (!other->alive()) continue;
    other->Later(now() + schedule_.Between(20, 2000),
                 [other = other.get(), task] { other->OnLinkDown(static_cast<PeerId>(task)); });
  }
  for (Client& client : clients_) {
    if (!client.node->alive() || client.master != task) continue;
    client.node->Later(now() + schedule_.Between(20, 2000),
                       [node = client.node.get()] { node->OnLinkDown(0); });
  }
}

void ClusterSimulator::Restart(int task) {
  if (tasks_[task]->alive()) return;
  Boot(task);
  for (auto& other : tasks_) {
    if (other->alive()) other->data()->Reset(task);
  }
}

void ClusterSimulator::Pause(int task, ClusterTime time) {
  schedule_.Trace(StrCat("task ", task, " stands still for ", time));
  tasks_[task]->Pause(now() + time);
}

void ClusterSimulator::Cut(int a, int b, ClusterTime time) {
  schedule_.Trace(StrCat("cut between ", a, " and ", b, " for ", time));
  if (a != b) cut_until_[std::minmax(a, b)] = now() + time;
}

void ClusterSimulator::Break(int a, int b) {
  if (a == b || !tasks_[a]->alive() || !tasks_[b]->alive()) return;
  tasks_[a]->data()->Break(b);
  tasks_[b]->data()->Break(a);
}

void ClusterSimulator::KillClient(int client) {
  SimulatedNode* master = tasks_[clients_[client].master].get();
  schedule_.Trace(StrCat("client ", client, " dies"));
  clients_[client].node->Die(true);
  if (!master->alive() || schedule_.Chance(0.3)) return;
  master->Later(now() + schedule_.Between(20, 2000),
                [master, client] { master->OnLinkDown(kFirstClient + 1 + client); });
}

uint64_t ClusterSimulator::Call(int client, cluster::Message request, ClusterTime limit,
                                Done done) {
  SimulatedNode* node = clients_[client].node.get();
  if (!HasMaster(client)) {
    done(absl::UnavailableError("there is no master"), {});
    return 0;
  }
  auto answers = std::make_shared<int>(0);
  const std::string what = StrCat(cluster::Method_Name(request.method()), " of ", now(), " us");
  uint64_t id = 0;
  node->Enter([&] {
    id = node->role()->Call(0, std::move(request), now(), 0,
                            [this, answers, what, done = std::move(done)](
                                const absl::Status& status, cluster::Message reply) {
                              if (++*answers > 1) schedule_.Violation(what + " was answered twice");
                              done(status, std::move(reply));
                            });
  });
  node->Later(now() + limit, [this, answers, what] {
    if (*answers == 0) schedule_.Violation(what + " was never answered");
  });
  return id;
}

void ClusterSimulator::CheckNoGraphs() {
  for (auto& task : tasks_) task->CheckNoGraphs();
}

void ClusterSimulator::CheckNothingLeft() {
  for (auto& task : tasks_) task->CheckNothingLeft();
}

}  // namespace troupe

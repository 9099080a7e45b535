#include "tests/actors/cluster/simulator.h"

#include <algorithm>
#include <utility>

#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {
constexpr ClusterTime kTroubleEvery = kSecond / 20;
constexpr ClusterTime kLongest = 8 * kSecond;

std::string TaskName(int task) { return StrCat("/job:worker/replica:0/task:", task); }
std::string Address(int task) { return StrCat("h:", task + 1); }
}  // namespace

ClusterSimulator::ClusterSimulator(uint64_t seed, int num_tasks, SimulatedFaults faults,
                                   SimulatedApplications* applications)
    : schedule_(seed), faults_(faults), tasks_(num_tasks) {
  SetLogLevel(LogLevel::kOff);  // It is full of losses, and has a trace of its own.
  network_.schedule = &schedule_;
  network_.applications = applications;
  if (applications != nullptr) applications->Init(this);
  network_.ran = [this](SimulatedNode* node) {
    if (!node->options().client) ledger_.Look(node->options().number, node->sum());
  };
  network_.left = [this](SimulatedNode* node) {
    const int task = node->options().number;
    schedule_.Trace(StrCat(node->name(), " has left"));
    if (!away_.insert(task).second) return;
    // It has joined by way of somebody who had not heard yet that its name was to leave.
    schedule_.After(kSecond, [this, task] { Join(task); });
  };
  network_.streams.schedule = &schedule_;
  network_.streams.find = [this](int process) -> SimulatedTransport* {
    const int tasks = static_cast<int>(tasks_.size());
    SimulatedNode* node =
        process < tasks ? tasks_[process].get() : clients_[process - tasks].node.get();
    return node != nullptr && node->alive() ? node->transport() : nullptr;
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

void ClusterSimulator::Boot(int task, bool joining) {
  SimulatedNode::Options options;
  options.number = task;
  options.slow_jobs = faults_.slow_jobs;
  options.no_memory = &faults_.no_memory;
  options.process = task;
  options.role.task = TaskName(task);
  options.role.incarnation = next_incarnation_++;
  // Nothing is on its way for as long as large feeds may be.
  options.role.worker.early_lifetime = 10 * kSecond;
  if (faults_.forgetful) {
    options.role.master.max_signatures = 1;
    options.role.master.signature_lifetime = kSecond / 5;
  }
  for (int i = 0; i < num_tasks(); ++i) {
    if (joining && i != task && away(i)) continue;
    options.role.tasks.push_back({TaskName(i), Address(i)});
    options.processes.push_back(i);
  }
  options.role.joining = joining;
  ledger_.Boot(task);
  for (QueueLedger& ledger : queue_ledgers_) ledger.Boot(task);
  mutex_ledger_.Boot(task);
  table_ledger_.Boot(task);
  accumulator_ledger_.Boot(task);
  schedule_.Trace(StrCat("task ", task, " begins life ", options.role.incarnation));
  tasks_[task] = SimulatedNode::Boot(options, &network_);
}

int ClusterSimulator::AddClient(int master) {
  SimulatedNode::Options options;
  options.client = true;
  options.number = static_cast<int>(clients_.size());
  options.role.incarnation = next_incarnation_++;
  options.role.tasks.push_back({"", "troupe://master"});
  options.process = num_tasks() + options.number;
  options.processes = {master};
  clients_.push_back({SimulatedNode::Boot(options, &network_), master});
  return options.number;
}

int ClusterSimulator::AddMember() {
  SimulatedNode::Options options;
  options.client = options.member = options.role.follows = true;
  options.number = static_cast<int>(clients_.size());
  options.role.incarnation = next_incarnation_++;
  for (int i = 0; i < num_tasks(); ++i) {
    if (away(i)) continue;
    options.role.tasks.push_back({TaskName(i), Address(i)});
    options.processes.push_back(i);
  }
  options.process = num_tasks() + options.number;
  clients_.push_back({SimulatedNode::Boot(options, &network_), 0});
  return options.number;
}

ClusterTime ClusterSimulator::CutFor(int a, int b) const {
  auto it = cut_until_.find(std::minmax(a, b));
  return it == cut_until_.end() ? 0 : std::max<ClusterTime>(0, it->second - now());
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
    if (schedule_.Chance(faults_.leaves_per_second * step)) Leave(any(), a_while());
    JoinStrays();
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
}

void ClusterSimulator::Restart(int task) {
  if (tasks_[task]->alive() || away(task)) return;
  Boot(task);
  ResetStreams(task);
}

void ClusterSimulator::ResetStreams(int task) {
  for (auto& other : tasks_) {
    if (other->alive()) other->transport()->Reset(task);
  }
  for (Client& client : clients_) {
    if (client.node->alive()) client.node->transport()->Reset(task);
  }
}

void ClusterSimulator::Leave(int task, ClusterTime away) {
  const int via = AnyOther(task);
  if (via < 0 || !away_.insert(task).second) return;
  if (schedule_.Chance(0.5)) Kill(task);
  AskToLeave(task, via, away);
}

void ClusterSimulator::AskToLeave(int task, int via, ClusterTime away) {
  if (via < 0) via = AnyOther(task);
  const auto again = [this, task, away] {
    schedule_.After(kSecond / 2, [this, task, away] { AskToLeave(task, -1, away); });
  };
  if (via < 0) return again();
  schedule_.Trace(StrCat("task ", task, " is to leave, by way of ", via));
  cluster::Message request;
  request.mutable_leave_cluster()->mutable_task()->set_name(TaskName(task));
  Administer(via, std::move(request),
             [this, task, away, again](const absl::Status& status, const cluster::Message&) {
               if (!status.ok()) return again();
               schedule_.After(away, [this, task] { Join(task); });
             });
}

void ClusterSimulator::JoinStrays() {
  for (int task = 0; task < num_tasks(); ++task) {
    if (away(task) || !tasks_[task]->alive()) continue;
    for (int other = 0; other < num_tasks(); ++other) {
      if (away(other) || !tasks_[other]->alive()) continue;
      if (tasks_[other]->links()->FindTask(TaskName(task)).ok()) continue;
      schedule_.Trace(StrCat("task ", task, " is no member any more for ", other));
      if (!away_.insert(task).second) continue;
      schedule_.After(kSecond, [this, task] { Join(task); });
    }
  }
}

void ClusterSimulator::Join(int task) {
  const auto again = [this, task] { schedule_.After(kSecond / 2, [this, task] { Join(task); }); };
  tasks_[task]->Die(false);
  const int via = AnyOther(task);
  if (via < 0) return again();
  Boot(task, true);
  ResetStreams(task);
  schedule_.Trace(StrCat("task ", task, " joins by way of ", via));
  const std::shared_ptr<SimulatedNode> node = tasks_[task];
  cluster::Message request;
  cluster::Task* newcomer = request.mutable_join_cluster()->mutable_task();
  newcomer->set_name(TaskName(task));
  newcomer->set_address(Address(task));
  newcomer->set_incarnation(node->options().role.incarnation);
  Administer(via, std::move(request),
             [this, task, node, again](const absl::Status& status, const cluster::Message& reply) {
               if (!status.ok() || !node->alive()) return again();
               away_.erase(task);
               node->Later(now(), [this, node, joined = reply.join_cluster_reply()] {
                 node->Enter([&] { node->role()->Joined(joined, now()); });
               });
             });
}

int ClusterSimulator::AnyOther(int task) {
  std::vector<int> others;
  for (int i = 0; i < num_tasks(); ++i) {
    if (i != task && tasks_[i]->alive() && !away(i)) others.push_back(i);
  }
  if (others.empty()) return -1;
  return others[schedule_.Between(0, static_cast<int64_t>(others.size()) - 1)];
}

void ClusterSimulator::Administer(int via, cluster::Message request, Done done) {
  const int client = AddClient(via);
  // As long as it may take; who dies meanwhile does not answer.
  auto answered = std::make_shared<Done>(std::move(done));
  const auto answer = [this, client, answered](const absl::Status& status,
                                               const cluster::Message& reply) {
    const Done once = std::exchange(*answered, nullptr);
    if (!once) return;
    // Not from within its own event.
    schedule_.After(1, [this, client, once, status, reply] {
      KillClient(client);
      once(status, reply);
    });
  };
  schedule_.After(kSecond, [this, client, request, answer] {
    if (!HasMaster(client)) return answer(absl::UnavailableError("there is no master"), {});
    Call(client, request, 20 * kSecond, answer);
  });
  schedule_.After(15 * kSecond, [answer] { answer(absl::DeadlineExceededError("too late"), {}); });
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
  tasks_[a]->transport()->Break(b);
  tasks_[b]->transport()->Break(a);
}

void ClusterSimulator::KillClient(int client) {
  schedule_.Trace(StrCat("client ", client, " dies"));
  clients_[client].node->Die(schedule_.Chance(0.3));
}

uint64_t ClusterSimulator::Call(int client, cluster::Message request, ClusterTime limit,
                                Done done) {
  SimulatedNode* node = clients_[client].node.get();
  if (!HasMaster(client)) {
    done(absl::UnavailableError("there is no master"), {});
    return 0;
  }
  auto answers = std::make_shared<int>(0);
  const std::string what = StrCat(NameOf(request.body_case()), " of ", now(), " us");
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
  for (auto& task : tasks_) {
    task->CheckNothingLeft();
    const int number = task->options().number;
    queue_ledger(Place::kQueue)->Left(number, task->EmptyQueue());
    queue_ledger(Place::kStage)->Left(number, task->EmptyStage());
    queue_ledger(Place::kBarrier)->Left(number, task->EmptyBarrier());
    task->CheckNobodyLocks();
    const SimulatedNode::Entries entries = task->TableEntries();
    table_ledger_.Left(number, entries.keys, entries.values);
    const SimulatedNode::Gradients left = task->EmptyAccumulator();
    accumulator_ledger_.Left(task->options().number, left.count, left.rows, left.values);
    task->DropResources();
  }
  for (int task : away_) schedule_.Violation(StrCat("task ", task, " has not come back"));
}

}  // namespace troupe

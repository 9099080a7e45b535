/// A whole cluster in one thread: the real roles, executors and variables, a network that
/// misbehaves, and virtual time, all drawn from one seed.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATOR_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/cluster/accumulator_ledger.h"
#include "tests/actors/cluster/queue_ledger.h"
#include "tests/actors/cluster/simulated_node.h"
#include "tests/actors/cluster/simulated_work.h"
#include "tests/actors/cluster/synchronization_ledger.h"
#include "tests/actors/cluster/update_ledger.h"

namespace troupe {

/// How bad the network and the machines are. Probabilities are per packet.
struct SimulatedFaults {
  double delay_a_lot = 0;  ///< Up to a second.
  double slow_jobs = 0;    ///< Up to a second until an engine does what it is asked.
  /// A message of a role finds no memory: per message.
  double no_memory = 0;
  double kills_per_second = 0;
  double stops_per_second = 0;   ///< A task stands still for up to 8 s.
  double cuts_per_second = 0;    ///< Between two tasks nothing gets through for up to 8 s.
  double breaks_per_second = 0;  ///< A connection breaks.
  /// A task leaves the cluster for good, dead or alive; another one of its name joins later.
  double leaves_per_second = 0;
  /// Masters give up signatures as soon as they are not used.
  bool forgetful = false;
};

/// Tasks and clients, numbered from 0, and the network between them.
class ClusterSimulator {
 public:
  /// `applications`: in tasks and members; nullptr: none.
  ClusterSimulator(uint64_t seed, int num_tasks, SimulatedFaults faults,
                   SimulatedApplications* applications = nullptr);
  ~ClusterSimulator();

  Schedule* schedule() { return &schedule_; }
  UpdateLedger* ledger() { return &ledger_; }
  using Place = SimulatedWork::Place;
  QueueLedger* queue_ledger(Place place = Place::kQueue) {
    return &queue_ledgers_[static_cast<int>(place)];
  }
  MutexLedger* mutex_ledger() { return &mutex_ledger_; }
  TableLedger* table_ledger() { return &table_ledger_; }
  AccumulatorLedger* accumulator_ledger() { return &accumulator_ledger_; }
  SimulatedApplications* applications() { return network_.applications; }
  ClusterTime now() const { return schedule_.now(); }
  void RunFor(ClusterTime time) { schedule_.RunUntil(now() + time); }
  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  SimulatedNode* task(int number) { return tasks_[number].get(); }
  const SimulatedFaults& faults() const { return faults_; }

  /// No faults from now on; whoever is dead comes back.
  void Heal();
  void Kill(int task);
  void Restart(int task);
  /// A task leaves by way of another one, and joins again after `away`.
  void Leave(int task, ClusterTime away);
  bool away(int task) const { return away_.count(task) != 0; }
  void Pause(int task, ClusterTime time);
  void Cut(int a, int b, ClusterTime time);
  void Break(int a, int b);

  /// A client of the master at task `master`.
  int AddClient(int master);
  /// A client that is a member: it knows all tasks, and others connect to it.
  int AddMember();
  SimulatedNode* client(int number) { return clients_[number].node.get(); }
  void KillClient(int client);
  bool HasMaster(int client) const { return clients_[client].node->role()->detector().alive(0); }
  using Done = std::function<void(const absl::Status&, cluster::Message)>;
  /// A call that must be answered once, and within `limit`: that it was is checked. 0 if there is
  /// no master, in which case `done` has been called.
  uint64_t Call(int client, cluster::Message request, ClusterTime limit, Done done);

  /// After a time without steps, of forgetful masters: no signatures and no graphs.
  void CheckNoGraphs();
  /// After everything has been closed and some time has passed. Drops the tasks' queues and
  /// accumulators.
  void CheckNothingLeft();

 private:
  struct Client {
    std::shared_ptr<SimulatedNode> node;
    int master = 0;
  };

  void Boot(int task, bool joining = false);
  /// Asks task `via` by a client of its own, which is `done` when it has an answer or has waited
  /// too long for one.
  void Administer(int via, cluster::Message request, Done done);
  /// A task that was out of reach when it had to leave does not know it. The log of those that it
  /// wants to talk to says so, and it is started again.
  void JoinStrays();
  void AskToLeave(int task, int via, ClusterTime away);
  void Join(int task);
  /// A member that lives, and is not `task`; -1 if there is none.
  int AnyOther(int task);
  /// The streams of the others to an earlier life of a task are over.
  void ResetStreams(int task);
  NodeRole::Options RoleOptions();
  /// For how much longer nothing gets through.
  ClusterTime CutFor(int a, int b) const;
  void Trouble();

  Schedule schedule_;
  UpdateLedger ledger_{&schedule_};
  QueueLedger queue_ledgers_[3] = {QueueLedger(&schedule_), QueueLedger(&schedule_),
                                   QueueLedger(&schedule_)};  ///< By `Place`.
  MutexLedger mutex_ledger_{&schedule_};
  TableLedger table_ledger_{&schedule_};
  AccumulatorLedger accumulator_ledger_{&schedule_};
  SimulatedFaults faults_;
  SimulatedNode::Network network_;
  std::vector<std::shared_ptr<SimulatedNode>> tasks_;  ///< Their present lives, or the last ones.
  std::vector<Client> clients_;
  std::map<std::pair<int, int>, ClusterTime> cut_until_;
  std::set<int> away_;  ///< Tasks that are about to leave, have left, or are about to join.
  uint64_t next_incarnation_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATOR_H_

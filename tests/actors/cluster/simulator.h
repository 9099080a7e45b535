/// A whole cluster in one thread: roles, a network that misbehaves, and virtual time, all drawn
/// from one seed.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATOR_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/cluster/node_role.h"

namespace troupe {

/// How bad the network and the machines are. Probabilities are per message.
struct SimulatedFaults {
  double drop = 0;
  double duplicate = 0;
  double delay_a_lot = 0;  ///< Up to a second, so that messages overtake one another.
  double kills_per_second = 0;
  double stops_per_second = 0;  ///< A task stands still for up to 8 s.
  double cuts_per_second = 0;   ///< A link loses everything for up to 8 s.
};

/// Every task has a counter, which a step of signature "inc:0,2" raises on tasks 0 and 2; the
/// values are the fetches. Task 0 sends what it read to each other task, which waits for it, so
/// that steps need values from elsewhere.
class ClusterSimulator {
 public:
  ClusterSimulator(uint64_t seed, int num_tasks, SimulatedFaults faults);
  ~ClusterSimulator();

  ClusterTime now() const { return now_; }
  std::mt19937_64& random() { return random_; }
  /// Handles events until `until`.
  void RunUntil(ClusterTime until);
  /// No faults from now on; whoever is dead comes back.
  void Heal();
  void Kill(int task);
  void Restart(int task);
  void Pause(int task, ClusterTime until);

  /// A client of the master at task `master`.
  int AddClient(int master);
  void KillClient(int client);
  using Done = std::function<void(absl::Status, cluster::Message)>;
  /// A call that must be answered within `limit`; that it was is checked.
  void Call(int client, cluster::Message request, ClusterTime limit, Done done);

  /// What must hold at any time, and has been violated so far.
  const std::vector<std::string>& violations() const { return violations_; }
  /// After everything has been closed and some time has passed: nothing may be left.
  void CheckNothingLeft();
  int64_t counter(int task) const { return tasks_[task].counter; }
  uint64_t num_events() const { return num_events_; }
  /// A number that two runs have in common only if they did the same.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  class TaskEngine;
  class NodeOutbox;
  struct Member {
    std::string name;
    uint64_t incarnation = 0;
    std::unique_ptr<NodeOutbox> outbox;
    std::unique_ptr<TaskEngine> engine;
    std::unique_ptr<NodeRole> role;
    ClusterTime paused_until = 0;
    int64_t counter = 0;  ///< State of this life.
    int master = 0;       ///< Of a client.
    bool client = false;
    std::vector<std::function<void()>> held;  ///< Events that wait for it to go on.
  };
  struct Event {
    ClusterTime when;
    uint64_t number;
    std::function<void()> run;
    bool operator>(const Event& other) const {
      return when != other.when ? when > other.when : number > other.number;
    }
  };

  void At(ClusterTime when, std::function<void()> run);
  /// Runs `event` in a member's life `incarnation`, if that is not over.
  void AtMember(ClusterTime when, Member* member, std::function<void()> event);
  void Boot(Member* member);
  void Tick(Member* member);
  void Deliver(Member* from, Member* to, cluster::Message message);
  void Send(Member* from, PeerId to, cluster::Message message);
  Member* Find(Member* from, PeerId to);
  bool Chance(double probability);
  ClusterTime Between(ClusterTime low, ClusterTime high);
  void Trouble();
  void Violation(std::string text);
  PeerId PeerIdOf(const Member* member) const;

  std::mt19937_64 random_;
  SimulatedFaults faults_;
  ClusterTime now_ = kSecond;
  uint64_t next_event_ = 1;
  uint64_t num_events_ = 0;
  uint64_t fingerprint_ = 14695981039346656037u;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Member> tasks_;
  std::vector<std::unique_ptr<Member>> clients_;
  std::map<std::pair<const Member*, const Member*>, ClusterTime> cut_until_;
  std::vector<std::string> violations_;
  uint64_t next_incarnation_ = 1;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATOR_H_

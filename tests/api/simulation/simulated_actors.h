/// Actors of applications in a simulated cluster.
#ifndef TROUPE_TESTS_API_SIMULATION_SIMULATED_ACTORS_H_
#define TROUPE_TESTS_API_SIMULATION_SIMULATED_ACTORS_H_

#include <caf/all.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/cluster/simulator.h"
#include "tests/api/simulation/actor_ledger.h"

namespace troupe {

class ActorProcess;

/// Each task publishes an actor for the whole cluster ("e0" the first one's), and so does each of
/// some members ("m0" the first one's); each has a function "f" besides. All of them find each
/// other's actors, ask and tell them, hand their handles on, monitor them and link themselves with
/// them, and use the tasks' variables and queues as actors. Actors end and are made anew, and so
/// are members.
class SimulatedActors final : public SimulatedApplications {
 public:
  struct Options {
    int members = 2;
    bool losses = true;                ///< Connections may break, and processes end.
    ClusterTime think = kSecond / 10;  ///< At most so long between two acts of a process.
  };
  explicit SimulatedActors(Options options) : options_(options) {}
  ~SimulatedActors() override;

  void Init(ClusterSimulator* simulator) override;
  std::unique_ptr<SimulatedApplication> Boot(SimulatedNode* node) override;
  void Start() override;
  void Heal() override;
  std::string Missing() override;
  void Stop() override;
  void CheckNothingLeft() override;
  int64_t BeginAsk() override { return ledger_->Ask(0, 0); }
  void EndAsk(int64_t number, const absl::StatusOr<absl::Span<const int64_t>>& answer) override;
  int64_t BeginTell() override { return ledger_->Tell(0, 0); }

  /// Kinds of steps that ask and tell these actors.
  static std::vector<std::string> Work();
  ActorLedger* ledger() { return &*ledger_; }
  const Options& options() const { return options_; }
  ClusterSimulator* simulator() { return simulator_; }
  Schedule* schedule() { return simulator_->schedule(); }
  bool busy() const { return busy_; }
  bool healed() const { return healed_; }
  /// All names, of tasks and members.
  std::vector<std::string> Names() const;

  /// What an actor's number in the ledger is; 0: it is none of these.
  int64_t NumberOf(uint64_t node, caf::actor_id actor) const;
  int64_t NumberOf(const caf::actor_addr& address) const;
  /// An actor that has just been made begins.
  int64_t Begin(const caf::strong_actor_ptr& actor);

 private:
  friend class ActorProcess;

  void StartMember(size_t member);
  void Trouble();

  const Options options_;
  ClusterSimulator* simulator_ = nullptr;
  std::optional<ActorLedger> ledger_;
  std::map<std::pair<uint64_t, caf::actor_id>, int64_t> numbers_;
  std::vector<ActorProcess*> processes_;  ///< Those that live.
  std::vector<int> members_;              ///< Their numbers as clients.
  std::optional<size_t> starting_;        ///< The member that is being started.
  bool busy_ = true, healed_ = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_SIMULATION_SIMULATED_ACTORS_H_

/// A client of a simulated cluster: makes sessions, runs steps that update variables, closes them.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_CLIENT_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_CLIENT_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/actors/cluster/simulated_work.h"
#include "tests/actors/cluster/simulator.h"

namespace troupe {

/// Runs steps, one after the other, until it is stopped; makes a new session when one is lost, and
/// sometimes for no reason.
class SimulatedClient {
 public:
  struct Options {
    int master = 0;
    std::vector<std::string> work;  ///< Names of `SimulatedWork`.
    ClusterTime think = 40000;      ///< At most so long between two steps.
    ClusterTime step_timeout = 0;   ///< Given to the master; 0: none.
    double restless = 0;            ///< How probably a step is disturbed: cancelled, its
                                    ///< session closed, the client killed.
    bool callables = false;         ///< Steps are run by handles.
  };
  SimulatedClient(ClusterSimulator* simulator, Options options);

  void Start();
  /// No new steps; what the client has is closed.
  void Stop();
  /// No new steps until `GoOn`; what the client has stays open.
  void Rest() { resting_ = true; }
  void GoOn() { resting_ = false; }
  /// The process ends.
  void Kill();

  int succeeded() const { return succeeded_; }
  int attempted() const { return attempted_; }
  const std::set<absl::StatusCode>& codes() const { return codes_; }
  std::string last() const { return last_.ToString(); }

 private:
  void Next();
  void Soon(ClusterTime at_most);
  void Create();
  void Run();
  /// The step's number in the ledger that it concerns.
  int64_t Begin(const SimulatedWork& work);
  void Ended(const SimulatedWork& work, int64_t number, const absl::Status& status,
             const cluster::RunStepReply& reply);
  void MakeCallable(const SimulatedWork& work);
  void Disturb(uint64_t call);
  void Close();
  void Answered(const absl::Status& status);

  ClusterSimulator* const simulator_;
  const Options options_;
  int id_ = -1;
  std::string graph_;
  std::vector<SimulatedWork> work_;
  std::string session_;
  std::map<std::string, std::string> callables_;  ///< Of the session, by name of the work.
  bool stopped_ = false, resting_ = false;
  uint64_t life_ = 0;  ///< Counts the client's processes: what an old one was waiting for is void.
  int succeeded_ = 0, attempted_ = 0;
  std::set<absl::StatusCode> codes_;
  absl::Status last_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_CLIENT_H_

/// The kinds of steps that simulated clients run, as graphs.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_WORK_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_WORK_H_

#include <string>
#include <vector>

namespace troupe {

/// A kind of step. All are fed "delta:0": 0 and the step's number.
struct SimulatedWork {
  enum class Kind : uint8_t {
    kUpdate,
    kPut,
    kTake,
    kApply,
    kMean,
    kAdvance,
    kCount,
    kAsk,
    kTell,
    kLock,
    kTable
  };
  /// Where elements are put and taken from.
  enum class Place : uint8_t { kQueue, kStage, kBarrier };

  /// Variables: "here 2": task 2 adds to its own; "from 0 1": what task 1 adds comes from task 0;
  /// "large 0 1": as 150 KB; "loop 0 1": by a loop that task 0 controls; "ring": every task adds
  /// what comes from the one before, when that one has added.
  /// Queues: "put 0 1": what comes from task 0 goes into the queue of task 1; "take 0 1": an
  /// element of it goes to task 0; "pair 0 1": two do.
  /// Staging areas: "stage 0 1", "unstage 0 1", likewise. Barriers: "insert 0 1": one component
  /// comes from task 0, the other one from task 1, into the barrier there; "join 0 1": what is
  /// complete goes to task 0; "joins 0 1": two do. Mutexes: "lock 0 1": holds that of task 1, and
  /// counts there by way of task 0. Tables: "table 0 1": what comes from task 0 goes into the table
  /// of task 1, and is looked up. Accumulators: "apply 0 1": a gradient that comes from task 0 is
  /// applied to that of task 1; "old 0 1": one of step 0; "mean 0 1": that of two at least goes to
  /// task 0; "advance 0 1": a new step comes from task 0; "count 0 1": the number of gradients goes
  /// to task 0. Actors of the application: "ask 0 1 e2": what comes from task 0 is what task 1 asks
  /// the actor that is published as e2; the answer is fetched there. "tell 0 1 e2": it is told.
  std::string name;
  Kind kind = Kind::kUpdate;
  Place place = Place::kQueue;
  std::vector<std::string> fetches;
  std::vector<int> tasks;  ///< Whose variables are fetched; or whose queue or so it is.
  int count = 0;           ///< Elements or gradients that are taken.
  bool old = false;        ///< The gradient is of step 0.

  /// Steps that may wait for those of other clients.
  bool waits() const {
    return kind == Kind::kPut || kind == Kind::kTake || kind == Kind::kMean || kind == Kind::kLock;
  }
  /// They are fed "key:0" as well, the number as a string.
  bool named() const { return kind == Kind::kPut && place == Place::kBarrier; }
};

/// Steps of these kinds, and the graph of them all, as a GraphDef.
struct SimulatedGraph {
  std::vector<SimulatedWork> work;
  std::string graph;
};
SimulatedGraph WriteSimulatedGraph(int num_tasks, const std::vector<std::string>& names);

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SIMULATED_WORK_H_

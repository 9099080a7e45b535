/// What a worker's sessions and graphs are. For the sources of `PartitionEngine` only.
#ifndef TROUPE_ACTORS_CLUSTER_REGISTERED_GRAPH_H_
#define TROUPE_ACTORS_CLUSTER_REGISTERED_GRAPH_H_

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/cluster/partition_engine.h"
#include "actors/session/compile.h"
#include "actors/session/executable.h"
#include "actors/session/functions.h"
#include "graph/passes/partition_def.h"

namespace troupe {

/// Tells graphs whose steps hold a thread for moments only from others, by the time that they have
/// taken: a few quick ones in a row, and it is quick; two very long ones, or some long ones in a
/// row, and it is not. One that another thread interrupts now and then stays quick. Thread-safe.
class HoldTimes {
 public:
  bool quick() const { return score_.load(std::memory_order_relaxed) < kSlow; }
  void Record(uint64_t held_ns) {
    // Whoever brings messages brings none meanwhile.
    constexpr uint64_t kLong = 100'000, kVeryLong = 2'000'000;
    const int score = score_.load(std::memory_order_relaxed);
    const int change = held_ns > kVeryLong ? kSlow / 2 : held_ns > kLong ? 2 : -1;
    const int next = std::clamp(score + change, 0, kMost);
    if (next != score) score_.store(next, std::memory_order_relaxed);
  }

 private:
  static constexpr int kSlow = 8, kMost = 32;
  std::atomic<int> score_{kSlow + 2};
};

/// What a session keeps between its graphs, and when they are given up: stateful kernels, its own
/// and those of its functions.
struct PartitionEngine::Session {
  Session(Runtime* runtime, uint32_t master_steps)
      : steps(master_steps), functions(std::make_shared<Graph>(), runtime, {.one_device = true}) {}

  void SetStates(const KernelStates& states) {
    kernels.RestoreStates("", states);
    functions.RestoreStates(states);
  }

  const uint32_t steps;  ///< The upper halves of the ids of its master's steps.
  SessionFunctions functions;
  StatefulKernels kernels;  ///< They know of the functions.
  // Under the engine's mutex.
  std::map<std::string, std::shared_ptr<RegisteredGraph>> graphs;
  std::vector<StatesDone> states_wanted;
  /// A job saves states. There is one at a time: it waits for functions of datasets, which may need
  /// the other threads.
  bool tells_states = false;
};

/// A graph that a master has registered.
struct PartitionEngine::RegisteredGraph {
  std::shared_ptr<Session> session;
  std::vector<ReceivedPartition> received;  ///< Own the nodes.
  std::optional<Executable> executable;     ///< Once it is compiled.
  // Of a partial run, whose feeds and fetches are edges.
  bool partial = false;
  std::vector<std::vector<uint64_t>> feed_keys;
  std::unordered_map<uint64_t, int> fetch_keys;
  HoldTimes hold_times;

  const CompiledStep& compiled() const { return executable->compiled(); }
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_REGISTERED_GRAPH_H_

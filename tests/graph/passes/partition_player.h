/// Plays partitioned graphs, slowly and plainly, so that what partitioning promises can be seen:
/// each partition knows only its own nodes, and gets only what is sent to it.
#ifndef TROUPE_TESTS_GRAPH_PASSES_PARTITION_PLAYER_H_
#define TROUPE_TESTS_GRAPH_PASSES_PARTITION_PLAYER_H_

#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/partition.h"

namespace troupe {

/// What a fetch gave; values are scalars.
struct PlayedFetch {
  bool arrived = false;
  bool dead = false;
  double value = 0;
};

/// Plays one step; what is ready runs in a random order.
class PartitionPlayer {
 public:
  PartitionPlayer(const PartitionedGraph& graph, uint32_t seed);

  /// Feeds by the caller's index. Afterwards `errors` tells what went wrong: values that nobody
  /// took, receivers that nobody served, things that came twice.
  std::vector<PlayedFetch> Play(const std::vector<double>& feeds);
  std::vector<std::string> errors;
  int64_t num_fired = 0;
  int64_t num_sent = 0;

 private:
  /// Where in the loops: (frame, iteration), outermost first.
  using Tag = std::vector<std::pair<std::string, int>>;
  struct Value {
    double number = 0;
    std::string variable;  ///< Of a reference.
    bool dead = false;
  };
  struct Event {
    int32_t partition, node;
    Tag tag;
    bool dead;
  };
  struct Consumer {
    int32_t node, input, port;  ///< input -1: control.
  };
  struct Instance {
    std::map<int, Value> inputs;
    int controls = 0;
    int dead_inputs = 0;
    int live_input = -1;
    bool any_dead = false;
    bool fired = false;
  };
  struct Part {
    const Subgraph* subgraph;
    std::vector<std::vector<Consumer>> consumers;
    std::vector<int> waits_for;
    std::vector<bool> wild;
    std::map<std::pair<int32_t, Tag>, Instance> instances;
    std::map<Tag, std::vector<std::pair<int32_t, Value>>> invariants;  ///< By tag of iteration 0.
    std::map<Tag, int> last_iteration;                                 ///< The same.
    std::map<Tag, std::vector<int32_t>> dead_exits;                    ///< By the iteration's tag.
  };

  void Fire(const Event& event);
  void Deliver(int32_t p, int32_t node, const Tag& tag, const std::vector<Value>& outputs);
  void Arrive(int32_t p, const Consumer& consumer, const Tag& tag, const Value& value,
              bool from_enter);
  bool EndLoops();
  Value Input(int32_t p, int32_t node, Instance& instance, int k, bool wants_ref);

  const PartitionedGraph& graph_;
  std::mt19937 random_;
  std::vector<Part> parts_;
  std::vector<Event> ready_;
  std::map<std::pair<std::string, Tag>, Value> sent_;
  std::map<std::pair<std::string, Tag>, Event> waiting_;
  std::map<std::string, double> variables_;
  std::vector<double> feeds_;
  std::map<std::pair<int32_t, int32_t>, std::vector<Value>> root_outputs_;
};

/// A subgraph as one partition.
PartitionedGraph AsOnePartition(Subgraph subgraph);

}  // namespace troupe

#endif  // TROUPE_TESTS_GRAPH_PASSES_PARTITION_PLAYER_H_

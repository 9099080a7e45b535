/// Plans: partitions of graphs compiled for execution.
#ifndef TROUPE_ACTORS_EXECUTOR_PLAN_H_
#define TROUPE_ACTORS_EXECUTOR_PLAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"

namespace troupe {

/// What a plan is built from: nodes with their kernels, how they are joined, what goes in and comes
/// out.
struct PlanSpec {
  struct Input {
    int node;
    int port;
    /// The producer's output is a reference, and this consumer wants the value that the variable
    /// has when it starts.
    bool snapshot = false;
  };
  struct Node {
    std::string name;  ///< For messages and traces.
    std::string op;
    std::shared_ptr<Kernel> kernel;  ///< nullptr: nothing to compute (NoOp, constants, feeds).
    KernelCost cost = KernelCost::kBySize;
    std::vector<Input> inputs;
    std::vector<int> control_inputs;  ///< Each predecessor once.
    int num_outputs = 0;
    /// Outputs known beforehand (then no kernel, and no inputs of any kind).
    std::vector<Tensor> constants;
  };
  std::vector<Node> nodes;
  std::vector<int> feeds;      ///< Per feed: a node with one output, no inputs and no kernel.
  std::vector<Input> fetches;  ///< Per fetch: where the value comes from.
  std::string device_name;     ///< For messages.
};

/// A node as the executor's loop sees it. Ranges point into the plan's flat arrays.
struct PlanNode {
  enum Kind : uint8_t {
    kNothing,      ///< Only orders others.
    kSync,         ///< Kernel::Compute.
    kAsync,        ///< AsyncKernel::ComputeAsync.
    kPassThrough,  ///< Output 0 is input 0 (a fetch of a reference).
  };
  Kernel* kernel = nullptr;
  int32_t first_input = 0;
  int32_t first_output = 0;  ///< Slot of output 0; the others follow.
  int32_t first_consumer = 0;
  int32_t num_consumers = 0;
  uint16_t num_inputs = 0;
  uint16_t num_outputs = 0;
  Kind kind = kNothing;
  bool has_snapshots = false;
};

/// A partition compiled into flat arrays: no maps, strings or locks on the path of a node.
/// Immutable but for the measured costs (relaxed atomics), and shared by all steps that run it.
/// Thread-safe.
class Plan {
 public:
  /// A value that is read from a variable when a node starts.
  struct Snapshot {
    int32_t node;
    int32_t ref_slot;
    int32_t value_slot;
  };

  /// Internal if the specification is not well-formed (a bug of the compiler of plans).
  static absl::StatusOr<std::shared_ptr<const Plan>> Build(PlanSpec spec);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  int num_slots() const { return static_cast<int>(slot_uses_.size()); }
  const std::vector<PlanNode>& nodes() const { return nodes_; }
  const PlanNode& node(int i) const { return nodes_[i]; }
  const std::string& name(int i) const { return spec_.nodes[i].name; }
  const std::string& op(int i) const { return spec_.nodes[i].op; }
  const std::string& device_name() const { return spec_.device_name; }
  const std::vector<int32_t>& input_slots() const { return input_slots_; }
  const std::vector<int32_t>& consumers() const { return consumers_; }
  const std::vector<int32_t>& initial_pending() const { return initial_pending_; }
  /// How many consumers a slot has, fetches included.
  const std::vector<int32_t>& slot_uses() const { return slot_uses_; }
  /// Nodes that are ready when a step starts.
  const std::vector<int32_t>& roots() const { return roots_; }
  const std::vector<int>& feeds() const { return spec_.feeds; }
  /// Slot of each fetch.
  const std::vector<int32_t>& fetch_slots() const { return fetch_slots_; }
  const std::vector<std::pair<int32_t, Tensor>>& constants() const { return constants_; }
  /// Sorted by node.
  const std::vector<Snapshot>& snapshots() const { return snapshots_; }
  const Snapshot* SnapshotsOf(int node) const;
  /// True if some kernel is asynchronous.
  bool has_async() const { return has_async_; }
  /// Nodes that have a kernel or order others: those executed in a run.
  int num_executed() const { return num_executed_; }

  /// Running estimate of a node's time in nanoseconds.
  uint32_t cost_ns(int node) const { return costs_[node].load(std::memory_order_relaxed); }
  void RecordCost(int node, uint64_t nanoseconds) const;
  /// Counts runs; tells which of them measure: the second, third and fourth, and then every 64th.
  bool NextRunMeasures() const {
    const uint64_t run = runs_.fetch_add(1, std::memory_order_relaxed);
    return (run >= 1 && run <= 3) || run % 64 == 0;
  }

 private:
  Plan() = default;

  PlanSpec spec_;
  std::vector<PlanNode> nodes_;
  std::vector<int32_t> input_slots_, consumers_, initial_pending_, slot_uses_, roots_, fetch_slots_;
  std::vector<std::pair<int32_t, Tensor>> constants_;
  std::vector<Snapshot> snapshots_;
  mutable std::unique_ptr<std::atomic<uint32_t>[]> costs_;
  mutable std::atomic<uint64_t> runs_{0};
  bool has_async_ = false;
  int num_executed_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_EXECUTOR_PLAN_H_
